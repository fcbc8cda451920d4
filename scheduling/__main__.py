"""How do programs without Python ask the study? (`python -m scheduling VERB`: one JSON object in, one JSON value out)

    python -m scheduling place|earliest [--lines] < question.json

Exit 0 for any answer, a refusal too; 2 for bad input, with one sentence and the JSON path; 64 for a wrong command line.
With --lines each input line is a question of its own, answered in order; a bad line answers {"error": …}.
"""

import io
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from scheduling.answers import Placement, Refusal
from scheduling.feasibility import earliest, find
from scheduling.place_json import InputError, answer_json, read_question
from scheduling.spec import SpecError

ANSWERED, BAD_INPUT, WRONG_USE = 0, 2, 64

VERBS: dict[str, Callable[..., Placement | Refusal]] = {"place": find, "earliest": earliest}


def answer(verb: str, text: str) -> Any:
    """The answer to one document. Raises InputError."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError("$", f"is not JSON: {error}") from error
    except RecursionError as error:
        raise InputError("$", "is nested too deeply") from error
    question = read_question(document)
    try:
        return answer_json(VERBS[verb](question.snapshot, question.spec, others=question.others))
    except SpecError as error:
        raise InputError(f"request.{error.path}", error.sentence) from error


def error_json(error: InputError) -> dict[str, Any]:
    """How bad input is answered."""
    return {"error": {"path": error.path, "sentence": error.sentence}}


def answer_lines(verb: str, lines: TextIO, out: TextIO) -> int:
    """One answer per line; blank lines are passed over."""
    for line in lines:
        if line.strip():
            try:
                written = answer(verb, line)
            except InputError as error:
                written = error_json(error)
            print(json.dumps(written, ensure_ascii=False), file=out, flush=True)
    return ANSWERED


def main(arguments: Sequence[str], inlet: TextIO, out: TextIO, complaints: TextIO) -> int:
    """Run one command line; returns the exit code."""
    options = [argument for argument in arguments if argument.startswith("-")]
    verbs = [argument for argument in arguments if not argument.startswith("-")]
    if len(verbs) != 1 or verbs[0] not in VERBS or set(options) - {"--lines"}:
        print(f"usage: python -m scheduling {'|'.join(VERBS)} [--lines]", file=complaints)
        return WRONG_USE
    if options:
        return answer_lines(verbs[0], inlet, out)
    try:
        written = answer(verbs[0], inlet.read())
    except InputError as error:
        print(json.dumps(error_json(error), ensure_ascii=False), file=out)
        print(error, file=complaints)
        return BAD_INPUT
    print(json.dumps(written, ensure_ascii=False, indent=1), file=out)
    return ANSWERED


if __name__ == "__main__":
    if isinstance(sys.stdin, io.TextIOWrapper):  # a byte that is no UTF-8 is bad input in its line, not the end
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    sys.exit(main(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr))
