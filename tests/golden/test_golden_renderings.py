"""Does one desired state still give each scheduler the same bytes?

`BERTH_UPDATE_GOLDEN=1 pytest tests/golden` writes the files anew; the difference then belongs into the same commit as
the change of the dialect.
"""

import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from scheduling.dialects import KINDS, dialect
from scheduling.dialects.demo import demo_state
from scheduling.dialects.kueue.objects import as_yaml
from scheduling.plan import diff

HERE = Path(__file__).parent


@pytest.mark.parametrize("kind", KINDS)
def test_the_demo_state_renders_to_the_golden_files(kind):
    speech = dialect(kind)
    texts = speech.files(speech.render(demo_state(kind), None))
    folder = HERE / f"demo-{kind}"
    if os.environ.get("BERTH_UPDATE_GOLDEN"):
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == set(texts)
    for path, text in texts.items():
        assert (folder / path).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("kind", KINDS)
def test_the_golden_files_read_back_are_the_demo_state(kind):
    speech = dialect(kind)
    folder = HERE / f"demo-{kind}"
    texts = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }
    state = demo_state(kind)
    observed = speech.parse(speech.parse_files(texts), installation=state.installation, label_prefix=state.label_prefix)
    assert diff(speech.render(state, None), observed).is_empty
    assert all(item.owned for item in observed.objects)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_change_a_byte(kind):
    speech = dialect(kind)
    state = demo_state(kind)
    turned = replace(
        state,
        teams=tuple(replace(team, quotas=tuple(reversed(team.quotas))) for team in reversed(state.teams)),
        flavors=tuple(reversed(state.flavors)),
        reservations=tuple(reversed(state.reservations)),
        pool_gpus=tuple(reversed(state.pool_gpus)),
    )
    assert speech.files(speech.render(turned, None)) == speech.files(speech.render(state, None))


def test_manifests_read_from_a_file_can_be_written_again():
    """A files endpoint applies one step to what it read: what is read must be as plain as what is rendered."""
    speech = dialect("kueue")
    native = speech.parse_files(speech.files(speech.render(demo_state("kueue"), None)))
    manifests = [manifest for kind in native.values() for manifest in kind]
    assert manifests
    assert all(as_yaml(deepcopy(manifest)) for manifest in manifests)
    assert all(type(value) is dict for manifest in manifests for value in (manifest, manifest["metadata"]))
