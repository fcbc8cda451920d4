"""What does the page "Reserve" ask for, and how does what was typed become a spec? (its form, both ways)"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from django import forms
from django.utils import timezone

from allocations.errors import Fault, Invalid
from allocations.models import Cluster, Flavor, Team, User
from allocations.permissions import below, rights, visible_to
from allocations.queries import usable_allocations
from console.web.durations import DurationError, duration_text, minutes_of
from reservations.spec_json import spec_from, spec_to
from scheduling.spec import ReservationSpec

COUNTS = ("racks", "nodes", "gpus", "nodes_per_rack", "spare_nodes", "max_blocks")
SWITCHES = ("same_block", "ignore_jobs")
MOMENTS = ("earliest_start_at", "latest_end_at")
RACK_LISTS = ("avoid_racks", "prefer_racks")
FIELD_OF = {"duration_minutes": "duration"}  # the key of a spec -> the field that asks for it; others have its name
_LOCAL = "%Y-%m-%dT%H:%M"


@dataclass(frozen=True)
class Choices:
    """What this person can choose from: their teams by path, and every cluster with its flavors, by name."""

    teams: Mapping[str, Team]
    clusters: Mapping[str, Cluster]
    flavors: Mapping[str, Mapping[str, Flavor]]


def choices_for(user: User) -> Choices:
    """Teams that the person leads or belongs to (with those below), and clusters with nodes; three queries."""
    held = rights(user)
    teams = Team.objects.filter(below(held.member_paths | held.lead_paths), archived_at=None).order_by("path")
    flavors: dict[str, dict[str, Flavor]] = {}
    for flavor in Flavor.objects.select_related("cluster").order_by("name"):
        flavors.setdefault(flavor.cluster.name, {})[flavor.name] = flavor
    clusters = visible_to(user, Cluster).filter(name__in=flavors).order_by("name")
    return Choices(
        {team.path: team for team in teams},
        {cluster.name: cluster for cluster in clusters},
        flavors,
    )


def _count(label: str, hint: str = "") -> forms.IntegerField:
    widget = forms.NumberInput(attrs={"min": 0, "inputmode": "numeric"})
    return forms.IntegerField(label=label, required=False, help_text=hint, widget=widget)


def _moment(label: str, hint: str = "") -> forms.CharField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})
    return forms.CharField(label=label, required=False, max_length=40, help_text=hint, widget=widget)


class ReservationForm(forms.Form):
    """One ask. Moments are typed in the person's zone; what is wrong in the spec is said beside its field."""

    team = forms.ChoiceField(label="Team")
    cluster = forms.ChoiceField(label="Cluster")
    flavor = forms.ChoiceField(label="Flavor")
    racks = _count("Racks")
    duration = forms.CharField(label="For", max_length=60, help_text="3 days, 36 hours, 1-12:00")
    earliest_start_at = _moment("Not before", "Empty: from now on")
    latest_end_at = _moment("Done by", "Empty: any time")
    purpose = forms.CharField(label="What for", max_length=500, help_text="Needed to ask: approvers read this first")
    nodes_per_rack = _count("Nodes per rack", "Empty: all of them")
    spare_nodes = _count("Spares per rack", "Replace a failed node")
    same_block = forms.BooleanField(label="All racks in one block", required=False)
    max_blocks = _count("Blocks at most")
    avoid_racks = forms.CharField(label="Avoid racks", required=False, max_length=2000)
    prefer_racks = forms.CharField(label="Prefer racks", required=False, max_length=2000)
    nodes = _count("Nodes instead")
    gpus = _count("GPUs instead")
    ignore_jobs = forms.BooleanField(label="Ignore running jobs: they must leave", required=False)

    def __init__(self, data: Mapping[str, Any], choices: Choices, **more: Any) -> None:
        super().__init__(data, **more)
        self.choices = choices
        flavors = choices.flavors.get(str(data.get("cluster", "")), {})
        self._choose("team", [(path, path.replace("/", " / ")) for path in choices.teams])
        self._choose("cluster", [(name, name) for name in choices.clusters])
        self._choose("flavor", [(name, name) for name in flavors])
        for name in RACK_LISTS:
            self.fields[name].widget.attrs["placeholder"] = "r21, r22"

    def _choose(self, name: str, options: Iterable[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = list(options)

    @property
    def chosen_team(self) -> Team:
        """The team row; only after is_valid() found the field right."""
        return self.choices.teams[self.cleaned_data["team"]]

    @property
    def chosen_flavor(self) -> Flavor:
        """The flavor row; only after is_valid() found cluster and flavor right."""
        return self.choices.flavors[self.cleaned_data["cluster"]][self.cleaned_data["flavor"]]

    @property
    def chosen_cluster(self) -> Cluster:
        """The cluster row; only after is_valid() found the field right."""
        return self.choices.clusters[self.cleaned_data["cluster"]]

    def clean_duration(self) -> int:
        """Whole minutes."""
        try:
            return minutes_of(self.cleaned_data["duration"])
        except DurationError as error:
            raise forms.ValidationError(str(error)) from error

    def to_spec(self, at: datetime) -> ReservationSpec | None:
        """The spec of what was typed, by the one validator; None when it is wrong, which then stands at the fields."""
        if any(name in self.errors for name in self.fields if name != "purpose"):
            return None
        typed = self.cleaned_data
        mapping = {name: typed[name] for name in ("flavor", *COUNTS, *SWITCHES, *MOMENTS, *RACK_LISTS)}
        mapping["duration_minutes"] = typed["duration"]
        try:
            return spec_from(mapping, zone=str(timezone.get_current_timezone()), at=at)
        except Invalid as wrong:
            self.take(wrong.faults)
            return None

    def take(self, faults: Iterable[Fault]) -> tuple[str, ...]:
        """Say each fault beside its field; the sentences of those that point at none are returned."""
        homeless = []
        for fault in faults:
            key = fault.pointer.rpartition("/")[2]
            name = FIELD_OF.get(key, key)
            if name in self.fields:
                sentence = fault.sentence.removeprefix(f"{key}: ")
                self.add_error(name, sentence[:1].upper() + sentence[1:])
            else:
                homeless.append(fault.sentence)
        return tuple(homeless)


def typed(query: Mapping[str, Any], choices: Choices, user: User, at: datetime) -> dict[str, Any]:
    """What the form starts from: the query with a team, cluster and flavor that exist, and moments in the zone.

    A cluster without the flavor shows its first with GPUs, so that choosing another cluster gives a whole form again.
    """
    data = {name: query[name] for name in ReservationForm.base_fields if name in query}
    zone = timezone.get_current_timezone()
    for name in MOMENTS:
        data[name] = _local(str(data.get(name, "")), zone)
    if data.get("team") not in choices.teams and "team" not in query:
        data["team"] = _first_team(choices, user)
    if "cluster" not in query:
        data |= _first_place(choices, choices.teams.get(data.get("team", "")), at)
    flavors = choices.flavors.get(data["cluster"], {})
    if data.get("flavor") not in flavors:
        with_gpus = (name for name, flavor in flavors.items() if flavor.gpus_per_node)
        data["flavor"] = next(with_gpus, next(iter(flavors), ""))
    if not any(name in query for name in ("racks", "nodes", "gpus")):
        data["racks"] = 1
    data.setdefault("duration", "1 day")
    return data


def query_of(spec: ReservationSpec, *, team: str, cluster: str, purpose: str) -> dict[str, Any]:
    """The query that fills the form with this spec: what makes another way a link."""
    written = spec_to(spec)
    query: dict[str, Any] = {"team": team, "cluster": cluster, "flavor": spec.flavor}
    for name in (*COUNTS, *MOMENTS):
        if name in written:
            query[name] = written[name]
    query["duration"] = duration_text(spec.duration_minutes)
    for name in SWITCHES:
        if written.get(name):
            query[name] = "on"
    for name in RACK_LISTS:
        if name in written:
            query[name] = ", ".join(written[name])
    return {**query, "purpose": purpose} if purpose else query


def _local(text: str, zone: tzinfo) -> str:
    """A moment with an offset as the wall clock of the zone; anything else as it was typed."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return text
    try:
        return moment.astimezone(zone).strftime(_LOCAL)
    except OverflowError:  # at the edge of the calendar; the validator says what is wrong with it
        return text


def _first_team(choices: Choices, user: User) -> str:
    """The first team the person leads, else the first they belong to."""
    held = rights(user)
    led = [path for path, team in choices.teams.items() if held.leads(team)]
    return next(iter([*led, *choices.teams]), "")


def _first_place(choices: Choices, team: Team | None, at: datetime) -> dict[str, str]:
    """Where the team has an allocation now, else the first cluster."""
    for each in usable_allocations(team, at) if team is not None else ():
        if each.flavor is not None and each.flavor.cluster.name in choices.clusters:
            return {"cluster": each.flavor.cluster.name, "flavor": each.flavor.name}
    return {"cluster": next(iter(choices.clusters), "")}
