"""How does the planner's answer read on a page? (a Preview as one sentence, drawings, cost, approval, other ways)"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from console.web import drawings, phrases
from console.web.reserve_form import ReservationForm, query_of
from reservations.moments import moment_of
from reservations.queries import DisclosedReason
from reservations.services.preview import ApprovalPreview, Preview
from scheduling.answers import Alternative, Placement
from scheduling.periods import parse_moment
from scheduling.spec import ReservationSpec

_UTC_WORDS = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d) UTC|T(\d\d:\d\d):\d\dZ)")
_STEP_WORDS = {1: "one approval", 2: "two approvals", 3: "three approvals"}
_SHAPES = {"outage": "hatch", "unhealthy": "cross", "nvlink_unhealthy": "cross", "never_possible": "cross"}


def answer_context(form: ReservationForm, preview: Preview, at: datetime) -> dict[str, Any]:
    """Everything that answer.html shows for a valid form and its preview."""
    zone = timezone.get_current_timezone()
    asked, unit = asked_of(form.cleaned_data)
    chosen = None if preview.placement is None else moment_of(preview.placement.start_minute)
    blocks = drawings.map_drawing(preview.map, zone)
    return {
        "now": at,
        "answer": _verdict(form, preview, zone, at),
        "bars": drawings.strip_drawing(preview.strip, asked, unit, chosen, zone),
        "blocks": blocks,
        "map_heading": "Where" if preview.placement else "The racks when the most are free",
        "cost": _cost(form, preview),
        "approval": _approval(preview.approval, chosen is not None and preview.can_be_asked),
        "alternatives": [_way(form, preview, way, zone, at) for way in preview.refusal.alternatives]
        if preview.refusal
        else [],
        "hints": _hints(form, preview),
        "can_be_asked": preview.can_be_asked,
        "starts_at": chosen,
        "deed": deed_label(form, chosen, zone),
    }


def wrong_context(form: ReservationForm, at: datetime) -> dict[str, Any]:
    """What stands in place of the answer while the form says nothing that can be asked."""
    sentences = [str(error) for name, errors in form.errors.items() if name != "purpose" for error in errors]
    verdict = sentences[0] if len(sentences) == 1 else f"{len(sentences)} fields say something else than they can"
    return {
        "now": at,
        "answer": {"tone": "idle", "verdict": verdict.rstrip("."), "detail": "You see the answer before you send."},
        "can_be_asked": False,
        "hints": {},
        "deed": "Request racks",
    }


def asked_of(typed: Mapping[str, Any]) -> tuple[int, str]:
    """How much is asked and its unit: (4, "rack")."""
    for key, unit in (("racks", "rack"), ("nodes", "node"), ("gpus", "GPU")):
        if typed.get(key) is not None:
            return int(typed[key]), unit
    return 0, "rack"


def deed_label(form: ReservationForm, starts_at: datetime | None, zone: tzinfo) -> str:
    """The button's words: "Request 4 racks from Sun 6 Dec 09:00"."""
    amount = phrases.amount(*asked_of(form.cleaned_data))
    return f"Request {amount}" if starts_at is None else f"Request {amount} from {phrases.moment(starts_at, zone)}"


def in_zone(sentence: str, zone: tzinfo) -> str:
    """A sentence from below, where moments are in UTC, with them in the person's zone."""
    return _UTC_WORDS.sub(lambda at: phrases.moment(parse_moment(f"{at[1]}T{at[2] or at[3]}:00Z"), zone), sentence)


def reasons_of(reasons: Iterable[DisclosedReason], zone: tzinfo) -> list[dict[str, Any]]:
    """Reasons for components/reason.html; the sentence already names what is in the way."""
    return [{"sentence": in_zone(each.sentence, zone), "shape": _SHAPES.get(each.code, "triangle")} for each in reasons]


def _verdict(form: ReservationForm, preview: Preview, zone: tzinfo, at: datetime) -> dict[str, Any]:
    """The answer's first sentence, its detail and, for a no, the reasons."""
    faults = [{"sentence": in_zone(fault.sentence, zone)} for fault in preview.faults]
    if preview.placement is not None:
        start, end = moment_of(preview.placement.start_minute), moment_of(preview.placement.end_minute)
        when, where = phrases.period(start, end, zone, at), _where(form, preview, preview.placement)
        if not faults:
            return {"tone": "good", "verdict": f"Fits from {when}", "detail": where}
        return {
            "tone": "wait",
            "verdict": f"Free from {when}, but not yours to ask",
            "detail": where,
            "reasons": faults,
        }
    assert preview.refusal is not None
    codes = {reason.code for reason in preview.refusal.reasons}
    reasons = [*reasons_of(preview.refusal.reasons, zone), *faults]
    if "never_possible" in codes:
        return {"tone": "bad", "verdict": "Never possible", "reasons": reasons}
    if "window_too_short" in codes:
        return {"tone": "wait", "verdict": "Your window is too short", "reasons": reasons}
    has_window = bool(form.cleaned_data["latest_end_at"])
    return {"tone": "wait", "verdict": "Not in your window" if has_window else "Does not fit", "reasons": reasons}


def _where(form: ReservationForm, preview: Preview, placement: Placement) -> str:
    """Which racks, how many nodes of each, and whether this is the first start: the second sentence."""
    blocks = [block.name for block in preview.map if any(rack.is_picked for rack in block.racks)]
    place = _place(placement)
    if blocks and any(blocks):
        place += f" in {'block' if len(blocks) == 1 else 'blocks'} {' and '.join(blocks)}"
    shape = ""
    if form.cleaned_data.get("racks") and placement.racks:
        racks, whole = len(placement.racks), form.chosen_flavor.nodes_per_rack
        working, spares = len(placement.working_nodes), len(placement.spares)
        if not working % racks and not spares % racks:
            spare = {0: "", racks: " and one spare"}.get(spares, f" and {spares // racks} spares")
            shape = f", {working // racks} of {phrases.nodes(whole)}{' each' if racks > 1 else ''}{spare}"
    return (
        f"{place}{shape}. The earliest start {'in your window' if form.cleaned_data['latest_end_at'] else 'there is'}."
    )


def _place(placement: Placement) -> str:
    """Its racks, or how many nodes it has where they are of no rack."""
    return drawings.racks_text(placement.racks) if placement.racks else phrases.nodes(len(placement.nodes))


def _cost(form: ReservationForm, preview: Preview) -> str:
    """What it takes, who pays and what is left: one line; "" where nothing was placed."""
    cost = preview.cost
    if cost is None:
        return ""
    unit = "GPU-hour" if form.chosen_flavor.gpus_per_node else "node-hour"
    takes = phrases.amount(round(cost.gpu_hours), unit)
    if cost.allocation is None:
        return f"{takes}, and no allocation to take them from."
    payer = f"{takes} from {cost.allocation.public_id} of {cost.allocation.team.path}"
    if cost.left_after_gpu_hours is None:
        return f"{payer}, which has no limit."
    if cost.left_after_gpu_hours < 0:
        return f"{payer}, which has {phrases.amount(round(-cost.left_after_gpu_hours), unit)} too few."
    return f"{payer}; {round(cost.left_after_gpu_hours):,} are left after it."


def _approval(approval: ApprovalPreview | None, can_be_asked: bool) -> str:
    """Who must say yes and how long the racks are held meanwhile."""
    if approval is None or not can_be_asked:
        return ""
    if approval.is_automatic or not approval.steps:
        return f"Approved at once{f' by the policy {approval.policy}' if approval.policy else ''}."
    count = sum(quorum for _, quorum in approval.steps)
    roles = ", then ".join(role if quorum == 1 else f"{quorum} {role}s" for role, quorum in approval.steps)
    held = phrases.duration_words(moment_of(approval.hold_minutes) - moment_of(0))
    needs = _STEP_WORDS.get(count, f"{count} approvals")
    return f"Needs {needs} ({roles}); the racks are held for you meanwhile, for {held}."


def _hints(form: ReservationForm, preview: Preview) -> dict[str, str]:
    """What stands under racks and duration once the answer is known: GPUs, spares and GPU-hours."""
    if preview.cost is None or preview.placement is None:
        return {}
    has_gpus = bool(form.chosen_flavor.gpus_per_node)
    unit = "GPU" if has_gpus else "node"
    spare = preview.cost.held_gpus - preview.cost.use_gpus
    size = phrases.amount(preview.cost.use_gpus, unit) + (f", {spare:,} more spare" if spare else "")
    return {"racks": size, "duration": phrases.amount(round(preview.cost.gpu_hours), f"{unit}-hour")}


def _way(form: ReservationForm, preview: Preview, way: Alternative, zone: tzinfo, at: datetime) -> dict[str, Any]:
    """Another way as components/alternative.html takes it; its link is the form filled with it."""
    asked, found = form.cleaned_data, way.placement
    start = phrases.moment(moment_of(found.start_minute), zone, at)
    size = phrases.amount(*asked_of({key: getattr(way.spec, key) for key in ("racks", "nodes", "gpus")}))
    length = phrases.duration_words(moment_of(way.spec.duration_minutes) - moment_of(0))
    racks = _place(found)
    title, detail = {
        "later": (f"Start {start}", f"{size} for {length}, after your window"),
        "smaller": (f"Start {start} with {size}", f"the same {length}, on {racks}"),
        "shorter": (f"Start {start} for {length}", f"{size}, on {racks}"),
        "split": _split_words(start, size, racks, way),
        "other_flavor": (f"Start {start} on {way.spec.flavor}", f"{size} for {length} of another flavor"),
        "other_cluster": (f"Start {start} on {found.cluster}", f"{size} for {length}, on {racks}"),
    }.get(way.kind, (f"Start {start}", f"{size} for {length}, on {racks}"))
    spec = _as_typed(way.spec, preview.spec, asked)
    query = query_of(spec, team=asked["team"], cluster=found.cluster, purpose=asked.get("purpose", ""))
    return {"title": title, "detail": detail, "label": "Use this", "url": f"{reverse('reserve')}?{urlencode(query)}"}


def _split_words(start: str, size: str, racks: str, way: Alternative) -> tuple[str, str]:
    """Title and detail of the same amount over more blocks, or as single nodes instead of whole racks."""
    crosses = way.placement.score["blocks"] > 1
    detail = (
        f"{racks}; traffic crosses the spine" if crosses else f"on {racks}" if way.placement.racks else "of no rack"
    )
    if way.spec.racks is None:
        return f"Start {start} with {size} instead of racks", detail
    return f"Start {start} over several blocks", detail


def _as_typed(spec: ReservationSpec, searched: ReservationSpec, asked: Mapping[str, Any]) -> ReservationSpec:
    """The spec without the ends of the window that nobody typed: the search put today and the horizon there."""
    start, end = spec.earliest_start_minute, spec.latest_end_minute
    if not asked.get("earliest_start_at") and start == searched.earliest_start_minute:
        start = None
    if not asked.get("latest_end_at") and end == searched.latest_end_minute:
        end = None
    return replace(spec, earliest_start_minute=start, latest_end_minute=end)
