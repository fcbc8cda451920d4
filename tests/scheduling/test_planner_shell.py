"""Does `python -m scheduling place|earliest` answer as its contract says? (scenario files, bad input, exit codes)"""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduling.__main__ import ANSWERED, BAD_INPUT, WRONG_USE, main

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios" / "place").glob("*.json"))


def run(arguments: list[str], text: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one call."""
    out, complaints = io.StringIO(), io.StringIO()
    code = main(arguments, io.StringIO(text), out, complaints)
    return code, out.getvalue(), complaints.getvalue()


def question() -> dict[str, Any]:
    """A fresh small question that fits."""
    return {
        "fleet": {
            "cluster": "sol",
            "flavors": [{"name": "f", "gpus_per_node": 4, "nodes_per_rack": 2}],
            "racks": [
                {"name": "r1", "block": "b1", "flavor": "f", "nodes": "n[1-2]"},
                {"name": "r2", "flavor": "f", "nodes": "n[3-4]"},
            ],
        },
        "now": "2027-01-01T00:00:00Z",
        "request": {"flavor": "f", "racks": 1, "duration_minutes": 60},
    }


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_is_answered_as_written(path: Path) -> None:
    scenario = json.loads(path.read_text())
    code, out, _ = run([scenario["verb"]], json.dumps(scenario["question"]))
    assert (code, json.loads(out)) == (scenario["exit"], scenario["answer"])


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 8


def test_the_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "scheduling", "place"]
    done = subprocess.run(command, input=json.dumps(question()), capture_output=True, text=True, timeout=60)
    assert done.returncode == ANSWERED
    assert json.loads(done.stdout)["placement"]["racks"] == ["r1"]


BAD = [
    ({"fleet.colour": "red"}, "fleet.colour", "is not a key of this object"),
    ({"request.rack": 1}, "request.rack", "is not a key of this object"),
    ({"fleet.racks.1.shelf": "x"}, "fleet.racks[1].shelf", "is not a key of this object"),
    ({"fleet.racks.1.nodes": "n[2-3]"}, "fleet.racks[1].nodes", "node n2 is in rack r1 and in rack r2"),
    ({"fleet.racks.1.name": "r1"}, "fleet.racks[1].name", "rack r1 is listed twice"),
    ({"fleet.racks.1.flavor": "g"}, "fleet.racks[1].flavor", "rack r2 is of unknown flavor g"),
    ({"fleet.racks.1.nvlink": "so so"}, "fleet.racks[1].nvlink", "must be ok, degraded or broken, is 'so so'"),
    ({"fleet.racks.0.nodes": "n[1-"}, "fleet.racks[0].nodes", None),
    ({"fleet.racks.0.nodes": None}, "fleet.racks[0].nodes", "is required"),
    ({"fleet.flavors.0.gpus_per_node": -1}, "fleet.flavors[0].gpus_per_node", "must not be negative"),
    ({"request.flavor": "g"}, "request.flavor", "sol has no flavor g"),
    ({"request.racks": -2}, "request.racks", "must not be negative"),
    ({"request.racks": 0}, "request.racks", "must be at least 1"),
    ({"request.racks": True}, "request.racks", "must be an integer"),
    ({"request.racks": 1.5}, "request.racks", "must be an integer"),
    ({"request.nodes": 3}, "request.racks", "give exactly one of racks, nodes, gpus; got racks, nodes"),
    ({"request.spare_nodes": -1}, "request.spare_nodes", "must not be negative"),
    ({"request.spare_nodes": 2}, "request.spare_nodes", "a rack of f has 2 nodes; none is left to work"),
    ({"request.duration_minutes": None}, "request.duration_minutes", "is required"),
    ({"request.same_block": "yes"}, "request.same_block", "must be true or false"),
    ({"request.nvlink": "half"}, "request.nvlink", "must be full, degraded_ok or not_needed, is 'half'"),
    ({"request.earliest_start_at": "2027-01-01T00:00:30Z"}, "request.earliest_start_at", "must lie on a whole minute"),
    ({"request.latest_end_at": "2027-01-01T00:00:00"}, "request.latest_end_at", None),
    ({"now": "2027-01-01T00:00:00"}, "now", None),
    ({"now": "yesterday"}, "now", None),
    ({"now": 5}, "now", None),
    ({"now": None}, "now", "is required"),
    ({"fleet.levels": ["block", "block"]}, "fleet.levels[1]", "block is given twice"),
    ({"fleet.levels": ["block", "nodes"]}, "fleet.levels[1]", "nodes is another key of a rack"),
    ({"fleet.returns": [{"nodes": "n1"}]}, "fleet.returns[0].at", "is required"),
    ({"holds": {}}, "holds", "must be a list"),
    ({"holds": [7]}, "holds[0]", "must be an object"),
    ({"others": [{"fleet": {"cluster": "sol", "flavors": [], "racks": []}}]}, "others[0].fleet.cluster", None),
]


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """A question with the values at some dotted paths changed."""
    document = question()
    for path, value in changes.items():
        *way, last = path.split(".")
        place: Any = document
        for key in way:
            place = place[int(key) if key.isdigit() else key]
        place[last] = value
    return document


@pytest.mark.parametrize(("changes", "path", "sentence"), BAD, ids=[f"{case[0]}" for case in BAD])
def test_bad_input_exits_2_with_the_path_and_one_sentence(
    changes: dict[str, Any], path: str, sentence: str | None
) -> None:
    code, out, complaint = run(["place"], json.dumps(changed(changes)))
    error = json.loads(out)["error"]
    assert (code, error["path"]) == (BAD_INPUT, path)
    assert error["sentence"] == (sentence or error["sentence"])
    assert complaint == f"{path}: {error['sentence']}\n"


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    hold = {"reservation": "R-1", "nodes": "n1", "start_at": "2027-01-03T00:00:00Z", "end_at": "2027-01-02T00:00:00Z"}
    code, out, _ = run(["place"], json.dumps({**question(), "holds": [hold]}))
    assert (code, json.loads(out)["error"]["path"]) == (BAD_INPUT, "holds[0].end_at")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[1]"], ids=["cut off", "nested", "a list"])
def test_what_is_not_a_json_object_is_refused(text: str) -> None:
    code, out, _ = run(["place"], text)
    assert (code, json.loads(out)["error"]["path"]) == (BAD_INPUT, "$")


def test_a_line_of_other_bytes_stops_nobody() -> None:
    good = json.dumps(question()).encode()
    command = [sys.executable, "-X", "utf8", "-m", "scheduling", "place", "--lines"]
    done = subprocess.run(command, input=b"\xff\n" + b"[" * 100_000 + b"\n" + good, capture_output=True, timeout=60)
    answers = [next(iter(json.loads(line))) for line in done.stdout.splitlines()]
    assert (done.returncode, answers) == (ANSWERED, ["error", "error", "placement"])


def test_a_hold_may_move_only_within_a_request_that_makes_sense_here() -> None:
    request = {"flavor": "g", "racks": 1, "duration_minutes": 60}
    period = {"start_at": "2027-01-01T00:00:00Z", "end_at": "2027-01-02T00:00:00Z"}
    hold = {"reservation": "R-1", "nodes": "n1", **period, "request": request}
    code, out, _ = run(["place"], json.dumps({**question(), "holds": [hold]}))
    assert (code, json.loads(out)["error"]["path"]) == (BAD_INPUT, "holds[0].request.flavor")


def test_a_bad_node_that_returns_is_placed_from_then_on_and_named_until_then() -> None:
    document = changed({"fleet.unhealthy": "n[1,3]", "request.racks": 2})
    document["fleet"]["returns"] = [{"nodes": "n[1,3]", "at": "2027-01-02T00:00:00Z"}]
    placement = json.loads(run(["place"], json.dumps(document))[1])["placement"]
    assert placement["start_at"] == "2027-01-02T00:00:00Z"
    document["request"]["latest_end_at"] = "2027-01-01T12:00:00Z"
    (reason,) = json.loads(run(["place"], json.dumps(document))[1])["refusal"]["reasons"]
    assert (reason["code"], reason["until_at"]) == ("unhealthy", "2027-01-02T00:00:00Z")
    assert reason["by"] == [{"kind": "node", "id": name, "until_at": "2027-01-02T00:00:00Z"} for name in ("n1", "n3")]


def test_a_bad_node_that_should_be_back_already_is_still_bad() -> None:
    document = changed({"fleet.unhealthy": "n[1,3]", "request.racks": 2})
    document["fleet"]["returns"] = [{"nodes": "n[1,3]", "at": "2027-01-01T00:00:00Z"}]
    assert "refusal" in json.loads(run(["place"], json.dumps(document))[1])


def test_lines_are_answered_in_order_and_a_bad_one_stops_nobody() -> None:
    lines = [json.dumps(question()), "nonsense", json.dumps(changed({"request.racks": 3}))]
    code, out, _ = run(["place", "--lines"], "\n".join(lines) + "\n")
    assert code == ANSWERED
    assert [next(iter(json.loads(line))) for line in out.splitlines()] == ["placement", "error", "refusal"]


def test_every_alternative_is_a_request_that_the_shell_places_where_it_said() -> None:
    document = changed({"fleet.unhealthy": "n1", "request.racks": 2, "request.latest_end_at": "2027-01-02T00:00:00Z"})
    refusal = json.loads(run(["place"], json.dumps(document))[1])["refusal"]
    assert refusal["alternatives"]
    for offer in refusal["alternatives"]:
        again = json.loads(run(["place"], json.dumps({**document, "request": offer["request"]}))[1])
        assert again["placement"] == offer["placement"]


def test_holds_outages_and_jobs_widen_outward_to_whole_minutes() -> None:
    document = question()
    document["fleet"]["racks"].pop()
    document["outages"] = [
        {"name": "M-1", "nodes": "n1", "start_at": "2027-01-01T01:00:59Z", "end_at": "2027-01-01T02:00:01Z"}
    ]
    document["request"]["earliest_start_at"] = "2027-01-01T00:01:00Z"
    placement = json.loads(run(["place"], json.dumps(document))[1])["placement"]
    assert placement["start_at"] == "2027-01-01T02:01:00Z"


def test_nodes_are_the_working_ones_and_spares_lie_beside_them() -> None:
    placement = json.loads(run(["place"], json.dumps(changed({"request.spare_nodes": 1})))[1])["placement"]
    assert (placement["nodes"], placement["spares"]) == ("n1", "n2")


@pytest.mark.parametrize("arguments", [[], ["fly"], ["place", "--fast"], ["place", "earliest"]])
def test_a_wrong_command_line_exits_64(arguments: list[str]) -> None:
    code, out, complaint = run(arguments, "")
    assert (code, out) == (WRONG_USE, "")
    assert complaint.startswith("usage: python -m scheduling")
