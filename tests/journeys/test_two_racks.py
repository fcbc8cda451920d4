"""Do two racks come from a browser to a real Slurm and to a Kueue, verified, put back, and taken away?

One console, started as on any machine, with a real Slurm of 72 nodes and a Kubernetes API over HTTP; the worker that
writes to them is killed on the way.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.frame.conftest import wait_for
from tests.journeys.installation import Installation
from tests.journeys.walks import People, approve, ask, cancel, fill, send, sign, sign_in, tomorrow, verdict

pytestmark = [pytest.mark.part("slurm"), pytest.mark.part("chromium")]
VERIFIED = re.compile(r"verified \d\d:\d\d")
FENCE = "berth.local/reservation"


@pytest.fixture(scope="module")
def console(browser: Browser) -> Iterator[Installation]:
    """The console with both clusters, which the operator lets it write to."""
    installation = Installation()
    try:
        installation.open()
        context = browser.new_context(base_url=installation.address)
        operator = sign_in(context.new_page(), "operator")
        for cluster in ("sol", "luna"):
            operator.goto(f"/clusters/{cluster}")
            operator.get_by_label("everything").select_option("enforce")
            operator.get_by_role("button", name="Set mode").click()
            expect(operator.get_by_role("status").filter(has_text=f"{cluster} is in enforce mode")).to_be_visible()
        context.close()
        yield installation
    finally:
        installation.close()


@pytest.fixture
def live(console: Installation) -> str:
    return console.address


@pytest.fixture(scope="module")
def states() -> dict[str, Any]:
    return {}


@pytest.fixture
def people(open_page: Callable[..., Page], states: dict[str, Any]) -> People:
    return People(open_page, states)


@pytest.fixture(scope="module")
def carved_out(console: Installation, browser: Browser) -> str:
    """Two racks of luna from now on, asked for, approved and verified: the number of the reservation."""
    context = browser.new_context(base_url=console.address)
    lead = sign_in(context.new_page(), "lead")
    reservation = ask(lead, cluster="luna", racks="2", duration="3 hours")
    other = browser.new_context(base_url=console.address)
    approve(sign_in(other.new_page(), "approver"), reservation)
    lead.reload()
    expect(sign(lead, "On luna")).to_contain_text(VERIFIED, timeout=120_000)
    for each in (context, other):
        each.close()
    return reservation


def test_an_operator_connects_two_clusters_and_sees_their_racks(console: Installation, people: People) -> None:
    assert "72 nodes created" in console.said_by["sol"]
    assert "72 nodes created" in console.said_by["luna"]
    assert "nothing to do" in console.import_fleet("sol")
    operator = people.visit("operator", "/fleet")
    for cluster in ("sol", "luna"):
        expect(operator.get_by_role("row").filter(has_text=cluster)).to_contain_text("72")
    operator.get_by_role("link", name="sol").first.click()
    expect(operator.get_by_role("heading", level=1, name="sol")).to_be_visible()
    expect(operator.locator(".rack-map li")).to_have_count(4)
    expect(operator.locator("main")).to_contain_text("4 racks in 2 blocks · 72 of 72 nodes healthy")


def test_an_impossible_ask_is_told_why_and_what_would_fit(people: People) -> None:
    lead = people.visit("lead")
    lead.keyboard.press("n")
    expect(lead).to_have_url(re.compile("/reservations/new"))
    fill(lead, cluster="sol", racks="3", duration="2 days")
    expect(verdict(lead)).to_contain_text("Fits from")
    lead.get_by_text("More: same block").click()
    lead.get_by_label("All racks in one block").check()
    expect(verdict(lead)).to_have_text("Never possible")
    expect(lead.locator("#answer .reasons")).to_contain_text("sol has at most 2 racks")
    expect(lead.locator("#ask").get_by_role("button")).to_be_disabled()
    lead.get_by_role("link", name="Use this").filter(has_text="Use this").last.click()
    expect(lead.get_by_label("Racks", exact=True)).to_have_value("2")
    expect(lead.get_by_label("All racks in one block")).to_be_checked()
    expect(verdict(lead)).to_contain_text("Fits from")


def test_two_racks_go_from_the_form_to_slurm_and_back(console: Installation, people: People) -> None:
    start_at = tomorrow()
    lead = people.visit("lead", "/reservations/new")
    fill(lead, cluster="sol", racks="2", duration="2 days")
    expect(verdict(lead)).to_contain_text("Fits from")
    fill(lead, earliest_start_at=f"{start_at:%Y-%m-%dT%H:%M}")
    expect(verdict(lead)).to_contain_text(re.compile(rf"Fits from .*\b{start_at.day} .*09:00"))
    starts = lead.get_by_role("group", name="Possible starts").get_by_role("button")
    assert starts.count() > 5
    expect(lead.locator(".strip button.fits[aria-pressed=true]")).to_have_count(1)
    expect(lead.locator('.rack-map [aria-label*="picked for you"]')).to_have_count(2)
    expect(lead.locator("#answer")).to_contain_text("6,912 GPU-hours from A-")
    fill(lead, purpose="Scaling run of the vision model")
    reservation = send(lead)
    is_held_and_not_the_leads_to_decide(lead, reservation)

    approver = people.visit("approver")
    expect(approver.get_by_role("link", name="Inbox 1").first).to_be_visible()
    approve(approver, reservation)
    lead.reload()
    expect(sign(lead, "Decision")).to_have_text("approved")
    expect(sign(lead, "On sol")).to_contain_text(VERIFIED)  # by itself: the page asks again until it is so
    expect(sign(lead, "Phase")).to_have_text("scheduled")
    expect(lead.locator("#use")).to_contain_text(re.compile(rf"sbatch .*--reservation=berth-{reservation} "))
    lead.reload()
    expect(lead.locator("#on-cluster")).to_contain_text(f"ReservationName=berth-{reservation}")
    there = console.reservations_on_slurm()[f"berth-{reservation}"]
    assert (there["Nodes"], there["Accounts"]) == ("gb[001-036]", "acme-vision")
    times = [datetime.fromisoformat(there[key]).astimezone(UTC) for key in ("StartTime", "EndTime")]
    assert times == [start_at, start_at + timedelta(days=2)]

    cancel(lead, reservation)
    expect(sign(lead, "On sol")).to_contain_text(re.compile(r"gone, verified \d\d:\d\d"))
    assert f"berth-{reservation}" not in console.reservations_on_slurm()


def is_held_and_not_the_leads_to_decide(lead: Page, reservation: str) -> None:
    """What the asker sees before the decision, and what they are refused."""
    expect(sign(lead, "Decision")).to_have_text("waits for an approver")
    expect(sign(lead, "Phase")).to_have_text("held")
    expect(lead.locator("#state [data-countdown]")).to_have_text(re.compile(r"^\d+ (d|h|min)"))
    expect(lead.get_by_role("button", name="Approve")).to_have_count(0)
    refused = lead.request.post(
        f"/reservations/{reservation}/decide",
        form={"verdict": "approve"},
        headers={"X-CSRFToken": lead.evaluate("document.cookie.match(/csrftoken=(\\w+)/)[1]"), "Referer": lead.url},
    )
    assert refused.status == 403
    lead.reload()
    expect(sign(lead, "Decision")).to_have_text("waits for an approver")


def test_one_deleted_by_hand_is_shown_as_drift_and_put_back(console: Installation, people: People) -> None:
    start = f"{tomorrow(12):%Y-%m-%dT%H:%M}"
    lead = people.visit("lead")
    reservation = ask(lead, cluster="sol", racks="2", earliest_start_at=start)
    approve(people.visit("approver"), reservation)
    lead.reload()
    expect(sign(lead, "On sol")).to_contain_text(VERIFIED)
    name = f"berth-{reservation}"
    before = console.reservations_on_slurm()[name]
    console.slurm.run("scontrol", "delete", f"ReservationName={name}")
    wait_for(lambda: name in console.reservations_on_slurm(), "it is put back")
    after = console.reservations_on_slurm()[name]
    keys = ("Nodes", "StartTime", "EndTime", "Accounts")
    assert [after[key] for key in keys] == [before[key] for key in keys]
    operator = people.visit("operator", "/clusters/sol")
    expect(operator.locator("main")).to_contain_text("putting back what was changed by hand")
    expect(operator.locator("main")).to_contain_text(f"reservation {name} is gone from sol by hand.")
    cancel(lead, reservation)


def test_a_worker_killed_between_two_steps_loses_nothing_and_does_nothing_twice(
    console: Installation, people: People
) -> None:
    commands = console.slow_commands()
    lead, approver, operator = people.visit("lead"), people.visit("approver"), people.visit("operator", "/clusters/sol")
    operator.get_by_label("Reason for a freeze").fill("two changes in one plan")
    operator.get_by_role("button", name="Freeze sol").click()
    start = f"{tomorrow(15):%Y-%m-%dT%H:%M}"
    first = ask(lead, cluster="sol", racks="2", earliest_start_at=start)
    second = ask(lead, cluster="sol", racks="1", earliest_start_at=start)
    for each in (first, second):
        approve(approver, each)
    commands.hold(second)
    operator.get_by_role("button", name="Write to sol again").click()
    commands.wait_until_held()
    assert set(console.reservations_on_slurm()) >= {f"berth-{first}"}
    killed = console.kill_worker()
    commands.kill_held()
    assert f"berth-{second}" not in console.reservations_on_slurm()
    for each in (first, second):
        lead.goto(f"/reservations/{each}")
        expect(sign(lead, "On sol")).to_contain_text(VERIFIED)
    assert console.worker() != killed
    shown = console.reservations_on_slurm()
    assert [shown[f"berth-{each}"]["Nodes"] for each in (first, second)] == ["gb[001-036]", "gb[037-054]"]
    # The first was made once; the second was asked for twice, of which one never reached Slurm.
    assert len(commands.asked(f"create reservation ReservationName=berth-{first} ")) == 1
    assert len(commands.asked(f"create reservation ReservationName=berth-{second} ")) == 2
    for each in (first, second):
        cancel(lead, each)


def test_two_racks_become_a_carve_out_on_kueue(console: Installation, people: People, carved_out: str) -> None:
    name = f"rsv-{carved_out.lower()}"
    fenced = console.fenced_nodes(carved_out)
    assert fenced == [f"luna-gb{number:03}" for number in range(1, 37)]
    assert name in console.kube.names("ResourceFlavor")
    queue = console.kube.get("ClusterQueue", name)
    assert queue is not None
    (quota,) = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert int(quota["nominalQuota"]) == 144
    assert name in console.kube.names("LocalQueue")
    assert {"acme-vision-gb200", "acme-speech-gb200"} <= set(console.kube.names("ClusterQueue"))
    lead = people.visit("lead", f"/reservations/{carved_out}")
    expect(sign(lead, "Phase")).to_have_text("active")
    expect(lead.locator("#on-cluster")).to_contain_text(name)
    expect(lead.locator("#use")).to_contain_text(name)


def test_a_carve_out_changed_by_hand_is_put_back_although_the_worker_dies_meanwhile(
    console: Installation, people: People, carved_out: str
) -> None:
    name, before = f"rsv-{carved_out.lower()}", console.fenced_nodes(carved_out)
    seen = len(console.kube.requests)
    released = console.kube.hang_next("* */nodes/luna-gb003*")
    console.kube.remove("ClusterQueue", name)
    for node in ("luna-gb002", "luna-gb003", "luna-gb004"):
        bare = console.kube.get("Node", node)
        assert bare is not None
        del bare["metadata"]["labels"][FENCE]
        bare["spec"]["taints"] = [each for each in bare["spec"]["taints"] if each["key"] != FENCE]
        console.kube.add(bare)

    def writes() -> list[str]:
        return [each for each in console.kube.requests[seen:] if not each.startswith("GET")]

    wait_for(lambda: any("luna-gb003" in each for each in writes()), "a step on the node hangs")
    assert "luna-gb002" in console.fenced_nodes(carved_out) and "luna-gb004" not in console.fenced_nodes(carved_out)
    console.kill_worker()
    released.set()
    wait_for(lambda: console.fenced_nodes(carved_out) == before, "every node is fenced again")
    wait_for(lambda: name in console.kube.names("ClusterQueue"), "the queue is there again")
    operator = people.visit("operator", "/clusters/luna")
    expect(operator.locator("main")).to_contain_text("putting back what was changed by hand")
    expect(operator.locator("main")).to_contain_text(f"ClusterQueue {name} is gone from luna by hand.")
    assert len([each for each in writes() if "luna-gb002" in each]) == 1


def test_cancelling_opens_the_carve_out(console: Installation, people: People, carved_out: str) -> None:
    lead = people.visit("lead")
    cancel(lead, carved_out)
    expect(sign(lead, "On luna")).to_contain_text("gone", timeout=120_000)
    assert console.fenced_nodes(carved_out) == []
    name = f"rsv-{carved_out.lower()}"
    gone = ("ResourceFlavor", "ClusterQueue", "LocalQueue")
    assert not any(name in console.kube.names(kind) for kind in gone)
    assert len(console.kube.names("Node")) == 72
