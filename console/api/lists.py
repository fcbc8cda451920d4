"""How is a list cut into pages? (limit, order, filters, fields, count; a signed cursor that holds filter and order)

Pages follow the ordered keys of the last row, so items added or changed meanwhile neither repeat nor vanish.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.core import signing
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from allocations.errors import DomainError, Fault, Invalid

PARAMETERS = frozenset({"limit", "order", "fields", "count", "cursor"})
LIMIT, MOST = 100, 500
COUNT_MOST = 10_000
_SALT = "berth.api.cursor"
_KEPT = timedelta(days=1)


@dataclass(frozen=True)
class Asked:
    """What was asked of a list: filters, the order as (column, descending) with the row id last, where to go on."""

    path: str
    filters: Mapping[str, str]
    order: str
    columns: tuple[tuple[str, bool], ...]
    after: tuple[Any, ...] | None
    limit: int
    fields: tuple[str, ...]
    with_count: bool


def asked(request: Request, *, orderable: Mapping[str, str], default: str) -> Asked:
    """Read the parameters. `orderable` maps a key to a column that is never null; `default` is an order.

    Raises Invalid for a wrong limit, order or cursor, cursor_expired for one that is older than a day.
    """
    given = {name: str(value) for name, value in request.query_params.items() if name not in PARAMETERS}
    order, after = request.query_params.get("order"), None
    if cursor := request.query_params.get("cursor"):
        kept = _read(cursor, request.path)
        if (given and given != kept["filters"]) or (order and order != kept["order"]):
            raise _wrong("cursor", "A cursor holds its filters and its order: send it alone or with the same.")
        given, order, after = kept["filters"], kept["order"], tuple(_value(each) for each in kept["after"])
    order = order or default
    fields = tuple(each for each in request.query_params.get("fields", "").split(",") if each)
    return Asked(
        path=request.path,
        filters=given,
        order=order,
        columns=_columns(order, orderable),
        after=after,
        limit=_limit(request),
        fields=fields,
        with_count=_truth(request.query_params.get("count", "false"), "count"),
    )


def answer(asked: Asked, rows: QuerySet[Any], shapes: Callable[[Sequence[Any]], list[dict[str, Any]]]) -> Response:
    """One page: items, next, and count where it was asked for. One query for the rows, one for the count."""
    ordered = rows.order_by(*(f"-{name}" if is_down else name for name, is_down in asked.columns))
    if asked.after is not None:
        ordered = ordered.filter(_past(asked.columns, asked.after))
    found = list(ordered[: asked.limit + 1])
    page = found[: asked.limit]
    cursor = _cursor(asked, page[-1]) if len(found) > asked.limit else None
    content: dict[str, Any] = {"items": [_picked(item, asked.fields) for item in shapes(page)], "next": cursor}
    if asked.with_count:
        count = rows.order_by()[: COUNT_MOST + 1].count()
        content["count"] = min(count, COUNT_MOST)
        if count > COUNT_MOST:
            content["count_is"] = "at_least"
    if cursor is None:
        return Response(content)
    more = {"fields": ",".join(asked.fields)} if asked.fields else {}
    link = f"{asked.path}?{urlencode({'cursor': cursor, 'limit': asked.limit, **more})}"
    return Response(content, headers={"Link": f'<{link}>; rel="next"'})


def words(filters: Mapping[str, str], name: str, known: Sequence[str]) -> list[str] | None:
    """The comma-separated words of a filter; None when it is not given. Raises Invalid for a word not in `known`."""
    if name not in filters:
        return None
    chosen = filters[name].split(",")
    if unknown := [word for word in chosen if word not in known]:
        raise _wrong(name, f"{name} has no {unknown[0][:40]!r}; it is one of {', '.join(known)}.")
    return chosen


def truth(filters: Mapping[str, str], name: str) -> bool | None:
    """The true or false of a filter; None when it is not given."""
    return _truth(filters[name], name) if name in filters else None


def moment(filters: Mapping[str, str], name: str) -> datetime | None:
    """The moment of a filter; None when it is not given. Raises Invalid, offset_needed for one without an offset."""
    if name not in filters:
        return None
    try:
        found = datetime.fromisoformat(filters[name])
    except ValueError as error:
        raise _wrong(name, f"{name} is a moment like 2026-12-01T08:00:00Z.") from error
    if found.utcoffset() is None:
        raise _wrong(name, f"{name} needs its offset, like 2026-12-01T08:00:00Z.", "offset_needed")
    return found


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(LIMIT))
    if not given.isascii() or not given.isdigit() or int(given[:9]) < 1:
        raise _wrong("limit", f"limit is a whole number from 1 to {MOST}.")
    return min(int(given[:9]), MOST)


def _columns(order: str, orderable: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    columns: list[tuple[str, bool]] = []
    for each in order.split(","):
        name = each.removeprefix("-")
        taken = [column for column, _ in columns]
        if name not in orderable or orderable[name] in taken or "pk" in taken:
            known = ", ".join(orderable)
            raise _wrong("order", f"order is made of {known}, each once, id last, with - for descending.")
        columns.append((orderable[name], each.startswith("-")))
    if columns[-1][0] != "pk":
        columns.append(("pk", columns[-1][1]))
    return tuple(columns)


def _past(columns: Sequence[tuple[str, bool]], after: Sequence[Any]) -> Q:
    """Rows that come after these values, as SQL's row comparison would say with mixed directions."""
    condition, equal = Q(pk__in=()), Q()
    for (name, is_down), value in zip(columns, after, strict=True):
        condition |= equal & Q(**{f"{name}__{'lt' if is_down else 'gt'}": value})
        equal &= Q(**{name: value})
    return condition


def _cursor(asked: Asked, last: Model) -> str:
    after = []
    for name, _ in asked.columns:
        value: Any = last
        for part in name.split("__"):
            value = getattr(value, part)
        after.append({"moment": value.isoformat()} if isinstance(value, datetime) else value)
    kept = {"path": asked.path, "filters": dict(asked.filters), "order": asked.order, "after": after}
    return signing.dumps(kept, salt=_SALT, compress=True)


def _read(cursor: str, path: str) -> dict[str, Any]:
    try:
        kept = signing.loads(cursor, salt=_SALT, max_age=_KEPT)
    except signing.SignatureExpired as error:
        raise DomainError("cursor_expired", "A cursor is good for a day: start again from the first page.") from error
    except signing.BadSignature as error:
        raise _wrong("cursor", "This is no cursor of this Berth.") from error
    if kept["path"] != path:
        raise _wrong("cursor", "This cursor belongs to another list.")
    return dict(kept)


def _value(kept: Any) -> Any:
    return datetime.fromisoformat(kept["moment"]) if isinstance(kept, dict) else kept


def _picked(item: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    if unknown := [name for name in fields if name not in item]:
        raise _wrong("fields", f"There is no key {unknown[0][:40]!r}; there are {', '.join(item)}.")
    return {name: item[name] for name in fields} if fields else item


def _truth(word: str, name: str) -> bool:
    if word not in ("true", "false"):
        raise _wrong(name, f"{name} is true or false.")
    return word == "true"


def _wrong(name: str, sentence: str, code: str = "invalid") -> Invalid:
    return Invalid(sentence, Fault(f"?{name}", code, sentence), code=code)
