"""How is a Kueue cluster written into a file, and read back? (kueue.yaml: one document per object)"""

from collections.abc import Mapping
from typing import Any

from scheduling.dialects.errors import UnreadableAnswer
from scheduling.dialects.kueue.objects import as_yaml
from scheduling.dialects.kueue.parse import READS
from scheduling.inventory.documents import load_yaml
from scheduling.inventory.fleet import InventoryError
from scheduling.plan import Rendered

FILE = "kueue.yaml"


def files(rendered: Rendered) -> dict[str, str]:
    """Path below the cluster's folder -> text: objects in creation order, the same bytes for the same state.

    Node documents hold our label and taint alone; whoever applies them merges, as node_patch() does.
    """
    return {FILE: "---\n".join(as_yaml(item.native) for item in rendered.objects)}


def parse_files(texts: Mapping[str, str]) -> dict[str, list[Any]]:
    """What READS would answer on a cluster that holds exactly this file; no file is a cluster without objects.

    Raises UnreadableAnswer for what is no YAML or no object of a class that Berth writes.
    """
    native: dict[str, list[Any]] = {kind: [] for kind in READS}
    try:
        documents = load_yaml(FILE, texts.get(FILE, ""))
    except InventoryError as error:
        raise UnreadableAnswer(FILE, str(error)) from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or document.get("kind") not in native:
            raise UnreadableAnswer(FILE, f"not an object of ours: {str(document)[:120]!r}")
        native[document["kind"]].append(_plain(document))
    return native


def _plain(value: Any) -> Any:
    """The value without the reader's line numbers, so that it can be written again."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
