"""What does a person ask for? (ReservationSpec: one type for form, API, command line and engine)"""

from dataclasses import dataclass, replace


class SpecError(ValueError):
    """A spec that is wrong in itself. `path` names the key, `sentence` says what is wrong with it."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path}: {sentence}")
        self.path, self.sentence = path, sentence


@dataclass(frozen=True, slots=True)
class ReservationSpec:
    """A shape, a length and a window. Exactly one of racks, nodes, gpus is given.

    `nodes_per_rack` are the working nodes of each rack (left out: the flavor's full rack less spare_nodes);
    `spare_nodes` lie beyond them in the same rack. `avoid`/`prefer` name nodes. Minutes count from the epoch,
    UTC; the window is [earliest_start_minute, latest_end_minute) and None means from now / 400 days ahead.
    GPUs round up to whole nodes. `min`, in the same unit, is the size that will do: the earliest start at which it
    fits counts, and there as much as possible up to the size is taken. Build it through `checked()`, which refuses
    what is wrong in itself.
    """

    flavor: str
    duration_minutes: int
    racks: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    nodes_per_rack: int | None = None
    spare_nodes: int = 0
    same_block: bool = False
    max_blocks: int | None = None
    avoid: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    avoid_racks: tuple[str, ...] = ()
    prefer_racks: tuple[str, ...] = ()
    earliest_start_minute: int | None = None
    latest_end_minute: int | None = None
    ignore_jobs: bool = False
    nvlink: str = "full"
    min: int | None = None

    @property
    def size(self) -> int:
        """How many racks, nodes or GPUs are asked for."""
        return self.racks or self.nodes or self.gpus or 0

    def of_size(self, size: int) -> "ReservationSpec":
        """The same spec for exactly another number in its own unit."""
        if self.racks is not None:
            return replace(self, racks=size, min=None)
        return replace(self, nodes=size, min=None) if self.nodes is not None else replace(self, gpus=size, min=None)

    def checked(self) -> "ReservationSpec":
        """Itself when it makes sense alone (sizes, counts, window); raises SpecError with the key otherwise."""
        sizes = [key for key in ("racks", "nodes", "gpus") if getattr(self, key) is not None]
        if len(sizes) != 1:
            raise SpecError("racks", f"give exactly one of racks, nodes, gpus; got {', '.join(sizes) or 'none'}")
        for key in ("racks", "nodes", "gpus", "nodes_per_rack", "max_blocks", "duration_minutes", "min"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise SpecError(key, f"must be at least 1, is {value}")
        if self.min is not None and self.min > self.size:
            raise SpecError("min", f"must be at most what is asked, {self.size}, is {self.min}")
        if self.spare_nodes < 0:
            raise SpecError("spare_nodes", f"must not be negative, is {self.spare_nodes}")
        if self.racks is None and (self.nodes_per_rack is not None or self.spare_nodes):
            key = "nodes_per_rack" if self.nodes_per_rack is not None else "spare_nodes"
            raise SpecError(key, "goes with racks only")
        if self.nvlink not in ("full", "degraded_ok", "not_needed"):
            raise SpecError("nvlink", f"must be full, degraded_ok or not_needed, is {self.nvlink!r}")
        start, end = self.earliest_start_minute, self.latest_end_minute
        if start is not None and end is not None and end <= start:
            raise SpecError("latest_end_at", "the window ends before it starts")
        return self
