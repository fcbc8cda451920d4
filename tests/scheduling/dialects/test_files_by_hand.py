"""Is a file that somebody's hand has spoiled refused with a sentence, whatever was done to it?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.dialects import DialectError, dialect

GOLDEN = Path(__file__).parents[2] / "golden"
TEXTS = {
    kind: {
        str(path.relative_to(GOLDEN / f"demo-{kind}")): path.read_text()
        for path in sorted((GOLDEN / f"demo-{kind}").rglob("*"))
        if path.is_file()
    }
    for kind in ("slurm", "kueue")
}
SPOILS = (
    "",
    '"',
    "'",
    "\\",
    "=",
    " ",
    "\n",
    "\t",
    ":",
    "- ",
    "{",
    "[",
    "null",
    "3",
    "x=",
    "=x",
    "[1-",
    "\x00",
    "é",
    "0" * 5000,
)


def told(kind: str, texts: dict[str, str]) -> bool:
    """Whether the files could be read; what else than a DialectError comes out is a fault of ours."""
    speech = dialect(kind)
    try:
        speech.parse(speech.parse_files(texts), installation="demo", label_prefix="berth.local")
    except DialectError as error:
        assert error.sentence and not error.sentence.startswith(("'", "KeyError"))
        return False
    return True


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_what_berth_wrote_is_read(kind):
    assert TEXTS[kind] and told(kind, TEXTS[kind])


@pytest.mark.parametrize("kind", sorted(TEXTS))
@given(data=st.data())
def test_any_span_replaced_by_anything_is_read_or_refused(kind, data):
    name = data.draw(st.sampled_from(sorted(TEXTS[kind])))
    text = TEXTS[kind][name]
    first = data.draw(st.integers(0, len(text)))
    last = min(len(text), first + data.draw(st.integers(0, 60)))
    instead = data.draw(st.sampled_from(SPOILS) | st.text(max_size=12))
    told(kind, {**TEXTS[kind], name: text[:first] + instead + text[last:]})


@pytest.mark.parametrize("kind", sorted(TEXTS))
@given(data=st.data())
def test_any_word_replaced_or_left_out_is_read_or_refused(kind, data):
    name = data.draw(st.sampled_from(sorted(TEXTS[kind])))
    lines = TEXTS[kind][name].split("\n")
    at = data.draw(st.sampled_from([number for number, line in enumerate(lines) if line.strip()]))
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    words = lines[at].split()
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(SPOILS))
    lines[at] = indent + " ".join(filter(None, words))
    told(kind, {**TEXTS[kind], name: "\n".join(lines)})


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("slurm/reservations.txt", 'create reservation ReservationName="berth-R-4 StartTime=', "line 1: "),
        ("slurm/reservations.txt", "create reservation ReservationName=berth-R-4 Nodes=gb1", "no StartTime"),
        ("slurm/sacctmgr.txt", "add account x cluster=sol parent=root fairshare=1 organization=y", "no description"),
        ("slurm/sacctmgr.txt", "add account x cluster", "line 1: "),
    ],
)
def test_the_place_and_what_is_missing_are_said(name, line, says):
    speech = dialect("slurm")
    with pytest.raises(DialectError) as refused:
        speech.parse(speech.parse_files({name: line + "\n"}), installation="demo")
    assert says in refused.value.sentence


def test_a_queue_of_somebody_else_that_selects_no_namespace_stands_in_nobodys_way():
    queue = "kind: ClusterQueue\nmetadata: {name: theirs}\nspec: {stopPolicy: Hold}\n"
    speech = dialect("kueue")
    seen = speech.parse(speech.parse_files({"kueue.yaml": queue}), installation="demo", label_prefix="berth.local")
    assert [(each.name, each.owned) for each in seen.objects] == [("theirs", False)]


def test_an_object_of_no_form_is_named():
    speech = dialect("kueue")
    with pytest.raises(DialectError, match="'odd' is not of the form"):
        speech.parse(
            speech.parse_files({"kueue.yaml": "kind: Cohort\nmetadata: {name: odd}\nspec: {resourceGroups: [3]}\n"}),
            installation="demo",
        )
