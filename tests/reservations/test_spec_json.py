"""Does one validator read and write every ask?"""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.errors import Invalid
from reservations.spec_json import spec_from, spec_to
from scheduling.spec import ReservationSpec

ASK: dict[str, Any] = {"flavor": "gb200", "racks": 4, "duration_minutes": 4320}

names = st.lists(st.integers(1, 999).map("gb{:03}".format), max_size=5, unique=True).map(
    lambda each: tuple(sorted(each))
)


@st.composite
def specs(draw: st.DrawFn) -> ReservationSpec:
    size = draw(st.sampled_from(["racks", "nodes", "gpus"]))
    start = draw(st.none() | st.integers(0, 60_000_000))
    room = draw(st.none() | st.integers(1, 600_000))
    of_racks = size == "racks"
    return ReservationSpec(
        flavor=draw(st.sampled_from(["gb200", "h100-hgx"])),
        duration_minutes=draw(st.integers(1, 576_000)),
        nodes_per_rack=draw(st.none() | st.integers(1, 72)) if of_racks else None,
        spare_nodes=draw(st.integers(0, 4)) if of_racks else 0,
        same_block=draw(st.booleans()),
        max_blocks=draw(st.none() | st.integers(1, 9)),
        avoid=draw(names),
        prefer=draw(names),
        avoid_racks=draw(names),
        prefer_racks=draw(names),
        earliest_start_minute=start,
        latest_end_minute=None if room is None else (start or 0) + room,
        ignore_jobs=draw(st.booleans()),
        nvlink=draw(st.sampled_from(["full", "degraded_ok", "not_needed"])),
        **{size: draw(st.integers(1, 1000))},
    )


@given(specs())
def test_what_is_written_is_read_back_equal(spec: ReservationSpec) -> None:
    written = spec_to(spec)
    assert spec_from(written) == spec
    assert spec_to(spec_from(written)) == written


def test_moments_of_any_offset_are_the_same_minute() -> None:
    east = spec_from({**ASK, "earliest_start_at": "2027-01-05T10:00:00+02:00"})
    assert east == spec_from({**ASK, "earliest_start_at": "2027-01-05T08:00:00Z"})
    assert spec_to(east)["earliest_start_at"] == "2027-01-05T08:00:00Z"


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"colour": "red"}, "/spec/colour", "unknown_key"),
        ({"a/b~c": 1}, "/spec/a~1b~0c", "unknown_key"),
        ({"earliest_start_at": "2027-01-05T08:00:00"}, "/spec/earliest_start_at", "offset_needed"),
        ({"earliest_start_at": "2027-01-05T08:00:30Z"}, "/spec/earliest_start_at", "not_on_minute"),
        ({"earliest_start_at": "tomorrow"}, "/spec/earliest_start_at", "invalid"),
        ({"earliest_start_at": "9999-12-31T23:59:00-14:00"}, "/spec/earliest_start_at", "invalid"),
        ({"earliest_start_at": 17}, "/spec/earliest_start_at", "invalid"),
        ({"latest_end_at": "2026-12-01T08:00:00Z"}, "/spec/latest_end_at", "in_the_past"),
        (
            {"earliest_start_at": "2027-01-07T08:00:00Z", "latest_end_at": "2027-01-06T08:00:00Z"},
            "/spec/latest_end_at",
            "period_reversed",
        ),
        ({"flavor": "h100"}, "/spec/flavor", "unknown_flavor"),
        ({"flavor": None}, "/spec/flavor", "invalid"),
        ({"duration_minutes": ""}, "/spec/duration_minutes", "invalid"),
        ({"duration_minutes": 0}, "/spec/duration_minutes", "invalid"),
        ({"duration_minutes": 10**9}, "/spec/duration_minutes", "invalid"),
        ({"racks": True}, "/spec/racks", "invalid"),
        ({"racks": "4"}, "/spec/racks", "invalid"),
        ({"racks": -1}, "/spec/racks", "invalid"),
        ({"racks": 10**30}, "/spec/racks", "invalid"),
        ({"racks": 1.5}, "/spec/racks", "invalid"),
        ({"racks": None}, "/spec/racks", "invalid"),
        ({"nodes": 4}, "/spec/racks", "invalid"),
        ({"same_block": "yes"}, "/spec/same_block", "invalid"),
        ({"avoid": "gb[001-"}, "/spec/avoid", "invalid"),
        ({"avoid": "gb[1-999999999]"}, "/spec/avoid", "invalid"),
        ({"avoid": [1]}, "/spec/avoid", "invalid"),
        ({"avoid_racks": {"r1": 1}}, "/spec/avoid_racks", "invalid"),
        ({"nvlink": "maybe"}, "/spec/nvlink", "invalid"),
    ],
)
def test_a_wrong_value_points_at_its_key_with_its_code(change: dict[str, Any], pointer: str, code: str) -> None:
    at = datetime(2027, 1, 4, 9, tzinfo=UTC)
    with pytest.raises(Invalid) as caught:
        spec_from({**ASK, **change}, at=at, flavors=("gb200",))
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [(pointer, code)]
    assert caught.value.code == code
    assert caught.value.sentence.endswith(".")


def test_all_wrong_keys_are_told_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        spec_from({"racks": "x", "colour": 1})
    told = {fault.pointer for fault in caught.value.faults}
    assert told == {"/spec/racks", "/spec/colour", "/spec/flavor", "/spec/duration_minutes"}


@pytest.mark.parametrize("sent", [None, [], "racks=4", 7])
def test_what_is_no_object_is_refused(sent: Any) -> None:
    with pytest.raises(Invalid):
        spec_from(sent)


def test_a_form_sends_the_wall_clock_of_its_zone() -> None:
    spec = spec_from({**ASK, "earliest_start_at": "2027-01-05T09:00"}, zone="Europe/Berlin")
    assert spec_to(spec)["earliest_start_at"] == "2027-01-05T08:00:00Z"


@pytest.mark.parametrize(("moment", "words"), [("2027-03-28T02:30", "does not exist"), ("2027-10-31T02:30", "twice")])
def test_a_time_that_the_zone_skips_or_repeats_is_asked_not_guessed(moment: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        spec_from({**ASK, "earliest_start_at": moment}, zone="Europe/Berlin")
