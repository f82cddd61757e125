"""SECURITY.md promises what tests hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISED = re.findall(r"\| `(tests/\S+\.py)::(\w+)` \|", (ROOT / "SECURITY.md").read_text("utf-8"))


def test_there_are_promises_each_with_a_test() -> None:
    section = (ROOT / "SECURITY.md").read_text("utf-8").partition("## What is promised")[2]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(PROMISED) >= 20


@pytest.mark.parametrize(("file", "name"), PROMISED)
def test_a_promise_names_a_test_that_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
