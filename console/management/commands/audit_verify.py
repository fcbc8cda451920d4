"""manage.py audit_verify: does the chain of events still hold? Everything is read again, then more is sealed."""

from typing import Any

from django.utils import timezone

from allocations.services import sealing
from console.management.base import BerthCommand


class Command(BerthCommand):
    """Exit 0 the chain holds, 1 it does not (each fault on a line of its own), 64 wrong usage."""

    help = "Verify the chain of sealed events."

    def perform(self, **given: Any) -> int | None:
        # Looked at before anything is added: a break must not be sealed over.
        report = sealing.verify()
        for fault in report.faults:
            self.stderr.write(fault.sentence)
        if report.faults:
            self.stderr.write(f"The chain is broken in {len(report.faults)} places.")
            return 1
        sealed = sealing.seal(at=timezone.now())
        waiting = report.unsealed - sealed
        more = f"; {waiting} are younger than the oldest running transaction and wait" if waiting > 0 else ""
        self.stdout.write(f"{report.seals} seals over {report.events} events hold; {sealed} more sealed now{more}.")
        return None
