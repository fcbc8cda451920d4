"""What do Kueue's kinds look like, and what do its webhooks and CEL rules refuse?

The definitions here are the least that Berth's writes need, for a checkout without real CRDs beside it; where the real
ones are there, they are served instead. The rules below hold for both.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from tests.doubles.kube.answers import Json, Refusal, cause
from tests.doubles.kube.store import Resource

GROUP = "kueue.x-k8s.io"
_QUANTITY = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)([eE][+-]?[0-9]+|[numkMGTPE]i?|)\Z")
_SCALE = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9)}
_QUOTA_FIELDS = ("nominalQuota", "borrowingLimit", "lendingLimit")

_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_AMOUNT: Json = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def _object(properties: Json, required: tuple[str, ...] = (), **more: object) -> Json:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {}), **more}


def _map_list(entry: Json, key: str = "name", most: int = 64) -> Json:
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {"type": "array", "items": entry, "maxItems": most, **keys}


def _atomic_list(entry: Json, most: int = 64, least: int = 0) -> Json:
    return {"type": "array", "items": entry, "maxItems": most, "minItems": least, "x-kubernetes-list-type": "atomic"}


_QUOTA = _object({"name": _TEXT, **dict.fromkeys(_QUOTA_FIELDS, _AMOUNT)}, ("name", "nominalQuota"))
_FLAVOR = _object({"name": _TEXT, "resources": _map_list(_QUOTA)}, ("name", "resources"))
_GROUP = _object(
    {"coveredResources": _atomic_list(_TEXT, least=1), "flavors": _map_list(_FLAVOR)}, ("coveredResources", "flavors")
)
_FAIR = _object({"weight": _AMOUNT})
_STOP: Json = {"type": "string", "enum": ["None", "Hold", "HoldAndDrain"], "default": "None"}
_ORDER: Json = {"type": "string", "enum": ["StrictFIFO", "BestEffortFIFO"], "default": "BestEffortFIFO"}
_TAINT = _object({"key": _TEXT, "value": _TEXT, "effect": _TEXT}, ("key", "effect"))
_TOLERATION = _object({"key": _TEXT, "operator": _TEXT, "value": _TEXT, "effect": _TEXT})

_SPECS: dict[tuple[str, str, bool], Json] = {
    ("topologies", "Topology", False): _object(
        {"levels": _atomic_list(_object({"nodeLabel": _TEXT}, ("nodeLabel",)), most=16, least=1)}, ("levels",)
    ),
    ("resourceflavors", "ResourceFlavor", False): _object(
        {
            "nodeLabels": {**_TEXTS, "x-kubernetes-map-type": "atomic"},
            "nodeTaints": _atomic_list(_TAINT, most=8),
            "tolerations": _atomic_list(_TOLERATION, most=8),
            "topologyName": _TEXT,
        }
    ),
    ("cohorts", "Cohort", False): _object(
        {"parentName": _TEXT, "fairSharing": _FAIR, "resourceGroups": _atomic_list(_GROUP, most=16)}
    ),
    ("clusterqueues", "ClusterQueue", False): _object(
        {
            "cohortName": _TEXT,
            "resourceGroups": _atomic_list(_GROUP, most=16),
            "namespaceSelector": {**_OPEN, "x-kubernetes-map-type": "atomic"},
            "queueingStrategy": _ORDER,
            "flavorFungibility": {**_OPEN, "default": {}},
            "preemption": {**_OPEN, "default": {}},
            "fairSharing": _FAIR,
            "stopPolicy": _STOP,
            "admissionScope": _OPEN,
            "admissionChecksStrategy": _OPEN,
        }
    ),
    ("localqueues", "LocalQueue", True): _object({"clusterQueue": _TEXT, "stopPolicy": _STOP, "fairSharing": _FAIR}),
    ("workloads", "Workload", True): _OPEN,
}
_STATUS: Json = {**_OPEN, "properties": {"pendingWorkloads": {"type": "integer"}}}
_WITHOUT_SPEC = {
    ("workloadpriorityclasses", "WorkloadPriorityClass", False): {"value": {"type": "integer"}, "description": _TEXT}
}


def definitions() -> Iterator[Resource]:
    """The built-in kinds, at the version that Berth writes."""
    for (plural, kind, namespaced), spec in _SPECS.items():
        schema = _object({"spec": spec, "status": _STATUS})
        yield Resource(GROUP, "v1beta2", plural, kind, namespaced, schema, has_status=True)
    for (plural, kind, namespaced), properties in _WITHOUT_SPEC.items():
        yield Resource(GROUP, "v1beta2", plural, kind, namespaced, _object(properties, ("value",)))


def quantity(text: object) -> Decimal:
    """A Kubernetes quantity as a number; raises ValueError for what is none."""
    match = _QUANTITY.match(str(text))
    if match is None or (match[2] and match[2][0] not in "eE" and match[2] not in _SCALE):
        raise ValueError(f"not a quantity: {text!r}")
    if match[2][:1] in ("e", "E"):
        return Decimal(match[1]) * Decimal(10) ** int(match[2][1:])
    return Decimal(match[1]) * _SCALE[match[2]]


def refuse_unreadable(resource: Resource, new: Json, old: Json | None) -> None:
    """The mutating webhook cannot decode a bad quantity: 400."""
    for _, _, entry in _quotas(resource, new):
        try:
            _ = [quantity(entry[field]) for field in _QUOTA_FIELDS if field in entry]
        except ValueError:
            rule = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            hook = f"m{resource.kind.lower()}.kb.io"
            raise Refusal(400, "BadRequest", f'admission webhook "{hook}" denied the request: {rule}') from None


def refuse_wrong_rules(resource: Resource, new: Json, old: Json | None) -> None:
    """The CEL rules that Berth could break: 422."""
    if resource.group != GROUP:
        return
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    causes = [cause(field, f"Invalid value: {told}") for field, told in _broken_rules(resource.kind, spec, before)]
    if causes:
        raise resource.wrong(new["metadata"]["name"], causes)


def _broken_rules(kind: str, spec: Json, before: Json) -> Iterator[tuple[str, str]]:
    groups = spec.get("resourceGroups") or []
    for number, group in enumerate(groups):
        if any(len(flavor["resources"]) != len(group["coveredResources"]) for flavor in group["flavors"]):
            told = "flavors must have the same number of resources as the coveredResources"
            yield f"spec.resourceGroups[{number}]", told
    quotas = [entry for group in groups for flavor in group["flavors"] for entry in flavor["resources"]]
    if kind == "ClusterQueue" and "cohortName" not in spec and any("borrowingLimit" in entry for entry in quotas):
        yield "spec", "borrowingLimit must be nil when cohort is empty"
    if kind == "Topology" and before and spec.get("levels") != before.get("levels"):
        yield "spec.levels", "field is immutable"
    if kind == "LocalQueue" and before and spec.get("clusterQueue") != before.get("clusterQueue"):
        yield "spec.clusterQueue", "field is immutable"
    if kind == "ResourceFlavor":
        if "topologyName" in spec and not spec.get("nodeLabels"):
            yield "spec", "at least one nodeLabel is required when topology is set"
        for field in ("nodeLabels", "tolerations", "topologyName") if "topologyName" in before else ():
            if spec.get(field) != before.get(field):
                verb = "is" if field == "topologyName" else "are"
                yield "spec", f"{field} {verb} immutable when topologyName is set"


def refuse_impossible_quotas(resource: Resource, new: Json, old: Json | None) -> None:
    """The validating webhook: 403, with its reasons as text alone."""
    wrong = [*_doubled_names(resource, new), *_wrong_quotas(resource, new)]
    if wrong:
        told = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        hook = f"v{resource.kind.lower()}.kb.io"
        raise Refusal(403, "Forbidden", f'admission webhook "{hook}" denied the request: {told}')


def _wrong_quotas(resource: Resource, new: Json) -> Iterator[str]:
    for path, covered, entry in _quotas(resource, new):
        if entry["name"] != covered:
            yield f'{path}.name: Invalid value: "{entry["name"]}": must match the name in coveredResources'
        for field in _QUOTA_FIELDS:
            if field in entry and quantity(entry[field]) < 0:
                yield f'{path}.{field}: Invalid value: "{entry[field]}": must be greater than or equal to 0'
        if "lendingLimit" in entry and quantity(entry["lendingLimit"]) > quantity(entry["nominalQuota"]):
            told = "must be less than or equal to the nominalQuota"
            yield f'{path}.lendingLimit: Invalid value: "{entry["lendingLimit"]}": {told}'


def _doubled_names(resource: Resource, new: Json) -> Iterator[str]:
    if not _has_quotas(resource):
        return
    flavors: set[str] = set()
    resources: set[str] = set()
    for number, group in enumerate((new.get("spec") or {}).get("resourceGroups") or []):
        for place, flavor in enumerate(group.get("flavors") or []):
            if flavor["name"] in flavors:
                yield f'spec.resourceGroups[{number}].flavors[{place}].name: Duplicate value: "{flavor["name"]}"'
            flavors.add(flavor["name"])
        for place, name in enumerate(group["coveredResources"]):
            if name in resources:
                yield f'spec.resourceGroups[{number}].coveredResources[{place}]: Duplicate value: "{name}"'
            resources.add(name)


def _has_quotas(resource: Resource) -> bool:
    return resource.group == GROUP and resource.kind in ("ClusterQueue", "Cohort")


def _quotas(resource: Resource, document: Json) -> Iterator[tuple[str, str, Json]]:
    """(path, the covered resource in its place, the quota) of each quota."""
    groups = (document.get("spec") or {}).get("resourceGroups") if _has_quotas(resource) else None
    for number, group in enumerate(groups or []):
        for place, flavor in enumerate(group.get("flavors") or []):
            for index, entry in enumerate(flavor.get("resources") or []):
                covered = group.get("coveredResources") or []
                path = f"spec.resourceGroups[{number}].flavors[{place}].resources[{index}]"
                yield path, covered[index] if index < len(covered) else entry.get("name", ""), entry
