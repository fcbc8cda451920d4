"""How is a team written as a Slurm account? (create, move, weigh; never delete)

An account lives in slurmdbd for all clusters; its association (parent, shares) belongs to one. Commands therefore
always name the cluster, except where they change the account itself.
"""

from functools import partial

from scheduling.dialects.slurm.names import shell_line
from scheduling.plan import Attributes, ClassRules, NativeObject, Verb, Written

OBJECT_CLASS = "account"
RANK = 0


def account(name: str, attributes: Attributes, cluster: str, owned: bool = True) -> NativeObject:
    """An account of `cluster` (Slurm's own name of it) with parent, fairshare, organization, description."""
    rules = ClassRules(rank=RANK, write=partial(_write, cluster), deletes="never")
    return NativeObject(OBJECT_CLASS, name, attributes, _create(cluster, name, attributes), owned, rules)


def _write(cluster: str, verb: Verb, name: str, before: Attributes, after: Attributes) -> Written:
    """Commands of one step. Accounts are never deleted: jobs, users and history hang on them."""
    argvs = _create(cluster, name, after) if verb == "create" else _update(cluster, name, before, after)
    return Written(argvs, tuple(shell_line(argv) for argv in argvs))


def _create(cluster: str, name: str, after: Attributes) -> tuple[tuple[str, ...], ...]:
    settings = tuple(f"{key}={after[key]}" for key in ("parent", "fairshare", "organization", "description"))
    return (("sacctmgr", "-i", "add", "account", name, f"cluster={cluster}", *settings),)


def _update(cluster: str, name: str, before: Attributes, after: Attributes) -> tuple[tuple[str, ...], ...]:
    """One command for the association, one for the account itself: slurmdbd keeps them apart."""
    changed = [key for key in ("parent", "fairshare", "organization", "description") if before.get(key) != after[key]]
    here = tuple(f"{key}={after[key]}" for key in changed if key in ("parent", "fairshare"))
    everywhere = tuple(f"{key}={after[key]}" for key in changed if key in ("organization", "description"))
    start = ("sacctmgr", "-i", "modify", "account", "where", f"name={name}")
    argvs = []
    if here:
        argvs.append((*start, f"cluster={cluster}", "set", *here))
    if everywhere:
        argvs.append((*start, "set", *everywhere))
    return tuple(argvs)
