"""/reservations: who has which racks, ask for some, take an ask back, give racks back; wait until they are there."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.errors import DomainError, Fault, Invalid
from allocations.public_ids import number_of
from console.api import asks, body, etags, idempotency, lists
from console.api.endpoint import Endpoint, person, token
from console.api.idempotency import Answer
from console.api.reservation_shape import one, readable, shapes
from reservations.holdings import holdings
from reservations.models import Reservation
from reservations.services import cancel, deeds, submit, withdraw

MAX_WAIT_SECONDS = 60
# Each waiting call keeps one of the web server's eight threads: the other four stay free for pages.
MAX_WAITING = 4
_waiting = threading.BoundedSemaphore(MAX_WAITING)
LOOK_SECONDS = 1.0
_ORDERABLE = {"id": "pk", "start_at": "start_at", "end_at": "end_at", "created_at": "created_at"}
_MOMENTS = {
    "start_at_before": "start_at__lt",
    "start_at_after": "start_at__gte",
    "end_at_before": "end_at__lt",
    "end_at_after": "end_at__gte",
}
_PHASES = ("scheduled", "active", "over")


class Reservations(Endpoint):
    """List those the caller may see; ask for another one."""

    scopes: ClassVar[Mapping[str, str]] = {"GET": "read", "POST": "request"}
    parameters = lists.PARAMETERS | {"team", "team_subtree", "cluster", "decision", "phase", *_MOMENTS}

    def get(self, request: Request) -> Response:
        asked = lists.asked(request, orderable=_ORDERABLE, default="-id")
        user, scopes = person(request), token(request).scopes
        rows = filtered(readable(user), asked.filters, self.at)
        return lists.answer(asked, rows, lambda page: shapes(user, page, self.at, scopes))

    def post(self, request: Request) -> Response:
        def deed() -> Answer:
            made = submit.submit(**asks.submission(request, self.at), actor=person(request), at=self.at)
            return changed(request, made, self.at, status=201)

        return idempotency.once(request, deed, at=self.at, is_required=True)


class OneReservation(Endpoint):
    """One reservation; with wait_for=verified the answer comes when its cluster holds it, or at the time-out."""

    verb = "reservation.read"
    parameters = frozenset({"wait_for", "timeout_seconds"})
    deeds = ("withdraw", "cancel")

    def get(self, request: Request, public_id: str) -> Response:
        seconds = _seconds(request)
        if seconds is not None:
            row, content = awaited(request, public_id, seconds)
        else:
            row, content = found(request, public_id, self.at)
        etag = etags.etag_of(row.public_id, row.version)
        if seconds is None and etags.is_known(request, etag):
            return Response(status=304, headers={"ETag": etag})
        return Response(content, headers={"ETag": etag})


class ReservationNodes(Endpoint):
    """The nodes of one reservation, one by one, in rack order."""

    verb = "reservation.read"

    def get(self, request: Request, public_id: str) -> Response:
        row = one(person(request), public_id)
        held = holdings([row])[row.pk]
        items = [{"name": each.name, "rack": each.rack, "is_spare": each.is_spare} for each in held]
        return Response({"items": items, "next": None})


class _Deed(Endpoint):
    """A deed on one reservation: POST, with If-Match and Idempotency-Key taken, answered with the changed object."""

    scopes: ClassVar[Mapping[str, str]] = {"POST": "request"}
    do: ClassVar[Callable[..., Reservation]]

    def post(self, request: Request, public_id: str) -> Response:
        def deed() -> Answer:
            reason = body.text(body.sent(request, optional=("reason",)), "reason")
            row = one(person(request), public_id)
            check_match(request, row, self.at)
            return changed(
                request, type(self).do(reservation=row, actor=person(request), at=self.at, reason=reason), self.at
            )

        return idempotency.once(request, deed, at=self.at)


class Withdraw(_Deed):
    """Take back an ask that is not decided."""

    verb = "reservation.withdraw"
    do = withdraw.withdraw


class Cancel(_Deed):
    """Give back an approved reservation."""

    verb = "reservation.cancel"
    do = cancel.cancel


def found(request: Request, public_id: str, at: datetime) -> tuple[Reservation, dict[str, Any]]:
    """The reservation that the caller may see and its JSON object. Raises NotFound."""
    row = one(person(request), public_id)
    return row, shapes(person(request), [row], at, token(request).scopes)[0]


def changed(request: Request, row: Reservation, at: datetime, status: int = 200) -> Answer:
    """The answer of a deed: the object read again in the deed's transaction."""
    row, content = found(request, row.public_id, at)
    location = f"/api/v1/reservations/{row.public_id}" if status == 201 else ""
    return Answer(status, content, etags.etag_of(row.public_id, row.version), location)


def check_match(request: Request, row: Reservation, at: datetime) -> None:
    """Hold If-Match against the version under the locks that the deed itself takes, so that nothing comes between."""
    if "If-Match" not in request.headers:
        return
    _, row = deeds.locked(row)
    _, current = found(request, row.public_id, at)
    etags.check_match(request, etags.etag_of(row.public_id, row.version), current)


def awaited(request: Request, public_id: str, seconds: float) -> tuple[Reservation, dict[str, Any]]:
    """Look every second until the push is verified, cannot come any more, or the seconds are over.

    Raises rate_limited when MAX_WAITING calls wait in this process already.
    """
    if not _waiting.acquire(blocking=False):
        raise DomainError("rate_limited", f"{MAX_WAITING} calls wait here already: look again in some seconds.")
    try:
        until = time.monotonic() + seconds
        while True:
            row, content = found(request, public_id, timezone.now())
            left = until - time.monotonic()
            if content["push"]["state"] == "verified" or row.decision in _NEVER or left <= 0:
                return row, content
            rest(min(LOOK_SECONDS, left))
    finally:
        _waiting.release()


def rest(seconds: float) -> None:
    """Wait between two looks."""
    time.sleep(seconds)


_NEVER = frozenset({"rejected", "withdrawn", "lapsed"})  # nothing of these was ever pushed


def _seconds(request: Request) -> float | None:
    """How long to wait; None for not at all. More than MAX_WAIT_SECONDS is cut."""
    word, given = request.query_params.get("wait_for"), request.query_params.get("timeout_seconds")
    if word is None and given is None:
        return None
    if word != "verified":
        sentence = "wait_for is verified: say what to wait for."
        raise Invalid(sentence, Fault("?wait_for", "invalid", sentence))
    given = "50" if given is None else given
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        sentence = "timeout_seconds is a whole number of seconds."
        raise Invalid(sentence, Fault("?timeout_seconds", "invalid", sentence))
    return float(min(int(given), MAX_WAIT_SECONDS))


def filtered(rows: QuerySet[Reservation], filters: Mapping[str, str], at: datetime) -> QuerySet[Reservation]:
    """The rows that all filters take; a team is named by id or path, with team_subtree all teams below it too."""
    if "team" in filters:
        rows = rows.filter(_team(filters["team"]))
    if "team_subtree" in filters:
        rows = rows.filter(_below(filters["team_subtree"]))
    if "cluster" in filters:
        rows = rows.filter(cluster__name__in=filters["cluster"].split(","))
    decisions = lists.words(filters, "decision", Reservation.Decision.values)
    if decisions is not None:
        rows = rows.filter(decision__in=decisions)
    phases = lists.words(filters, "phase", _PHASES)
    if phases is not None:
        rows = rows.filter(_in_phases(phases, at))
    for name, condition in _MOMENTS.items():
        moment = lists.moment(filters, name)
        if moment is not None:
            rows = rows.filter(**{condition: moment})
    return rows


def _team(word: str) -> Q:
    return Q(team=number_of(word, "T")) if asks.is_team_id(word) else Q(team__path=word)


def _below(word: str) -> Q:
    path = asks.path_of(word)
    return Q(team__path=path) | Q(team__path__startswith=f"{path}/")


def _in_phases(phases: list[str], at: datetime) -> Q:
    """What states.phase() says of one, in SQL."""
    over = Q(end_at__lte=at) | Q(released_at__lte=at)
    begun = Q(start_at__lte=at)
    conditions = {"over": over, "active": ~over & begun, "scheduled": ~over & ~begun}
    condition = Q(pk__in=())
    for phase in phases:
        condition |= conditions[phase]
    return Q(decision="approved") & condition
