"""Are Slurm's texts read right, and is nothing written that a command line could misread?"""

from dataclasses import replace

import pytest

from scheduling.dialects import UnknownDialect, dialect
from scheduling.dialects.demo import demo_state
from scheduling.dialects.errors import DialectError, NameClash, NameNotAllowed, UnknownReference
from scheduling.dialects.slurm.names import node_list, same_nodes
from scheduling.dialects.slurm.parse import key_values, read_config, reservation_records
from scheduling.dialects.slurm.usage import walltime
from scheduling.plan import diff
from tests.parts import SHARED

SLURM = dialect("slurm")
TRANSCRIPTS = SHARED / "lab" / "slurm_transcripts"
VERSIONS = ("22.05", "24.11", "26.05")


def transcript_answers(name: str) -> dict[str, list[str]]:
    """Command -> its answers, from a recorded session of a real controller."""
    path = TRANSCRIPTS / name
    answers: dict[str, list[str]] = {}
    command = ""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            command, lines = line[2:], []
        elif line.startswith("[rc="):
            answers.setdefault(command, []).append("\n".join(lines))
        elif not line.startswith("2> "):
            lines.append(line)
    return answers


@pytest.mark.part("shared")
@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_reservations_of_each_version_are_read_whole(version):
    text = transcript_answers(f"resv-{version}.txt")["scontrol -o show reservation"][0]
    records = {record["ReservationName"]: record for record in reservation_records(text)}
    assert records["r_nodes"]["Nodes"] == "gpu[60-63]"
    assert records["r_nodes"]["Accounts"] == "acc1,acc2"
    assert records["r_allpart"]["Nodes"] == "gpu[01-72]"
    assert records["r_core"]["NodeCnt"] == "1" and records["r_core"]["Users"] == ""
    if version != "22.05":  # of repeated pairs the first is kept, and what follows them is not lost
        assert records["r_tres"]["NodeName"] == "gpu59" and records["r_tres"]["TRES"] == "cpu=432,gres/gpu=10"


@pytest.mark.part("shared")
@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_accounts_of_each_version_are_read_and_stay_foreign(version):
    answers = transcript_answers(f"acct-{version}.txt")
    rows = answers["sacctmgr -P show account withcoord"][0].splitlines()[1:]
    accounts = "\n".join(line.rpartition("|")[0] for line in rows)
    tree = answers["sacctmgr -P show account withassoc"][0].splitlines()[1:]
    cells = [line.split("|") for line in tree]
    associations = "\n".join(f"{row[3]}|{row[0]}|{row[5]}||{row[4]}|{row[6]}" for row in cells)
    native = {
        "config": f"ClusterName = lab\nSLURM_VERSION = {version}.1\n",
        "accounts": accounts,
        "associations": associations,
        "reservations": "No reservations in the system\n",
    }
    observed = SLURM.parse(native, installation="demo")
    found = {item.name: item for item in observed.objects}
    assert found["hep"].attributes["parent"] == "root" and found["hep"].attributes["fairshare"] == 1
    assert found["physics"].attributes["description"] == "physics dept"
    assert not any(item.owned for item in observed.objects)
    assert observed.facts["native_cluster"] == "lab" and observed.facts["version"][:2] == (
        int(version[:2]),
        int(version[3:]),
    )


def test_epochs_and_utc_texts_give_the_same_moment():
    line = "ReservationName=berth-R-1 StartTime={} EndTime=1799136000 Nodes=b2,b1 Flags=SPEC_NODES Accounts=A,b"
    first, second = (
        SLURM.parse({**ROOT_ONLY, "reservations": line.format(start)}, installation="x").objects[0]
        for start in ("1798704000", "2026-12-31T08:00:00")
    )
    assert first.attributes == second.attributes
    assert first.attributes["nodes"] == "b[1-2]" and first.attributes["accounts"] == "a,b"
    assert first.attributes["flags"] == ""


ROOT_ONLY = {
    "config": "ClusterName = lab\nSLURM_VERSION = 24.11.5\n",
    "accounts": "root|default root account|root\n",
    "associations": "lab|root||||1\n",
}


def test_values_with_spaces_and_equal_signs_keep_them():
    record = key_values("ReservationName=r Comment=hello big = world Flags=  NodeName=a CoreIDs=0-3 TRES=cpu=4")
    assert record["Comment"] == "hello big = world"
    assert record["Flags"] == "" and record["TRES"] == "cpu=4"


def test_a_line_that_is_no_reservation_is_refused():
    with pytest.raises(DialectError, match="not a reservation line"):
        reservation_records("slurm_load_reservations error: Unable to contact slurm controller")


def test_a_configuration_without_the_cluster_name_is_refused():
    with pytest.raises(DialectError, match="ClusterName"):
        read_config("SLURM_VERSION = 22.05.8\n")


def test_an_account_with_a_bar_in_its_description_is_read():
    native = {**ROOT_ONLY, "accounts": "phys|a|b|Uni\n", "reservations": "No reservations in the system"}
    (account,) = SLURM.parse(native, installation="x").objects
    assert account.attributes["description"] == "a|b" and account.attributes["organization"] == "uni"


def test_two_clusters_in_one_database_are_kept_apart():
    native = {
        **ROOT_ONLY,
        "accounts": "phys|berth: phys|berth-x\nchem|berth: chem|berth-x\n",
        "associations": "lab|phys|||root|5\nother|phys|||root|9\nother|chem|||root|9\n",
        "reservations": "No reservations in the system",
    }
    (account,) = SLURM.parse(native, installation="x").objects
    assert account.name == "phys" and account.owned and account.attributes["fairshare"] == 5


@pytest.mark.parametrize(
    "bad", ["a b", "a;b", "a'b", "a\nb", "a,b", "a=b", "$(a)", "", "-a", "naïve", "x" * 65], ids=repr
)
def test_a_name_that_a_command_line_could_misread_is_refused_before_anything_is_sent(bad):
    state = demo_state("slurm")
    first, *others = state.reservations
    for changed in (
        replace(state, reservations=(replace(first, id=f"R {bad}"), *others)),
        replace(state, reservations=(replace(first, nodes=(*first.nodes, bad)), *others)),
        replace(state, teams=(*state.teams, replace(state.teams[-1], account=bad))),
        replace(state, cluster=f"{bad} "),
    ):
        with pytest.raises(NameNotAllowed) as caught:
            SLURM.render(changed, None)
        assert caught.value.code == "name_not_allowed"


def test_two_teams_whose_accounts_differ_in_case_only_are_refused():
    state = demo_state("slurm")
    twin = replace(state.teams[-1], account="PLATFORM")
    with pytest.raises(NameClash):
        SLURM.render(replace(state, teams=(*state.teams, twin)), None)


def test_a_reservation_for_a_team_that_is_not_there_is_refused():
    state = demo_state("slurm")
    with pytest.raises(UnknownReference):
        SLURM.render(replace(state, teams=state.teams[:1]), None)


def test_node_lists_are_one_spelling_for_one_set_and_end_in_their_ranges():
    assert node_list(("gb002", "gb001", "gb003")) == same_nodes("gb[001,003],gb002") == "gb[001-003]"
    assert node_list(("n1-ib", "n2-ib")) == "n1-ib,n2-ib"
    assert same_nodes("(null)") == ""


def test_walltimes_are_written_as_slurm_takes_them():
    assert [walltime(minutes) for minutes in (0, 59, 390, 4320, 4321)] == [
        "00:01:00", "00:59:00", "06:30:00", "3-00:00:00", "3-00:01:00"
    ]  # fmt: skip


def test_the_lines_to_copy_name_account_reservation_nodes_and_the_longest_time_that_fits():
    state = demo_state("slurm")
    batch, interactive = SLURM.usage(state, state.reservations[0], "climate")
    assert batch.text == (
        "sbatch --account=climate --reservation=berth-R-131 --partition=nvl72 --nodes=17 --gres=gpu:gb200:4 "
        "--time=2-15:59:00 job.sh"
    )
    assert interactive.text.startswith("srun --account=climate --reservation=berth-R-131 ")


def test_the_longest_job_is_the_whole_before_the_start_and_ends_in_time_after_it():
    wanted = replace(demo_state("slurm").reservations[0], start_minute=100, end_minute=160)
    longest = [wanted.longest_minutes(at) for at in (0, 99, 100, 101, 158, 159)]
    assert longest == [60, 60, 59, 58, 1, 1]


def test_files_read_back_are_what_was_written():
    rendered = SLURM.render(demo_state("slurm"), None)
    texts = SLURM.files(rendered)
    assert set(texts) == {"slurm/sacctmgr.txt", "slurm/reservations.txt"}
    observed = SLURM.parse(SLURM.parse_files(texts), installation="demo")
    assert diff(rendered, observed).is_empty
    empty = SLURM.parse(SLURM.parse_files({}), installation="demo")
    assert empty.objects == () and empty.facts["native_cluster"] == ""
    assert len(diff(rendered, empty).steps) == len(rendered.objects)


def test_a_file_with_a_line_that_berth_did_not_write_is_refused():
    with pytest.raises(DialectError, match="not a line of ours"):
        SLURM.parse_files({"slurm/reservations.txt": "rm -rf reservation\n"})


def test_an_unknown_kind_of_scheduler_is_a_coded_error():
    with pytest.raises(UnknownDialect) as caught:
        dialect("abacus")
    assert caught.value.code == "unknown_dialect" and "slurm" in caught.value.sentence
