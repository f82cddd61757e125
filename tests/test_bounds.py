"""How knotted a function may be, so that one person can hold it in the head, and what functions and classes are called:
a function by a verb and its object, a class by a noun of its own. No test counts lines or tokens of files.

`make complexity` prints the functions that are more complex than one should aim for."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import aeon

ROOT = Path(aeon.__file__).parent
MOST_LINES_OF_A_FUNCTION = 50
GREATEST_COMPLEXITY = 15
COMPLEXITY_TO_AIM_FOR = 10
MOST_ABOVE_THE_AIM = 20
"""Functions that are more complex than one aims for. This number may only fall."""

WORDS_WITHOUT_AN_ACTOR = frozenset({"told", "said", "kept", "wanted", "wishes", "lent", "parting"})
IRREGULAR_PARTICIPLES = re.compile(
    "begun|built|chosen|done|drawn|found|given|gone|held|hidden|known|left|lost|made|met|paid|seen|sent|shown|spent"
    "|taken|written"
)
NO_PARTICIPLES = re.compile(
    "bring|embed|ending|everything|mapping|need|nesting|nothing|opening|packaged|planning|string"
)

BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.match_case,
    ast.Assert,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def strict_complexity(function: ast.AST) -> int:
    """Branches, and what C901 does not count: comprehensions, conditional expressions, boolean operators."""
    total = 1
    remaining = list(ast.iter_child_nodes(function))
    while remaining:
        node = remaining.pop()
        if isinstance(node, FUNCTIONS):
            continue
        total += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        if isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        remaining += ast.iter_child_nodes(node)
    return total


class Definition(NamedTuple):
    """A class or a function of the package."""

    file: str
    name: str
    is_class: bool
    is_property: bool
    lines: int
    complexity: int


# Parsing the whole package takes a second; what is kept of it is small.
@cache
def definitions() -> tuple[Definition, ...]:
    return tuple(read_definitions())


def read_definitions() -> Iterator[Definition]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
                yield Definition(
                    file=path.relative_to(ROOT).as_posix(),
                    name=node.name,
                    is_class=isinstance(node, ast.ClassDef),
                    is_property=is_property(node),
                    lines=(node.end_lineno or node.lineno) - node.lineno + 1,
                    complexity=strict_complexity(node),
                )


def functions() -> Iterator[tuple[str, Definition]]:
    return ((f"{each.file}:{each.name}", each) for each in definitions() if not each.is_class)


def test_functions_are_short():
    long = {name: one.lines for name, one in functions() if one.lines > MOST_LINES_OF_A_FUNCTION}
    assert not long


def test_no_function_is_a_knot():
    knots = {name for name, one in functions() if one.complexity > GREATEST_COMPLEXITY}
    assert knots == set()


def test_few_functions_are_complex():
    above = sum(one.complexity > COMPLEXITY_TO_AIM_FOR for _, one in functions())
    assert above <= MOST_ABOVE_THE_AIM, "`make complexity` lists them"


def test_functions_are_simple():
    """Cyclomatic complexity, as configured for `make lint`."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "C901", str(ROOT)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def words_of(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())


def is_property(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list)


def begins_with_participle(name: str) -> bool:
    first = next(iter(words_of(name)), "")
    if NO_PARTICIPLES.fullmatch(first):
        return False
    return first.endswith(("ed", "ing")) or bool(IRREGULAR_PARTICIPLES.fullmatch(first))


def test_a_function_begins_with_no_participle() -> None:
    found = {
        one.name
        for _, one in functions()
        if begins_with_participle(one.name) and not one.is_property
    }
    assert found == set(), "name these by a verb and its object"


def test_no_name_has_a_word_without_an_actor() -> None:
    found = {one.name for one in definitions() if WORDS_WITHOUT_AN_ACTOR & set(words_of(one.name))}
    assert found == set(), "say who does what"


def test_no_two_classes_have_one_name() -> None:
    files = defaultdict(list)
    for one in definitions():
        if one.is_class:
            files[one.name.lstrip("_")].append(one.file)
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


def test_a_participle_is_recognised() -> None:
    assert not any(map(begins_with_participle, ["embed_schema", "read_file", "_needs"]))


def print_complex_functions() -> None:
    """What `make complexity` shows, the most complex first."""
    all_functions = [(one.complexity, name) for name, one in functions()]
    listed = sorted(entry for entry in all_functions if entry[0] > COMPLEXITY_TO_AIM_FOR)
    for complexity, name in reversed(listed):
        print(f"{complexity:4}  {name}")
    print(f"{len(listed)} of {len(all_functions)} functions are above {COMPLEXITY_TO_AIM_FOR}.")


if __name__ == "__main__":
    print_complex_functions()
