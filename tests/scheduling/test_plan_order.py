"""Does a plan hold only what differs, in an order in which every prefix is safe?"""

from scheduling.plan import Change, ClassRules, Compromise, NativeObject, Observed, Rendered, Written, diff


def _lower_first(before, after, rivals):
    return {**before, "size": min(before["size"], after["size"])}


def _write(verb, name, before, after):
    return Written((verb, name, dict(after)), (f"{verb} {name}",))


_BOX = ClassRules(rank=0, write=_write)
_QUOTA = ClassRules(rank=1, write=_write, release=_lower_first, deletes="early")
_HOME = ClassRules(rank=2, write=_write, deletes="never")


def _box(name, **attributes):
    return NativeObject("box", name, attributes, rules=_BOX)


def _quota(name, size, colour="red"):
    return NativeObject("quota", name, {"size": size, "colour": colour}, rules=_QUOTA)


def _words(plan):
    return [f"{step.verb} {step.name}" for step in plan.steps]


def test_a_cluster_that_holds_what_it_should_gets_an_empty_plan():
    plan = diff(Rendered((_box("a", lid=True), _quota("q", 4))), Observed((_quota("q", 4), _box("a", lid=True))))
    assert plan.is_empty and plan.foreign == ()


def test_creates_go_in_rendered_order_and_deletes_against_it():
    observed = Observed((_box("old-1"), _quota("old-2", 3)))
    plan = diff(Rendered((_box("z"), _box("a"), _quota("q", 4))), observed)
    assert _words(plan) == ["delete old-2", "create z", "create a", "create q", "delete old-1"]


def test_what_gives_back_comes_before_what_takes():
    rendered = Rendered((_quota("grows", 8), _quota("shrinks", 2), _quota("new", 1)))
    observed = Observed((_quota("grows", 4), _quota("shrinks", 6), _quota("gone", 1)))
    plan = diff(rendered, observed)
    assert sorted(_words(plan)[:2]) == ["delete gone", "update shrinks"]
    assert _words(plan)[2:] == ["update grows", "create new"]


def test_a_change_that_gives_back_and_takes_is_two_steps_with_the_giving_first():
    plan = diff(Rendered((_quota("a", 2, "blue"),)), Observed((_quota("a", 6, "red"),)))
    assert [step.native[2] for step in plan.steps] == [{"size": 2, "colour": "red"}, {"size": 2, "colour": "blue"}]
    assert plan.steps[0].changes == (Change("size", 6, 2),)
    assert plan.steps[1].changes == (Change("colour", "red", "blue"),)


def test_a_foreign_object_under_our_name_is_listed_and_never_touched():
    theirs = NativeObject("box", "a", {"lid": False}, owned=False, rules=_BOX)
    other = NativeObject("box", "b", {"lid": False}, owned=False, rules=_BOX)
    plan = diff(Rendered((_box("a", lid=True),)), Observed((theirs, other)))
    assert plan.is_empty and plan.foreign == (("box", "a"),)


def test_what_must_be_kept_and_what_is_never_deleted_stays():
    home = NativeObject("home", "h", {}, rules=_HOME)
    observed = Observed((home, _box("still-busy"), _box("over")))
    assert _words(diff(Rendered((), keep=frozenset({("box", "still-busy")})), observed)) == ["delete over"]


def test_an_attribute_that_is_missing_equals_one_that_is_none():
    assert diff(Rendered((_box("a", limit=None),)), Observed((_box("a"),))).is_empty
    plan = diff(Rendered((_box("a"),)), Observed((_box("a", limit=5),)))
    assert plan.steps[0].changes == (Change("limit", 5, None),)


def test_an_object_without_rules_is_written_by_sending_its_native_words():
    plan = diff(Rendered((NativeObject("box", "a", {"lid": True}, native={"kind": "Box"}),)), Observed(()))
    assert plan.steps[0].native == {"kind": "Box"} and plan.steps[0].commands == ()


def test_compromises_travel_with_the_plan():
    compromise = Compromise("no_lid", "a", "This cluster has no lids.")
    assert diff(Rendered((), (compromise,)), Observed(())).compromises == (compromise,)
