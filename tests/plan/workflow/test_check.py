"""Arguments that a person wrote, held against a tool's schema of any draft."""

from __future__ import annotations

import time
from typing import Any

import pytest

from aeon.plan.workflow.check import argument_problems
from tests.support.timing import SOON

DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        ({**DRAFT_7, "properties": {"p": {"items": [{"type": "string"}]}}}, ["x", 2], []),
        (
            {**DRAFT_7, "properties": {"p": {"items": [{"type": "string"}]}}},
            [1],
            [(("p", 0), "1 is not of type")],
        ),
        (
            {"properties": {"p": {"prefixItems": [{"type": "string"}]}}},
            [1],
            [(("p", 0), "1 is not of type")],
        ),
        (
            {"properties": {"p": {"pattern": "^(a+)+$"}}},
            "a" * 40 + "b",
            [(("p",), "does not match")],
        ),
        (
            {"properties": {"p": {"pattern": r"^(a|a)*\1$"}}},
            "a" * 40 + "b",
            [(("p",), "does not match")],
        ),
    ],
)
def test_what_a_tool_will_refuse_is_found_by_its_own_draft_and_in_time(
    schema: dict[str, Any], value: Any, problems: list[tuple[Any, str]]
) -> None:
    started = time.monotonic()
    found = list(argument_problems({"p": value}, schema))
    assert [place for place, _ in found] == [place for place, _ in problems]
    assert all(said in message for (_, said), (_, message) in zip(problems, found, strict=True))
    assert time.monotonic() - started < SOON
