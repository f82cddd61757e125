"""Runs the tests of a row on the answer to it. The check `unit_tests` copies this file beside the answer.

`answer.py` is the answer, `context.json` has the row with its `tests`: each calls the function and says what
it gives."""

import json
import sys
from pathlib import Path
from typing import Any


def run_test(names: dict[str, Any], test: dict[str, Any]) -> str:
    """What is wrong with a call; nothing when it gives what it should."""
    call, expected = test["call"], test["gives"]
    try:
        given = eval(call, dict(names))
    except Exception as error:
        return f"{call} raises {type(error).__name__}: {error}"
    is_same_kind = isinstance(given, bool) == isinstance(expected, bool)
    return "" if given == expected and is_same_kind else f"{call} gives {given!r}, not {expected!r}"


def main() -> int:
    """Run all tests; 0 when every one passed, and else what failed is printed."""
    tests = json.loads(Path("context.json").read_text(encoding="utf-8"))["row"]["tests"]
    names: dict[str, Any] = {"__name__": "answer"}
    try:
        exec(compile(Path("answer.py").read_text(encoding="utf-8"), "answer.py", "exec"), names)
    except Exception as error:
        print(f"The code cannot be run: {type(error).__name__}: {error}")
        return 1
    wrong = [problem for test in tests if (problem := run_test(names, test))]
    print(f"{len(tests) - len(wrong)} of {len(tests)} tests passed.", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
