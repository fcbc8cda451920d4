"""Is a call that is repeated done once, and answered the same?"""

from datetime import timedelta

import pytest
import time_machine

from allocations.models import Event
from console.api.idempotency import fingerprint
from console.models import IdempotencyKey
from reservations.models import Reservation
from tests.api.callers import caller, problem
from tests.api.test_reservations import Of, wanted
from tests.reservations.asks import approved, ask
from tests.reservations.world import NOW, World


def test_the_same_call_again_answers_the_same_and_does_nothing(world: World, of: Of) -> None:
    lead = of("lead")
    first = lead.post("reservations", wanted(world), key="k-1")
    events = Event.objects.count()
    again = lead.post("reservations", wanted(world), key="k-1")
    assert (again.status_code, again.content) == (201, first.content)
    for name in ("ETag", "Location"):
        assert again[name] == first[name]
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert (Reservation.objects.count(), Event.objects.count()) == (1, events)


def test_a_replay_does_not_look_at_what_came_after(world: World, of: Of) -> None:
    lead = of("lead")
    first = lead.post("reservations", wanted(world), key="k-1")
    lead.post(f"reservations/{first.json()['id']}/withdraw")
    assert lead.post("reservations", wanted(world), key="k-1").json()["decision"] == "requested"


def test_key_order_and_the_writing_of_numbers_do_not_matter(world: World, of: Of) -> None:
    lead = of("lead")
    lead.post("reservations", wanted(world), key="k-1")
    turned = dict(reversed(wanted(world).items()))
    assert lead.post("reservations", turned, key="k-1")["Idempotency-Replayed"] == "true"
    assert fingerprint({"b": 1.0, "a": [1e2]}) == fingerprint({"a": [100], "b": 1})
    assert fingerprint({"a": True}) != fingerprint({"a": 1})
    assert fingerprint({"a": "1"}) != fingerprint({"a": 1})


def test_another_body_under_the_same_key_is_refused(world: World, of: Of) -> None:
    lead = of("lead")
    lead.post("reservations", wanted(world), key="k-1")
    problem(lead.post("reservations", wanted(world, purpose="Other"), key="k-1"), 422, "idempotency_key_reused")
    assert Reservation.objects.count() == 1


def test_after_a_refusal_the_key_is_judged_afresh(world: World, of: Of) -> None:
    lead = of("lead")
    problem(lead.post("reservations", wanted(world, purpose=""), key="k-1"), 400, "invalid")
    assert not IdempotencyKey.objects.exists()
    assert lead.post("reservations", wanted(world), key="k-1").status_code == 201


def test_a_key_belongs_to_its_owner_and_to_all_tokens_of_that_owner(world: World, of: Of) -> None:
    made = of("lead").post("reservations", wanted(world), key="k-1").json()
    assert caller(world.lead).post("reservations", wanted(world), key="k-1").json()["id"] == made["id"]
    caller(world.lead).post(f"reservations/{made['id']}/withdraw")
    assert of("second").post("reservations", wanted(world), key="k-1").json()["id"] != made["id"]


def test_a_key_belongs_to_its_address(world: World, of: Of) -> None:
    lead = of("lead")
    first, other = ask(world), ask(world, team=world.other_team, actor=world.outsider)
    assert lead.post(f"reservations/{first.public_id}/withdraw", key="k-1").status_code == 200
    problem(lead.post(f"reservations/{other.public_id}/withdraw", key="k-1"), 404, "not_found")


def test_a_deed_with_a_key_is_repeated_without_an_error(world: World, of: Of) -> None:
    row, lead = approved(world), of("lead")
    first = lead.post(f"reservations/{row.public_id}/cancel", key="k-1")
    again = lead.post(f"reservations/{row.public_id}/cancel", key="k-1")
    assert (first.status_code, again.content, again["ETag"]) == (200, first.content, first["ETag"])
    problem(lead.post(f"reservations/{row.public_id}/cancel", key="k-2"), 409, "wrong_state")


@pytest.mark.parametrize("path", ["reservations", "decisions"])
def test_where_a_key_is_needed_it_is_asked_for(world: World, of: Of, path: str) -> None:
    problem(of("lead").post(path, wanted(world), key=None), 400, "idempotency_key_missing")


@pytest.mark.parametrize("key", ["a b", "ä", "x" * 256])
def test_a_key_is_visible_ascii(world: World, of: Of, key: str) -> None:
    problem(of("lead").post("reservations", wanted(world), key=key), 400, "invalid")


def test_a_key_is_kept_for_seven_days(world: World, of: Of) -> None:
    lead = of("lead")
    made = lead.post("reservations", wanted(world), key="k-1").json()
    lead.post(f"reservations/{made['id']}/withdraw")
    with time_machine.travel(NOW + timedelta(days=7), tick=False):
        assert lead.post("reservations", wanted(world), key="k-1").json()["id"] != made["id"]
    assert IdempotencyKey.objects.filter(key="k-1").count() == 1
