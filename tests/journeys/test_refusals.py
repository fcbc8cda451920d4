"""What does a person read who is refused: beside the field, in the inbox, on the reservation's page?"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from allocations.models import Cluster
from console.push import endpoints
from reservations.models import Reservation
from tests.doubles.kube_api import KubeApi
from tests.journeys.place import asked, push, visit, world_of_today
from tests.journeys.walks import approve, fill, sign, verdict
from tests.reservations.world import World

pytestmark = pytest.mark.part("chromium")
Visit = Callable[..., Page]


@pytest.fixture
def world(live: str) -> World:
    return world_of_today()


@pytest.fixture
def open_as(open_page: Callable[..., Page], live: str, world: World) -> Visit:
    return lambda name, **options: visit(open_page, live, world, name, **options)


def test_what_is_wrong_stands_beside_its_field_and_what_was_typed_stays(open_as: Visit) -> None:
    lead = open_as("lead")
    lead.goto("/reservations/new")
    fill(lead, racks="3", duration="for ever")
    expect(lead.locator("#id_duration_error")).to_contain_text("“for ever” is no length of time. Write 3 days")
    expect(lead.locator("#ask").get_by_role("button")).to_be_disabled()
    lead.get_by_text("More: same block").click()
    fill(lead, duration="36 hours", nodes="4")
    expect(lead.locator("#id_nodes_error, #id_racks_error").filter(has_text=re.compile(r"\w"))).not_to_have_count(0)
    fill(lead, nodes="")
    expect(verdict(lead)).to_contain_text("Fits from")
    lead.locator("#ask").get_by_role("button").click()
    expect(lead.locator("#id_purpose_error")).to_contain_text("required")
    expect(lead.get_by_label("What for")).to_have_attribute("aria-invalid", "true")
    expect(lead.get_by_label("Racks", exact=True)).to_have_value("3")
    expect(lead.get_by_label("For", exact=True)).to_have_value("36 hours")
    assert not Reservation.objects.exists()


def test_a_rejection_needs_a_reason_which_the_asker_reads(open_as: Visit, world: World) -> None:
    reservation = asked(world).public_id
    approver = open_as("approver")
    approver.goto("/inbox")
    approver.get_by_role("button", name="Reject").first.click()
    dialog = approver.locator(f"#reject-{reservation}")
    reason = dialog.get_by_label("Reason, seen by Lead")
    dialog.get_by_role("button", name=f"Reject {reservation}").click()
    expect(dialog).to_be_visible()  # the browser asks for the reason
    assert reason.evaluate("field => field.validity.valueMissing")
    reason.evaluate("field => field.removeAttribute('required')")
    dialog.get_by_role("button", name=f"Reject {reservation}").click()
    expect(approver.get_by_role("alert")).to_contain_text(f"{reservation} is not decided")
    expect(approver.get_by_role("alert")).to_contain_text("Say why.")
    approver.get_by_role("button", name="Reject").first.click()
    reason.fill("The block is serviced that week")
    dialog.get_by_role("button", name=f"Reject {reservation}").click()
    expect(approver.get_by_role("status").filter(has_text=f"{reservation} is rejected")).to_be_visible()
    lead = open_as("lead")
    lead.goto(f"/reservations/{reservation}")
    expect(sign(lead, "Decision")).to_have_text("rejected")
    expect(lead.locator("main")).to_contain_text("The block is serviced that week")


def test_the_second_of_two_approvers_reads_that_it_is_decided(open_as: Visit, world: World) -> None:
    reservation = asked(world).public_id
    first, second = open_as("approver"), open_as("colleague")
    second.goto("/inbox")
    second.get_by_role("button", name="Approve").first.click()
    approve(first, reservation)
    second.locator(f"#approve-{reservation}").get_by_role("button", name="Approve").click()
    alert = second.get_by_role("alert")
    expect(alert).to_contain_text(f"{reservation} is not decided")
    expect(alert).to_contain_text("approved")
    expect(second.locator("main")).to_contain_text("Nothing waits for you.")
    assert Reservation.objects.get().decision == "approved"


def test_an_unreachable_cluster_blocks_no_page_and_no_approval(open_as: Visit, world: World, tmp_path: Path) -> None:
    Cluster.objects.update(kind="kueue")
    with KubeApi() as api:
        config = api.write_kubeconfig(tmp_path / "config")
    endpoint = endpoints.connect(
        name="sol",
        kind="kueue",
        driver="kubernetes",
        options={"kubeconfig": str(config)},
        modes={"*": "enforce"},
        actor=None,
        at=timezone.now(),
    )
    assert push(endpoint) == "unreachable"
    reservation = asked(world).public_id
    approve(open_as("approver"), reservation)
    assert push(endpoint) == "unreachable"
    lead = open_as("lead")
    lead.goto(f"/reservations/{reservation}")
    expect(sign(lead, "Decision")).to_have_text("approved")
    expect(sign(lead, "On sol")).to_have_text("unreachable")
    expect(lead.locator("#state")).to_contain_text("It is pushed when it answers.")
    operator = open_as("operator")
    operator.goto("/clusters/sol")
    expect(operator.get_by_role("heading", level=1)).to_contain_text("unreachable")
    expect(operator.locator("main")).to_contain_text("after 2 failures")
