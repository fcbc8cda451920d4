"""What would a Slurm controller do with these commands? (a small model, for plans; tests/real has real ones)

It refuses what slurmctld refuses: a name that exists, unknown accounts, a start long past, two reservations on one node
at one time. It answers as the commands of the dialect's READS do.
"""

from datetime import UTC, datetime

from scheduling.hostlist import expand


class Refused(Exception):
    """The controller answered with an error."""


class SlurmController:
    def __init__(self, cluster: str, now: int) -> None:
        self.cluster, self.now = cluster, now
        self.accounts: dict[str, dict[str, str]] = {}
        self.reservations: dict[str, dict[str, str]] = {}

    def run(self, argv: tuple[str, ...]) -> None:
        """Take one command, or raise Refused and change nothing."""
        assert all(isinstance(part, str) and "\n" not in part for part in argv)
        match argv:
            case ("sacctmgr", "-i", "add", "account", name, *settings):
                self._add_account(name, _values(settings))
            case ("sacctmgr", "-i", "modify", "account", "where", *rest):
                self._modify_account(_values(rest[: rest.index("set")]), _values(rest[rest.index("set") + 1 :]))
            case ("scontrol", "create", "reservation", *settings):
                values = _values(settings)
                name = values.pop("ReservationName")
                if name in self.reservations:
                    raise Refused("Duplicate reservation name")
                self._place(name, {**values, "Flags": "SPEC_NODES"})
            case ("scontrol", "update", named, *settings):
                self._update(named.removeprefix("ReservationName="), settings)
            case ("scontrol", "delete", named):
                del self.reservations[named.removeprefix("ReservationName=")]
            case _:
                raise Refused(f"not a command: {argv}")

    def answers(self) -> dict[str, str]:
        accounts = ["root|default root account|root"]
        associations = [f"{self.cluster}|root||||1"]
        for name, values in self.accounts.items():
            accounts.append(f"{name}|{values['description'].lower()}|{values['organization'].lower()}")
            parent = "" if values["parent"] == "root" else values["parent"]
            associations.append(f"{self.cluster}|{name}|||{parent or 'root'}|{values['fairshare']}")
        lines = [self._line(name, values) for name, values in self.reservations.items()]
        return {
            "config": f"ClusterName             = {self.cluster}\nSLURM_VERSION           = 22.05.8\n",
            "accounts": "\n".join(accounts) + "\n",
            "associations": "\n".join(associations) + "\n",
            "reservations": "\n".join(lines) or "No reservations in the system\n",
        }

    def _add_account(self, name: str, values: dict[str, str]) -> None:
        if values.pop("cluster") != self.cluster or name.lower() in self.accounts:
            raise Refused("Nothing new added.")
        if values["parent"] not in ("root", *self.accounts):
            raise Refused("Parent account doesn't exist")
        self.accounts[name.lower()] = values

    def _modify_account(self, where: dict[str, str], values: dict[str, str]) -> None:
        if where.get("cluster", self.cluster) != self.cluster or where["name"] not in self.accounts:
            raise Refused("Nothing modified")
        self.accounts[where["name"]].update(values)

    def _update(self, name: str, settings: list[str]) -> None:
        record = dict(self.reservations[name])
        for key, value in _values(settings).items():
            if key == "Flags-":
                record["Flags"] = ",".join(flag for flag in record["Flags"].split(",") if flag != value)
            else:
                record[key] = value
        self._place(name, record, "StartTime" in _values(settings))

    def _place(self, name: str, record: dict[str, str], starts_anew: bool = True) -> None:
        start, end = _epoch(record["StartTime"]), _epoch(record["EndTime"])
        if (starts_anew and start < self.now - 600) or end < start:
            raise Refused("Invalid time specified")
        if not set(record["Accounts"].split(",")) <= set(self.accounts):
            raise Refused("Invalid account or account/partition combination specified")
        nodes = set(expand(record["Nodes"]))
        for other, held in self.reservations.items():
            in_time = _epoch(held["StartTime"]) < end and start < _epoch(held["EndTime"])
            if other != name and in_time and nodes & set(expand(held["Nodes"])):
                raise Refused("Requested reservation overlaps with another reservation")
        self.reservations[name] = {**record, "StartTime": str(start), "EndTime": str(end)}

    @staticmethod
    def _line(name: str, values: dict[str, str]) -> str:
        return (
            f"ReservationName={name} StartTime={values['StartTime']} EndTime={values['EndTime']} Duration=00:10:00 "
            f"Nodes={values['Nodes']} NodeCnt=1 CoreCnt=1 Features=(null) PartitionName=(null) Flags={values['Flags']} "
            f"TRES=cpu=1 Users={values.get('Users') or '(null)'} Groups=(null) Accounts={values['Accounts']} "
            "Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)"
        )


def _values(settings: list[str]) -> dict[str, str]:
    return dict(part.split("=", 1) for part in settings)


def _epoch(value: str) -> int:
    return int(value) if value.isdigit() else int(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp())
