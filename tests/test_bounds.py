"""How knotted a function may be, so that one person can hold it in the head. No test counts lines or tokens of files.

`make complexity` prints the functions that are more complex than one should aim for."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aeon

ROOT = Path(aeon.__file__).parent
MOST_LINES_OF_A_FUNCTION = 55
GREATEST_COMPLEXITY = 15
COMPLEXITY_TO_AIM_FOR = 10

KNOTS = frozenset(
    {
        "app/aeon.py:prepared_run",
        "app/parent.py:find_parent",
        "cli/commands/batch.py:batch",
        "cli/commands/cassette.py:_export",
        "cli/commands/check.py:check",
        "cli/commands/plan.py:plan",
        "cli/job/arguments.py:parse",
        "cli/main.py:_run",
        "cli/progress/dag.py:draw",
        "config/compose/problems.py:_describe",
        "config/json_schema.py:_describe",
        "config/provider.py:_settle",
        "config/provider.py:resolve_provider",
        "config/recompose.py:_verdict",
        "config/recompose.py:recompose",
        "convergence/engine.py:parse_assessment",
        "kernel/loop.py:_execution_pass",
        "llm/extract.py:text_of",
        "llm/local/grammar.py:expressible",
        "llm/openai/answer.py:read_answer",
        "observability/cycle_log.py:_errors",
        "observability/cycle_log.py:record",
        "plan/deltas.py:_find_last_too_many",
        "plan/workflow/write.py:workflow_text",
        "schema/examples.py:make",
        "simulated/plan_answers.py:refinement",
        "simulated/situation.py:__init__",
        "simulated/work_answers.py:step",
        "store/cassette_export.py:find_provenance",
        "store/cassette_yaml.py:_read",
    }
)
"""Functions that are more complex than that and are to be untied: a name may leave this set, none may join it."""

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


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, FUNCTIONS):
                yield f"{name}:{node.name}", node


def test_functions_are_short():
    long = {}
    for name, node in functions():
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > MOST_LINES_OF_A_FUNCTION:
            long[name] = lines
    assert not long


def test_no_function_becomes_a_knot():
    knots = {name: strict_complexity(node) for name, node in functions()}
    knots = {name: found for name, found in knots.items() if found > GREATEST_COMPLEXITY}
    assert knots.keys() - KNOTS == set(), "simplify these functions"
    assert KNOTS - knots.keys() == set(), "these are simple now: take them out of KNOTS"


def test_functions_are_simple():
    """Cyclomatic complexity, as configured for `make lint`."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "C901", str(ROOT)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def print_complex_functions() -> None:
    """What `make complexity` shows, the most complex first."""
    all_functions = [(strict_complexity(node), name) for name, node in functions()]
    listed = sorted(entry for entry in all_functions if entry[0] > COMPLEXITY_TO_AIM_FOR)
    for complexity, name in reversed(listed):
        print(f"{complexity:4}  {name}")
    print(f"{len(listed)} of {len(all_functions)} functions are above {COMPLEXITY_TO_AIM_FOR}.")


if __name__ == "__main__":
    print_complex_functions()
