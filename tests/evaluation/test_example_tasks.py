"""The forty tasks of examples/eval/: the file is what the generator makes, and its tests of programs tell right from wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aeon.batch.dataset import Common, open_dataset
from aeon.config.settings import BatchColumns
from aeon.schema.equality import is_same
from tests.evaluation import example_tasks
from tests.evaluation.example_tasks import PROGRAMS

FOLDER = example_tasks.PATH.parent
SOLUTIONS = {
    "durations": """
import re
def seconds_of(text):
    found = re.fullmatch(r"(?:(\\d+)d)? *(?:(\\d+)h)? *(?:(\\d+)m)? *(?:(\\d+)s)?", text)
    if not found or not any(found.groups()):
        return None
    return sum(int(part or 0) * unit for part, unit in zip(found.groups(), (86400, 3600, 60, 1)))
""",
    "intervals": """
def merge(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1] + 1:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return merged
""",
    "brackets": """
def first_fault(text):
    still_open, is_quoted, skips = [], False, False
    for place, sign in enumerate(text):
        if skips:
            skips = False
        elif is_quoted:
            skips = sign == "\\\\"
            is_quoted = sign != '"'
        elif sign == '"':
            is_quoted = True
        elif sign in "([{":
            still_open.append(")]}"["([{".index(sign)])
        elif sign in ")]}" and (not still_open or still_open.pop() != sign):
            return place
    return len(text) if still_open or is_quoted else -1
""",
    "order": """
def order(needs):
    left = {name: set(before) for name, before in needs.items()}
    for before in needs.values():
        for name in before:
            left.setdefault(name, set())
    found = []
    while left:
        ready = sorted(name for name, before in left.items() if not before - set(found))
        if not ready:
            return None
        found.append(ready[0])
        del left[ready[0]]
    return found
""",
    "luhn": """
def check_digit(number):
    total = 0
    for place, digit in enumerate(reversed(number.replace(" ", ""))):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value // 10 + value % 10
    return str(-total % 10)
""",
    "wrap": """
def wrap(text, width):
    lines, waiting = [], text.split()
    while waiting:
        word = waiting.pop(0)
        if len(word) > width:
            lines.append(word[:width])
            waiting.insert(0, word[width:])
        elif lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
""",
    "versions": """
from itertools import zip_longest
def compare(one, other):
    def key(text):
        numbers, dash, rest = text.partition("-")
        parts = [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in rest.split(".")] if dash else []
        return [int(n) for n in numbers.split(".")], not dash, parts
    (a, final_a, x), (b, final_b, y) = key(one), key(other)
    size = max(len(a), len(b))
    left, right = (a + [0] * (size - len(a)), final_a, x), (b + [0] * (size - len(b)), final_b, y)
    return (left > right) - (left < right)
""",
    "spiral": """
def spiral(rows):
    left, found = [list(row) for row in rows], []
    while left:
        found += left.pop(0)
        left = [list(column) for column in zip(*left)][::-1]
    return found
""",
}


def test_the_file_is_what_the_generator_makes() -> None:
    assert example_tasks.PATH.read_text(encoding="utf-8") == example_tasks.write_text()


def test_there_are_eight_tasks_of_each_of_five_kinds() -> None:
    rows = example_tasks.rows()
    kinds = [row["metadata"]["kind"] for row in rows]
    assert len(rows) == 40
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(kinds, 8)
    assert all(("target" in row) != ("tests" in row) for row in rows)


def test_every_row_is_one_that_can_be_run() -> None:
    dataset = open_dataset(example_tasks.PATH, BatchColumns(), Common())
    assert [row.problem for row in dataset.rows()] == [""] * 40


def test_an_answer_that_is_the_target_in_another_form_is_right() -> None:
    for row in open_dataset(example_tasks.PATH, BatchColumns(), Common()).rows():
        if row.target[:1] in ("{", "["):
            pretty = json.dumps(json.loads(row.target), indent=4, sort_keys=True)
            assert is_same(f"```json\n{pretty}\n```", row.target)


def run_tests(folder: Path, name: str, code: str) -> subprocess.CompletedProcess[str]:
    """What the check `unit_tests` runs, on an answer with this code."""
    context: dict[str, Any] = {"row": PROGRAMS[name]}
    (folder / "context.json").write_text(json.dumps(context))
    (folder / "answer.py").write_text(code)
    command = [sys.executable, str(FOLDER / "run_tests.py")]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_right_program_passes_its_tests(tmp_path: Path, name: str) -> None:
    ended = run_tests(tmp_path, name, SOLUTIONS[name])
    count = len(PROGRAMS[name]["tests"])
    assert (ended.returncode, ended.stdout) == (0, f"{count} of {count} tests passed.\n")


@pytest.mark.parametrize(
    ("name", "right", "wrong", "told"),
    [
        ("intervals", "+ 1", "", "merge([[5, 6], [1, 2], [3, 4]]) gives [[1, 2], [3, 4], [5, 6]]"),
        (
            "luhn",
            "(2 if place % 2 == 0 else 1)",
            "(1 if place % 2 == 0 else 2)",
            "check_digit('1')",
        ),
        ("order", "sorted(", "list(", "order({'c': [], 'a': ['c'], 'b': []}) gives"),
        ("spiral", "[list(row) for row in rows]", "rows", "gives [[3, 4]], not [[1, 2], [3, 4]]"),
        ("versions", "int(p)", "0", "compare('2.0-rc.2', '2.0-rc.10') gives 0, not -1"),
    ],
)
def test_a_wrong_program_fails_and_is_told_where(
    tmp_path: Path, name: str, right: str, wrong: str, told: str
) -> None:
    assert right in SOLUTIONS[name]
    ended = run_tests(tmp_path, name, SOLUTIONS[name].replace(right, wrong))
    assert ended.returncode == 1
    assert told in ended.stdout


def test_code_that_cannot_be_run_fails_with_the_reason(tmp_path: Path) -> None:
    ended = run_tests(tmp_path, "luhn", "def check_digit(:")
    assert ended.returncode == 1
    assert ended.stdout.startswith("The code cannot be run: SyntaxError: ")
    assert "NameError" in run_tests(tmp_path, "luhn", "digit = 1").stdout
