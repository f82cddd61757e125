"""Small changes to the code of some rooms, one at a time: which of them does no test notice?

    python benchmarks/mutants.py [--rooms kernel,refinement,convergence,execution] [--most 400] [--minutes 25]
                                 [--seed 1] [--tests kernel,refinement,...]

A change is made to one function in a forked process, which then runs the tests of its room, then those of all, until
the first fails.
Changed are comparisons, `and` and `or`, conditions, whole numbers, truth values, signs, minima and maxima, returned
values, and statements, which are left out. Prints a line for each change that no test noticed, and the counts. A change
that makes the tests hang counts as noticed after `--patience` seconds. Needs fork; not for Windows.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("kernel", "refinement", "convergence", "execution")
TESTS = (*ROOMS, "contract", "plan", "domain")
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}
OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: where, in which function, and what stands there before and after."""

    path: Path
    line: int
    function: str
    before: str
    after: str
    tree: ast.Module

    def __str__(self) -> str:
        where = f"{self.path.relative_to(ROOT)}:{self.line} {self.function}"
        return f"{where}: {self.before}  ->  {self.after}"


def changes_of(node: ast.AST) -> Iterator[Callable[[ast.AST], ast.AST | None]]:
    """What may be made of a node; None leaves a statement out."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield _swap_comparison
    if isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPPED:
        yield _swap_operator
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda given: given.operand  # type: ignore[attr-defined]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield _negate_condition
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield _change_number
    if isinstance(node, ast.Return) and not _is_empty(node.value):
        yield lambda _: ast.Return(value=ast.Constant(value=None))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in OTHER_CALL
    ):
        yield _change_call
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield lambda _: None


def _is_empty(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)


def _swap_comparison(node: ast.AST) -> ast.AST:
    node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[attr-defined]
    return node


def _swap_operator(node: ast.AST) -> ast.AST:
    node.op = SWAPPED[type(node.op)]()  # type: ignore[attr-defined]
    return node


def _negate_condition(node: ast.AST) -> ast.AST:
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)  # type: ignore[attr-defined]
    return node


def _change_number(node: ast.AST) -> ast.AST:
    value = node.value  # type: ignore[attr-defined]
    node.value = not value if isinstance(value, bool) else value + 1  # type: ignore[attr-defined]
    return node


def _change_call(node: ast.AST) -> ast.AST:
    node.func.id = OTHER_CALL[node.func.id]  # type: ignore[attr-defined]
    return node


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module and the methods of its classes, with their qualified names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


class _Changer(ast.NodeTransformer):
    """Changes the node of a number, counted as `ast.walk` does in one function."""

    def __init__(self, target: ast.AST, change: Callable[[ast.AST], ast.AST | None]) -> None:
        self._target = target
        self._change = change

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node is not self._target:
            return self.generic_visit(node)
        changed = self._change(node)
        return ast.Pass() if changed is None else changed


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, function in functions_of(tree):
        body = [node for statement in function.body for node in ast.walk(statement)]
        for node in body:
            for change in changes_of(node):
                before = ast.unparse(node).splitlines()[0]
                # Nodes are found again in a copy by their identity there.
                twins: dict[int, ast.AST] = {}
                changed_tree = copy.deepcopy(tree, twins)  # type: ignore[arg-type]
                twin = twins[id(node)]
                changed = _Changer(twin, change).visit(changed_tree)
                after = change(copy.deepcopy(node))
                shown = "nothing" if after is None else ast.unparse(after).splitlines()[0]
                yield Mutant(path, node.lineno, name, before, shown, changed)  # type: ignore[attr-defined]


def code_of(module: CodeType, name: str) -> CodeType | None:
    """The code of a function of a module, by its qualified name."""
    for part in name.split("."):
        inner = [each for each in module.co_consts if isinstance(each, CodeType)]
        module = next((each for each in inner if each.co_name == part), None)  # type: ignore[assignment]
        if module is None:
            return None
    return module


def apply(mutant: Mutant) -> bool:
    """Put the changed code into the function of this process."""
    compiled = compile(ast.fix_missing_locations(mutant.tree), str(mutant.path), "exec")
    changed = code_of(compiled, mutant.function)
    found = False
    for each in gc.get_objects():
        if not isinstance(each, FunctionType) or changed is None:
            continue
        code = each.__code__
        is_same = (code.co_filename, code.co_qualname) == (str(mutant.path), mutant.function)
        if is_same and code.co_freevars == changed.co_freevars:
            each.__code__ = changed
            found = True
    return found


def test(tests: list[str]) -> int:
    """The exit status of the tests, which end with the first that fails."""
    options = [
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "-m",
        "not slow",
    ]
    return int(pytest.main([*options, *tests]))


def in_child(mutant: Mutant | None, tests: list[str], patience: float) -> str:
    """Whether the tests of a forked process noticed: noticed, survived, or unknown function."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if mutant is not None and not apply(mutant):
            os._exit(99)
        os._exit(test(tests))
    end = time.monotonic() + patience
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 99: "unknown function"}.get(code, "noticed")
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "noticed"


def main() -> None:
    """Parse the arguments, try the changes, print what no test noticed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--tests", default=",".join(TESTS))
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--patience", type=float, default=90)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    tests = [f"tests/{room}" for room in given.tests.split(",")]
    files = [
        path
        for room in given.rooms.split(",")
        for path in sorted((ROOT / "aeon" / room).glob("*.py"))
    ]
    mutants = [mutant for path in files for mutant in mutants_of(path)]
    chosen = random.Random(given.seed).sample(mutants, min(given.most, len(mutants)))
    if pytest.main(["--collect-only", "-q", "-n", "0", *tests]) != 0:
        raise SystemExit("the tests cannot be collected")
    if in_child(None, tests, 10 * given.patience) != "survived":
        raise SystemExit("the tests fail before anything was changed")
    counts: dict[str, int] = {}
    end = time.monotonic() + 60 * given.minutes
    for mutant in chosen:
        if time.monotonic() > end:
            break
        own = f"tests/{mutant.path.parent.name}"
        found = in_child(mutant, [own], given.patience)
        if found == "survived":
            found = in_child(mutant, [each for each in tests if each != own], given.patience)
        counts[found] = counts.get(found, 0) + 1
        if found != "noticed":
            print(f"{found}: {mutant}", flush=True)
    print(f"{len(mutants)} changes are possible, {sum(counts.values())} were tried: {counts}")


if __name__ == "__main__":
    main()
