"""What must be written so that a cluster holds what it should, in which order? (rendered + observed -> Plan)

The words here are common to every scheduler: an object has a class, a name and attributes; a dialect renders a
DesiredState into objects and parses what a driver read into the same kind of objects, so that one difference
serves all. A dry run is this plan, not applied.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verb = Literal["create", "update", "delete"]
Attributes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """One write in native words: what the driver sends, and what a person could paste instead."""

    native: Any
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassRules:
    """How objects of one class are written, and where their writes stand in a plan.

    `rank` is the place of the class in creation order. `write(verb, name, before, after)` gives the native words;
    `before` is empty on a create, `after` on a delete. `release(before, after, rivals)` gives the attributes that may
    be written at once because they take nothing that another object may still hold: `after` when the whole change
    gives back, `before` when nothing need be given back first, something between otherwise, and {} when the object
    must go before it comes again; `rivals` is what the other objects of the class shall be. `seen(before, after)` lets
    a dialect call two values equal that only look different (the start of a reservation that has begun). `deletes`
    says when an owned object that is no longer wanted goes: before anything is taken, after everything is built (having
    given back first what release(before, {}, ()) says), or not at all. `adopts`: one that somebody else made serves as
    well, and is not foreign.
    """

    rank: int
    write: Callable[[Verb, str, Attributes, Attributes], Written]
    release: Callable[[Attributes, Attributes, Sequence[Attributes]], Attributes] | None = None
    seen: Callable[[Attributes, Attributes], Attributes] | None = None
    deletes: Literal["early", "late", "never"] = "late"
    adopts: bool = False


@dataclass(frozen=True, slots=True)
class NativeObject:
    """One thing on a cluster in its scheduler's words.

    `object_class` is one of the classes a dialect lists, in the order in which it may be created ("account",
    "reservation"; "Namespace", "ResourceFlavor", "ClusterQueue"); `attributes` are compared by value after the
    dialect's normalisation; `native` is what the driver sends (argv lists, a manifest) and is not compared.
    `owned` is false for what somebody else made: shown, never touched. `rules` come from the dialect; an object without
    them is written by sending its `native` as it is. `depth` counts the objects of its class that it stands on.
    """

    object_class: str
    name: str
    attributes: Mapping[str, Any]
    native: Any = None
    owned: bool = True
    rules: ClassRules | None = field(default=None, compare=False, repr=False)
    depth: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return (self.object_class, self.name)


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute that differs; `before` is None on a create, `after` on a delete."""

    attribute: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Compromise:
    """What a plan had to leave out because the scheduler cannot hold it, in a sentence, with the thing it concerns."""

    code: str
    subject: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A DesiredState in a scheduler's words: objects in creation order, and the compromises made on the way.

    `keep` are keys of objects on the cluster that are not wanted any more but must not be deleted yet.
    """

    objects: tuple[NativeObject, ...]
    compromises: tuple[Compromise, ...] = ()
    keep: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Observed:
    """What a cluster holds of the classes a dialect knows, foreign objects included, and notes about it.

    `facts` carries what is not an object: versions, preconditions, the instance id and generation last written.
    """

    objects: tuple[NativeObject, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One write. `commands` is what a person could paste instead: shell lines or one YAML document, never a secret."""

    verb: Verb
    object_class: str
    name: str
    changes: tuple[Change, ...]
    native: Any
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered steps, every prefix safe; empty when the cluster already holds what it should.

    `foreign` lists keys that stand in the way under a name of ours but belong to somebody else: never touched.
    """

    steps: tuple[Step, ...]
    compromises: tuple[Compromise, ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.steps


_RELEASE, _BUILD, _REMOVE = 0, 1, 2
_Place = tuple[int, int, int, str]


def diff(rendered: Rendered, observed: Observed) -> Plan:
    """The ordered steps from `observed` to `rendered`; the same inputs give the same plan.

    Three stages make every prefix safe: what gives something back (quota decreases, shrinking or ended reservations),
    in reverse creation order; then creates and all other updates, in creation order; then the other deletes, in reverse
    creation order. Keys in `rendered.keep` are not deleted. An object under a wanted name that somebody else owns is
    listed in Plan.foreign and left alone.
    """
    wanted = {item.key: (place, item) for place, item in enumerate(rendered.objects)}
    present = {item.key: item for item in observed.objects}
    placed: list[tuple[_Place, Step]] = []
    foreign = []
    for key, (place, item) in wanted.items():
        found = present.get(key)
        if found is not None and not found.owned:
            if not _rules_of(item).adopts:
                foreign.append(key)
        else:
            placed += _steps_towards(item, found, place, rendered)
    for key, found in present.items():
        if found.owned and key not in wanted and key not in rendered.keep:
            placed += _removal(found)
    placed.sort(key=lambda entry: entry[0])
    return Plan(tuple(step for _, step in placed), rendered.compromises, tuple(sorted(foreign)))


def _steps_towards(
    item: NativeObject, found: NativeObject | None, place: int, rendered: Rendered
) -> list[tuple[_Place, Step]]:
    """No step, one, or two: where a change both gives back and takes, it first gives back."""
    rules = _rules_of(item)
    forwards: _Place = (_BUILD, rules.rank, place, item.name)
    backwards: _Place = (_RELEASE, -rules.rank, -place, item.name)
    if found is None:
        return [(forwards, _step("create", item, {}, item.attributes))]
    before = rules.seen(found.attributes, item.attributes) if rules.seen else found.attributes
    after = item.attributes
    if not changes_between(before, after):
        return []
    middle = rules.release(before, after, _rivals(item, rendered)) if rules.release else before
    if not middle:
        return [(backwards, _step("delete", item, before, {})), (forwards, _step("create", item, {}, after))]
    if not changes_between(middle, after):
        return [(backwards, _step("update", item, before, after))]
    if not changes_between(before, middle):
        return [(forwards, _step("update", item, before, after))]
    return [(backwards, _step("update", item, before, middle)), (forwards, _step("update", item, middle, after))]


def _rivals(item: NativeObject, rendered: Rendered) -> list[Attributes]:
    """What the other objects of the class shall be."""
    same_class = (other for other in rendered.objects if other.object_class == item.object_class)
    return [other.attributes for other in same_class if other is not item]


def _removal(found: NativeObject) -> list[tuple[_Place, Step]]:
    """Where an object goes: after those of its class that stand on it."""
    rules, before = _rules_of(found), found.attributes
    early: _Place = (_RELEASE, -rules.rank, -found.depth, found.name)
    late: _Place = (_REMOVE, -rules.rank, -found.depth, found.name)
    if rules.deletes == "never":
        return []
    if rules.deletes == "early":
        return [(early, _step("delete", found, before, {}))]
    bare = rules.release(before, {}, ()) if rules.release else before
    if not changes_between(before, bare):
        return [(late, _step("delete", found, before, {}))]
    return [(early, _step("update", found, before, bare)), (late, _step("delete", found, bare, {}))]


def _step(verb: Verb, item: NativeObject, before: Attributes, after: Attributes) -> Step:
    written = _rules_of(item).write(verb, item.name, before, after)
    changes = changes_between(before, after)
    return Step(verb, item.object_class, item.name, changes, written.native, written.commands)


def changes_between(before: Attributes, after: Attributes) -> tuple[Change, ...]:
    """The attributes that differ, by name; one that is missing counts as None."""
    names = sorted({*before, *after})
    return tuple(
        Change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )


def _rules_of(item: NativeObject) -> ClassRules:
    return item.rules or ClassRules(rank=0, write=lambda *_: Written(item.native))
