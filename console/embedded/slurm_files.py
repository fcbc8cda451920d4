"""What stands in the configuration of a local Slurm? (SlurmShape -> the text of each file)

Nodes are CLOUD nodes: idle for ever without a daemon each, and a real slurmd is started on a node only when a
job needs it, so that reservations, limits and real jobs all work on a laptop.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SlurmShape:
    """How the local cluster looks. Racks hold `rack` nodes, two racks make a block, `users` are made up."""

    cluster: str = "local"
    nodes: int = 72
    gpus: int = 4
    rack: int = 18
    users: int = 0
    mode: str = "cloud"
    gres_type: str = "gb200"
    prefix: str = "gb"

    def node_names(self, first: int = 1, last: int | None = None) -> str:
        """A host list, 1-based and inclusive: gb[001-018]."""
        width = max(3, len(str(self.nodes)))
        return f"{self.prefix}[{first:0{width}d}-{self.nodes if last is None else last:0{width}d}]"

    def racks(self) -> Iterator[tuple[str, int, int]]:
        """(name, first node, last node) of each rack."""
        for number, first in enumerate(range(1, self.nodes + 1, self.rack), start=1):
            yield f"r{number:02d}", first, min(first + self.rack - 1, self.nodes)


@dataclass(frozen=True, slots=True)
class SlurmPlace:
    """Where it runs: one short folder (unix sockets allow about 100 characters), its ports, and who runs it."""

    folder: Path
    user: str
    controller_port: int
    database_port: int
    node_port: int
    version: tuple[int, int]

    @property
    def etc(self) -> Path:
        return self.folder / "etc"

    @property
    def munge_socket(self) -> Path:
        return self.folder / "run" / "munge.sock"

    @property
    def database_socket(self) -> Path:
        return self.folder / "run" / "mysqld.sock"


def slurm_conf(shape: SlurmShape, place: SlurmPlace) -> str:
    """slurm.conf: the controller's settings, the nodes by rack, and one partition."""
    where = place.folder
    settings = {
        "ClusterName": shape.cluster,
        "SlurmctldHost": "localhost",
        "SlurmctldAddr": "127.0.0.1",
        "SlurmctldPort": place.controller_port,
        "SlurmdPort": place.node_port,
        "SlurmUser": place.user,
        "SlurmdUser": place.user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place.munge_socket}",
        "StateSaveLocation": where / "state",
        "SlurmdSpoolDir": where / "spool/%n",
        "SlurmctldPidFile": where / "run/slurmctld.pid",
        "SlurmdPidFile": where / "run/slurmd.%n.pid",
        "SlurmctldLogFile": where / "log/slurmctld.log",
        "SlurmdLogFile": where / "log/slurmd.%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "MpiDefault": "none",
        "ReturnToService": 2,
        "SlurmdTimeout": 300 if shape.mode == "slurmd" else 0,
        "TreeWidth": 65533,
        "KillWait": 2,
        "DefMemPerCPU": 100,
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "bf_interval=10,sched_min_interval=100000,batch_sched_delay=0",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "GresTypes": "gpu",
        "PreemptType": "preempt/qos",
        "PreemptMode": "REQUEUE",
        "PriorityType": "priority/multifactor",
        "PriorityDecayHalfLife": "7-0",
        "PriorityWeightFairshare": 100000,
        "PriorityWeightQOS": 10000,
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "localhost",
        "AccountingStoragePort": place.database_port,
        "AccountingStoragePass": place.munge_socket,  # sacctmgr and slurmctld of 22.05 find munge only here
        "AccountingStorageEnforce": "associations,limits,qos,safe",
        "AccountingStorageTRES": "gres/gpu",
        "JobAcctGatherType": "jobacct_gather/none",
        "TopologyPlugin": "topology/tree",
        "SlurmdParameters": "config_overrides",  # nodes may claim more cores and memory than this machine has
        "DebugFlags": "NO_CONF_HASH",
    }
    if shape.mode == "cloud":
        settings |= {
            "SuspendProgram": where / "bin/suspend",
            "ResumeProgram": where / "bin/resume",
            "SuspendTime": 3600,
            "ResumeTimeout": 60,
            "SuspendTimeout": 5,
            "ResumeRate": 0,
            "SuspendRate": 0,
            "PrivateData": "cloud",
            "SlurmctldParameters": "cloud_reg_addrs,idle_on_node_suspend",
        }
    lines = [f"{key}={value}" for key, value in settings.items()]
    return "\n".join([*lines, *_node_lines(shape, place), _partition_line(shape)]) + "\n"


def _node_lines(shape: SlurmShape, place: SlurmPlace) -> Iterator[str]:
    state = "CLOUD" if shape.mode == "cloud" else "UNKNOWN"
    hardware = "Sockets=2 CoresPerSocket=72 ThreadsPerCore=1 RealMemory=900000"
    for rack, first, last in shape.racks():
        names = shape.node_names(first, last)
        ports = f"[{place.node_port + first}-{place.node_port + last}]" if last > first else place.node_port + first
        yield (
            f"NodeName={names} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports} {hardware} "
            f"Gres=gpu:{shape.gres_type}:{shape.gpus} Feature={rack},nvl72 State={state}"
        )


def _partition_line(shape: SlurmShape) -> str:
    rules = 'Default=YES MaxTime=UNLIMITED State=UP TRESBillingWeights="CPU=0,Mem=0,GRES/gpu=1.0"'
    return f"PartitionName=batch Nodes={shape.node_names()} {rules}"


def gres_conf(shape: SlurmShape, place: SlurmPlace) -> str:
    """gres.conf: plain files stand in for the GPU devices; slurmd only asks whether they exist."""
    files = place.folder / f"dev/gpu[0-{shape.gpus - 1}]"
    return f"NodeName={shape.node_names()} AutoDetect=off Name=gpu Type={shape.gres_type} File={files}\n"


def topology_conf(shape: SlurmShape) -> str:
    """topology.conf as a tree: each rack a leaf, two racks a block, one spine above."""
    racks = list(shape.racks())
    lines = [f"SwitchName={rack} Nodes={shape.node_names(first, last)}" for rack, first, last in racks]
    blocks = [racks[i : i + 2] for i in range(0, len(racks), 2)]
    for number, members in enumerate(blocks, start=1):
        lines.append(f"SwitchName=b{number} Switches={','.join(rack for rack, _, _ in members)}")
    lines.append(f"SwitchName=spine Switches={','.join(f'b{n + 1}' for n in range(len(blocks)))}")
    return "\n".join(lines) + "\n"


def cgroup_conf(place: SlurmPlace) -> str:
    return "CgroupPlugin=disabled\n" if place.version >= (23, 2) else "CgroupAutomount=no\n"


def slurmdbd_conf(place: SlurmPlace) -> str:
    """slurmdbd.conf; the database's socket comes by MYSQL_UNIX_PORT, for no setting here names one."""
    return "\n".join(
        [
            "AuthType=auth/munge",
            f"AuthInfo=socket={place.munge_socket}",
            "DbdHost=localhost",
            "DbdAddr=127.0.0.1",
            f"DbdPort={place.database_port}",
            f"SlurmUser={place.user}",
            f"LogFile={place.folder}/log/slurmdbd.log",
            f"PidFile={place.folder}/run/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=slurm",
            "StoragePass=slurm",
            "StorageLoc=slurm_acct",
            "",
        ]
    )


def resume_script(place: SlurmPlace) -> str:
    """Starts a slurmd for each named node and writes down its pid and start time."""
    return f"""#!/bin/sh
SLURM_CONF={place.etc}/slurm.conf
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SLURM_CONF PATH
for node in $(scontrol show hostnames "$1"); do
  mkdir -p {place.folder}/spool/$node
  setsid slurmd -D -N "$node" -b </dev/null >>{place.folder}/log/slurmd.out 2>&1 &
  echo "$! $(cut -d')' -f2- /proc/$!/stat | cut -d' ' -f21)" >{place.folder}/run/node.$node.pid
done
"""


def suspend_script(place: SlurmPlace) -> str:
    """Ends the slurmd of each named node, if its pid still is that process."""
    return f"""#!/bin/sh
SLURM_CONF={place.etc}/slurm.conf
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SLURM_CONF PATH
for node in $(scontrol show hostnames "$1"); do
  read -r pid began <{place.folder}/run/node.$node.pid || continue
  [ "$(cut -d')' -f2- /proc/$pid/stat | cut -d' ' -f21)" = "$began" ] && kill "$pid"
done
exit 0
"""


def command_script(program: str, environment: dict[str, str]) -> str:
    """A Slurm command that sees the made-up users; a driver is pointed at the folder of these."""
    exports = "".join(f"export {key}='{value}'\n" for key, value in sorted(environment.items()))
    return f'#!/bin/sh\n{exports}exec {program} "$@"\n'
