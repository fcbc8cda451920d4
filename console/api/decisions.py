"""/decisions: who said what on which ask; and say yes or no to one."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.errors import Fault, Invalid, NotFound
from allocations.models import Decision, User
from allocations.public_ids import number_of
from console.api import body, idempotency, lists
from console.api.clusters import missing
from console.api.endpoint import Endpoint, person
from console.api.idempotency import Answer
from console.api.reservation_shape import one
from reservations import queries
from reservations.models import Reservation
from reservations.moments import text_of
from reservations.services.approve import approve
from reservations.services.reject import reject

_DEEDS = {"approve": approve, "reject": reject}
_KEYS = ("subject", "subject_version", "verdict")


class Decisions(Endpoint):
    """List decisions on asks that the caller may see; make one."""

    scopes: ClassVar[Mapping[str, str]] = {"GET": "read", "POST": "approve"}
    parameters = lists.PARAMETERS | {"subject", "verdict"}

    def get(self, request: Request) -> Response:
        asked = lists.asked(request, orderable={"id": "pk", "decided_at": "decided_at"}, default="-id")
        rows = _visible(person(request))
        if "subject" in asked.filters:
            rows = rows.filter(step__case__reservation=number_of(asked.filters["subject"], "R"))
        verdicts = lists.words(asked.filters, "verdict", Decision.Verdict.values)
        if verdicts is not None:
            rows = rows.filter(verdict__in=verdicts)
        return lists.answer(asked, rows, shapes)

    def post(self, request: Request) -> Response:
        return idempotency.once(request, lambda: self._decide(request), at=self.at, is_required=True)

    def _decide(self, request: Request) -> Answer:
        content = body.sent(request, required=_KEYS, optional=("reason",))
        version, reason = body.whole(content, "subject_version"), body.text(content, "reason")
        verdict, user = _verdict(content), person(request)
        row = _subject(user, body.text(content, "subject"))
        _DEEDS[verdict](reservation=row, actor=user, at=self.at, reason=reason, version=version)
        made = _visible(user).filter(step__case=row.approval_case_id, approver=user).latest("pk")
        return Answer(201, shapes([made])[0], location=f"/api/v1/decisions/{made.public_id}")


class OneDecision(Endpoint):
    """One decision by its id."""

    def get(self, request: Request, public_id: str) -> Response:
        found = _visible(person(request)).filter(pk=number_of(public_id, "D")).first()
        if found is None:
            raise NotFound()
        return Response(shapes([found])[0])


def shapes(rows: Sequence[Decision]) -> list[dict[str, Any]]:
    """The JSON objects of decisions; no query. `subject_version` is the version that was decided on."""
    return [
        {
            "id": row.public_id,
            "subject": row.step.case.reservation.public_id,
            "subject_version": row.subject_version,
            "step": row.step.number,
            "role": row.step.role,
            "verdict": row.verdict,
            "reason": row.reason,
            "counter_offer": row.counter_offer,
            "decided_by": row.approver.public_id,
            "decided_at": text_of(row.decided_at),
        }
        for row in rows
    ]


def _visible(user: User) -> QuerySet[Decision]:
    """Decisions on reservations that the person may open."""
    seen = queries.visible_reservations(user).order_by().values("approval_case")
    return Decision.objects.filter(step__case__in=seen).select_related("step__case__reservation", "approver")


def _subject(user: User, public_id: str) -> Reservation:
    try:
        return one(user, public_id)
    except NotFound as error:
        raise missing(error.sentence, "/subject") from error


def _verdict(content: Mapping[str, Any]) -> str:
    verdict = body.text(content, "verdict")
    if verdict not in _DEEDS:
        sentence = f"The verdict is one of {', '.join(_DEEDS)}."
        raise Invalid(sentence, Fault("/verdict", "invalid", sentence))
    return verdict
