"""How large things may be, so that one person can hold them in the head. An exception has its reason beside it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aeon

ROOT = Path(aeon.__file__).parent
MOST_LINES_OF_A_FUNCTION = 40
MOST_LINES_OF_A_FILE = 300
MOST_LINES_OF_THE_ENGINE = 22_800
MOST_LINES_OF_WHAT_SHOWS_A_RUN = 5_260
SHOWS_A_RUN = (
    "report/",
    "observability/otel",
    "cli/progress/",
    "cli/commands/inspect",
    "cli/commands/runs",
    "cli/commands/compare",
    "llm/watching",
    "llm/openai/pieces",
)
"""Rooms and modules that no run needs to reach its end."""
MOST_LINES_OF_MANY_RUNS = 4_150
MANY_RUNS = (
    "batch/",
    "app/many",
    "cli/commands/batch",
    "cli/job/sweep",
    "cli/job/multirun",
    "llm/openai/batches",
    "files/tables",
)
"""What no single run needs."""
LONG_FUNCTIONS: dict[str, str] = {}
LONG_FILES: dict[str, str] = {}


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_functions_are_short():
    long = {}
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                lines = node.end_lineno - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long[f"{name}:{node.name}"] = lines
    assert long.keys() == LONG_FUNCTIONS.keys(), long


def test_files_are_short():
    long = {name: len(text.splitlines()) for name, text in sources()}
    long = {name: lines for name, lines in long.items() if lines > MOST_LINES_OF_A_FILE}
    assert long.keys() == LONG_FILES.keys(), long


def test_the_package_is_small():
    lines = {name: len(text.splitlines()) for name, text in sources()}
    shows = sum(count for name, count in lines.items() if name.startswith(SHOWS_A_RUN))
    many = sum(count for name, count in lines.items() if name.startswith(MANY_RUNS))
    assert shows <= MOST_LINES_OF_WHAT_SHOWS_A_RUN
    assert many <= MOST_LINES_OF_MANY_RUNS
    assert sum(lines.values()) - shows - many <= MOST_LINES_OF_THE_ENGINE


def test_functions_are_simple():
    """Cyclomatic complexity, as configured for `make lint`."""
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--select", "C901", str(ROOT)], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()
