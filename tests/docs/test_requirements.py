"""`docs/requirements.md`: its numbers, paths and tests, and the numbers that the code cites."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
NUMBER = r"(?:FR-(?:NEW-)?|SC-)\d{3}"
ROW = re.compile(rf"^\| ({NUMBER}) \| (.+) \| (.*) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(rf"(Sprint 1[,\s]+)?({NUMBER}(?:(?:, | and | to ){NUMBER})*)")


def rows(sprint: int) -> dict[str, tuple[str, str]]:
    """The requirements of a sprint by number: where each is done, and what shows it."""
    section = PAGE.split("\n## Sprint ")[sprint]
    found = ROW.findall(section)
    assert len(found) == len({number for number, *_ in found})
    return {number: (where.strip("` "), shown.strip("` ")) for number, _, where, shown in found}


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_number_of_both_specifications_is_there_once():
    assert len(rows(1)) == 75 + 14
    assert len(rows(2)) == 95 - 1 + 10 + 14


@pytest.mark.parametrize("sprint", [1, 2])
def test_every_requirement_names_a_module_that_is_there(sprint: int):
    assert [
        number
        for number, (where, _) in rows(sprint).items()
        if where and not (ROOT / where).exists()
    ] == []


@pytest.mark.parametrize("sprint", [1, 2])
def test_every_requirement_names_a_test_that_is_there_or_is_excluded(sprint: int):
    for number, (_, shown) in rows(sprint).items():
        if shown == "excluded":
            continue
        file, _, name = shown.partition("::")
        assert (ROOT / file).is_file(), number
        assert name in functions_of(ROOT / file), number


def test_every_number_that_the_code_cites_is_explained():
    for path in sorted((ROOT / "aeon").rglob("*.py")):
        for first, numbers in CITED.findall(path.read_text(encoding="utf-8")):
            known = rows(1) if first else rows(2)
            assert set(re.findall(NUMBER, numbers)) <= set(known), path
