"""What do all endpoints share? JSON in and out, known parameters only, one moment per request, and what is missing."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, NoReturn

from django.http import HttpRequest
from django.utils import timezone
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from allocations.errors import Fault, NotFound
from allocations.models import User
from console.api.body import JsonBody, refuse
from console.kept_text import is_kept
from console.models import ApiToken


class AlwaysJson(BaseContentNegotiation):
    """The API speaks JSON, whatever a client says it would like."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type or "application/json"


class Endpoint(APIView):
    """One address of the API.

    `scopes` says for each method which scope a token needs; `parameters` which query parameters GET takes; `deeds`
    what can be done where DELETE cannot. `verb` is the permission verb that the house test reads from every address;
    each method asks for the subject itself.
    """

    verb: ClassVar[str] = "account.use"
    scopes: ClassVar[Mapping[str, str]] = {"GET": "read"}
    parameters: ClassVar[frozenset[str]] = frozenset()
    deeds: ClassVar[tuple[str, ...]] = ()
    content_negotiation_class = AlwaysJson
    parser_classes = (JsonBody,)
    metadata_class = None
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    at: datetime

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view = super().as_view(**initkwargs)
        view.verb = cls.verb  # type: ignore[attr-defined]  # the house test reads it from every address
        return view

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.at = timezone.now()
        if not all(is_kept(str(each)) for each in kwargs.values()):
            raise NotFound()
        known = self.parameters if request.method in ("GET", "HEAD") else frozenset()
        refuse([_unknown(name) for name in request.query_params if name not in known])
        refuse(
            [
                Fault(f"?{name}", "invalid", f"{name} is given once.")
                for name, values in request.query_params.lists()
                if len(values) > 1 or not is_kept(values[0])
            ]
        )

    def http_method_not_allowed(self, request: HttpRequest | Request, *args: Any, **kwargs: Any) -> NoReturn:
        raise MethodNotAllowed(request.method or "")


def person(request: Request) -> User:
    """Who is calling."""
    assert isinstance(request.user, User)  # HasScope let nobody else through
    return request.user


def token(request: Request) -> ApiToken:
    """The token of the call."""
    assert isinstance(request.auth, ApiToken)
    return request.auth


def _unknown(name: str) -> Fault:
    return Fault(f"?{name[:80]}", "unknown_key", f"There is no parameter {name[:40]!r} here.")
