"""What may each person read of the calendar, and in how many queries?"""

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from allocations.errors import NotFound
from allocations.models import Cluster, Node, Outage, RoleGrant, User
from allocations.permissions import can, rights
from allocations.services import approvals
from reservations import queries
from reservations.models import Reservation
from reservations.moments import minute_from
from reservations.services.approve import approve
from reservations.services.cancel import cancel
from tests.reservations.asks import approved, ask
from tests.reservations.world import DAY, NOW, World, two_racks

ROLES = ("lead", "second", "member", "outsider", "approver", "operator", "auditor", "stranger")


def fresh(user: User) -> User:
    """The person with their rights read already, so that a query count is the query's own."""
    rights(user)
    return user


@pytest.mark.parametrize("name", ROLES)
def test_the_list_shows_exactly_what_may_be_read(world: World, name: str) -> None:
    mine = ask(world)
    theirs = ask(world, actor=world.outsider, team=world.other_team)
    user = getattr(world, name)
    wanted = {one.pk for one in (mine, theirs) if can(user, "reservation.read", one)}
    assert set(queries.visible_reservations(user).values_list("pk", flat=True)) == wanted


def test_what_is_invisible_is_not_found(world: World) -> None:
    reservation = ask(world)
    assert queries.get_reservation(world.member, reservation.public_id) == reservation
    for public_id in (reservation.public_id, "R-0", "R-", "M-1", "R-99999999999999999999", "R-١"):
        with pytest.raises(NotFound):
            queries.get_reservation(world.outsider, public_id)


def test_a_scoped_role_sees_its_scope_only(world: World) -> None:
    reservation = ask(world)
    stranger = world.stranger
    RoleGrant.objects.create(user=stranger, role="approver", team=world.other_team)
    assert not queries.visible_reservations(world.stranger).exists()
    RoleGrant.objects.create(user=stranger, role="approver", team=world.team.parent)
    assert queries.visible_reservations(world.stranger).get() == reservation


@pytest.mark.parametrize(
    ("name", "disclosure", "named", "knows_purpose"),
    [
        ("member", "bare", True, True),
        ("approver", "bare", True, True),
        ("outsider", "names", True, False),
        ("outsider", "bare", False, False),
        ("stranger", "bare", False, False),
    ],
)
def test_disclosure(world: World, name: str, disclosure: str, named: bool, knows_purpose: bool) -> None:
    reservation = ask(world)
    reservation.cluster.disclosure = disclosure
    shown = queries.disclose(getattr(world, name), reservation)
    assert (shown.id, shown.team) == ((reservation.public_id, "acme/vision") if named else (None, None))
    assert shown.purpose == ("Scaling run" if knows_purpose else None)
    assert shown.people == (("Lead",) if knows_purpose else None)
    assert (shown.start_at, shown.end_at) == (reservation.start_at, reservation.end_at)
    assert shown.is_mine == (name == "member")


def test_the_inbox_holds_what_this_person_can_decide_now(world: World) -> None:
    steps = ({"role": "lead", "quorum": 1}, {"role": "approver", "quorum": 2})
    approvals.set_policy(name="two", steps=steps, actor=None, at=NOW)
    reservation = ask(world)
    told = {name: [item.reservation for item in queries.inbox(getattr(world, name), NOW).to_decide] for name in ROLES}
    assert told == {name: [reservation] if name == "second" else [] for name in ROLES}
    approve(reservation=reservation, actor=world.second, at=NOW)
    item = queries.inbox(world.approver, NOW).to_decide[0]
    assert (item.step, item.role, item.missing) == (2, "approver", 2)
    approve(reservation=reservation, actor=world.approver, at=NOW)
    assert len(queries.inbox(world.approver, NOW)) == 0
    assert queries.inbox_count(world.colleague, NOW) == 1
    assert queries.inbox_count(world.colleague, NOW + DAY) == 0


def test_ones_own_ask_is_not_in_ones_inbox_but_its_counter_offer_is(world: World) -> None:
    RoleGrant.objects.create(user=world.lead, role="approver")
    reservation = ask(world)
    assert queries.inbox_count(world.lead, NOW) == 0
    Reservation.objects.filter(pk=reservation.pk).update(decision="counter_offered")
    assert queries.inbox(world.lead, NOW).to_answer == (reservation,)
    assert queries.inbox_count(world.outsider, NOW) == 0


def test_home_sorts_what_a_person_has(world: World) -> None:
    active = approved(world, spec=two_racks(racks=1))
    scheduled = approved(world, spec=two_racks(racks=1, earliest_start_minute=minute_from(NOW + DAY)))
    asked = ask(world, spec=two_racks(racks=1))
    gone = cancel(reservation=approved(world, spec=two_racks(racks=1)), actor=world.lead, at=NOW)
    ask(world, actor=world.outsider, team=world.other_team, spec=two_racks(racks=1))
    mine = queries.mine(world.member, NOW)
    assert (mine.active, mine.scheduled, mine.asks, mine.recent) == ((active,), (scheduled,), (asked,), (gone,))
    assert queries.mine(world.member, NOW + 4 * DAY).recent[0] == scheduled


def test_the_board_merges_neighbouring_rows_into_one_shape(world: World) -> None:
    reservation = ask(world)
    outage = Outage.objects.create(cluster=world.cluster, name="cooling", period=DateTimeTZRange(NOW, NOW + DAY))
    outage.nodes.add(*Node.objects.filter(rack__name__in=("r04",)))
    Node.objects.filter(name="sol0001").update(condition="failed")
    board = queries.board(world.outsider, world.cluster, NOW, NOW + 14 * DAY)
    first, second = board.blocks
    used = next(block for block in board.blocks if any(shape.kind == "reservation" for shape in block.shapes))
    shape = next(shape for shape in used.shapes if shape.kind == "reservation")
    assert (shape.first_row, shape.rows, shape.nodes, shape.is_provisional, shape.is_mine) == (0, 2, 36, True, False)
    assert (shape.start_at, shape.end_at) == (NOW, NOW + 3 * DAY)
    assert shape.shown is not None
    assert (shape.shown.id, shape.shown.purpose) == (reservation.public_id, None)
    closed = next(shape for shape in second.shapes if shape.kind == "outage")
    assert (closed.id, closed.name, closed.first_row, closed.rows) == (outage.public_id, "cooling", 1, 1)
    assert first.racks[0].bad_nodes == 1
    assert board.racks == 4
    assert board.free_racks_at(NOW) == 1
    assert board.free_racks_at(NOW + 4 * DAY) == 4


def test_the_board_cuts_shapes_to_its_window_and_forgets_expired_asks(world: World) -> None:
    ask(world, spec=two_racks(racks=1))
    board = queries.board(world.lead, world.cluster, NOW + timedelta(hours=1), NOW + timedelta(hours=2))
    shapes = [shape for block in board.blocks for shape in block.shapes]
    assert [(shape.start_at, shape.end_at) for shape in shapes] == [(board.start_at, board.end_at)]
    later = queries.board(world.lead, world.cluster, NOW, NOW + 14 * DAY, at=NOW + DAY)
    assert not [shape for block in later.blocks for shape in block.shapes]


def test_a_shape_is_split_where_a_row_between_is_not_held(world: World) -> None:
    Node.objects.filter(rack__name="r02").update(is_drained=True)
    Cluster.objects.update(snapshot_version=50)
    ask(world, spec=two_racks(racks=3))
    board = queries.board(world.lead, world.cluster, NOW, NOW + DAY)
    assert [[(shape.first_row, shape.rows) for shape in block.shapes] for block in board.blocks] == [[(0, 1)], [(0, 2)]]


def test_the_fleet_map_says_the_state_of_every_node(world: World) -> None:
    reservation = approved(world, spec=two_racks(racks=1, nodes_per_rack=16, spare_nodes=1))
    ask(world, spec=two_racks(racks=1), actor=world.outsider, team=world.other_team)
    Node.objects.filter(name="sol0070").update(condition="failed")
    Node.objects.filter(name="sol0071").update(is_drained=True)
    Cluster.objects.update(snapshot_version=60)
    blocks = queries.holders(world.cluster, NOW, world.member)
    cells = [cell for block in blocks for rack in block.racks for cell in rack.cells]
    states = [cell.state for cell in cells]
    assert len(cells) == 72
    assert {state: states.count(state) for state in set(states)} == {
        "yours": 16, "spare": 1, "held": 18, "bad": 1, "drained": 1, "free": 35
    }  # fmt: skip
    mine = next(cell for cell in cells if cell.state == "yours")
    assert (mine.id, mine.team, mine.until_at) == (reservation.public_id, "acme/vision", NOW + 3 * DAY)
    theirs = queries.holders(world.cluster, NOW, world.outsider)
    assert {cell.state for block in theirs for rack in block.racks for cell in rack.cells if cell.id} == {
        "held",
        "mine_provisional",
    }


def test_the_push_reads_what_is_approved_and_not_over(world: World) -> None:
    reservation = approved(world, spec=two_racks(nodes_per_rack=17, spare_nodes=1))
    ask(world, spec=two_racks(racks=1))
    reservation.shared_with.add(world.other_team)
    (found,) = queries.approved_at(world.cluster, NOW)
    assert (found.id, found.flavor, found.accounts) == (reservation.public_id, "gb200", ("vision", "speech"))
    assert (len(found.nodes), len(found.spares), len(found.racks)) == (36, 2, 2)
    assert (found.start_at, found.end_at) == (NOW, NOW + 3 * DAY)
    assert queries.approved_at(world.cluster, NOW + 3 * DAY) == ()
    cancel(reservation=reservation, actor=world.lead, at=NOW + timedelta(seconds=5))
    assert queries.approved_at(world.cluster, NOW + timedelta(seconds=5)) == ()


def test_a_page_can_tell_which_nodes_a_reservation_had(world: World) -> None:
    reservation = approved(world)
    held = queries.held_by(reservation)
    assert len(held.nodes) == 36
    assert queries.racks_by_reservation([reservation]) == {reservation.pk: held.racks}
    ended = cancel(reservation=reservation, actor=world.lead, at=NOW + timedelta(hours=1))
    assert queries.held_by(ended) == held
    assert held.nodes_text.startswith("sol[")


def test_query_counts_do_not_grow_with_what_there_is(world: World, django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    for size in (1, 3):
        for _ in range(size):
            ask(world, spec=two_racks(racks=1))
            approved(world, spec=two_racks(racks=1))
        member, approver = fresh(world.member), fresh(world.approver)
        with django_assert_num_queries(6):
            queries.board(member, world.cluster, NOW, NOW + 30 * DAY)
        with django_assert_num_queries(3):
            queries.inbox(approver, NOW)
        with django_assert_num_queries(1):
            queries.mine(member, NOW)
        with django_assert_num_queries(3):
            queries.approved_at(world.cluster, NOW)
        everything = list(Reservation.objects.all())
        with django_assert_num_queries(1):
            queries.racks_by_reservation(everything)
