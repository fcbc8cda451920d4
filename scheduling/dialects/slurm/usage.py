"""How does a team use its reservation on Slurm? (lines to copy)"""

from scheduling.desired import DesiredReservation, DesiredState
from scheduling.dialects.contract import UsageText
from scheduling.dialects.errors import UnknownReference
from scheduling.dialects.slurm.names import account_name, checked_name


def usage(desired: DesiredState, wanted: DesiredReservation, account: str) -> tuple[UsageText, ...]:
    """A batch and an interactive line for all working nodes and the longest time that still fits at `at_minute`."""
    flavor = next((known for known in desired.flavors if known.name == wanted.flavor), None)
    if flavor is None:
        raise UnknownReference("flavor", wanted.flavor, f"reservation {wanted.id}")
    options = [
        f"--account={account_name(account)}",
        f"--reservation={checked_name('reservation', wanted.name)}",
    ]
    if flavor.partition:
        options.append(f"--partition={checked_name('partition', flavor.partition)}")
    options.append(f"--nodes={len(set(wanted.nodes) - set(wanted.spares))}")
    if flavor.gpus_per_node:
        kind = f"{checked_name('gres type', flavor.gres_type)}:" if flavor.gres_type else ""
        options.append(f"--gres=gpu:{kind}{flavor.gpus_per_node}")
    options.append(f"--time={walltime(wanted.longest_minutes(desired.at_minute))}")
    line = " ".join(options)
    return (
        UsageText("Batch job", f"sbatch {line} job.sh"),
        UsageText("Interactive", f"srun {line} --pty bash"),
    )


def walltime(minutes: int) -> str:
    """`3-00:00:00`, `06:30:00`: minutes as Slurm takes and prints them."""
    days, rest = divmod(max(1, minutes), 24 * 60)
    hours, minute = divmod(rest, 60)
    return (f"{days}-" if days else "") + f"{hours:02}:{minute:02}:00"
