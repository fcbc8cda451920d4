"""Does a cluster that discloses no names keep them on the pages and in the API that tell of its push?"""

from typing import Any

import pytest
from django.test import Client

from allocations.models import Cluster
from console import tokens
from console.models import ClusterEndpoint, ObservedObject, PushPlan
from tests.reservations.world import NOW, World

NAME = "berth-R-999"  # what each sentence below names


@pytest.fixture
def told(world: World) -> World:
    """sol, about which everything that a push can say has been said."""
    cluster = world.cluster
    ClusterEndpoint.objects.create(cluster=cluster, driver="files", state="failed", sentence=f"{NAME} did not take.")
    for state, name in (("drifted", NAME), ("foreign", f"{NAME}-theirs")):
        ObservedObject.objects.create(
            cluster=cluster, object_class="reservation", name=name, state=state, observed_at=NOW, since_at=NOW
        )
    PushPlan.objects.create(
        cluster=cluster,
        generation=1,
        state="waiting",
        created_at=NOW,
        sentence=f"{NAME} waits.",
        gate_reasons=[f"{NAME} would be deleted."],
        compromises=[{"code": "x", "subject": NAME, "sentence": f"{NAME} cannot be held."}],
    )
    return world


def answers(world: World, visit: Any, who: str) -> str:
    """Everything that this person can read of sol's push."""
    client: Client = visit(who)
    _, secret = tokens.create(owner=getattr(world, who), name="x", scopes=["read"], days=1, at=NOW)
    read = Client(headers={"Authorization": f"Bearer {secret}"})
    pages = [client.get("/"), client.get("/clusters"), client.get("/clusters/sol"), read.get("/api/v1/clusters/sol")]
    assert [each.status_code for each in pages] == [200] * 4
    return "".join(each.content.decode() for each in pages)


@pytest.mark.parametrize(
    ("disclosure", "who", "is_named"),
    [
        ("names", "stranger", True),
        ("bare", "stranger", False),
        ("bare", "outsider", False),
        ("bare", "lead", False),
        ("bare", "operator", True),
        ("bare", "auditor", True),
    ],
)
def test_the_push_names_others_reservations_only_to_who_may_know(
    told: World, visit: Any, disclosure: str, who: str, is_named: bool
) -> None:
    Cluster.objects.update(disclosure=disclosure)
    assert (NAME in answers(told, visit, who)) is is_named


def test_without_names_the_page_still_says_how_much_differs(told: World, visit: Any, words: Any) -> None:
    Cluster.objects.update(disclosure="bare")
    text = words(visit("stranger").get("/clusters/sol"))
    assert "1 object differs from what was approved. sol discloses no names." in text
