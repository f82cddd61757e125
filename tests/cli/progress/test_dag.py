"""The drawing of a plan's dependencies: what it looks like, and that its lines say exactly what the plan says."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon.cli.progress.dag import draw
from aeon.domain.errors import PlanError
from aeon.domain.plan import Plan, PlanStep

JOINS, ENDS, NODES = "├┤┼╰╯┴", "╰╯┴", "●■"


def plan(edges: Mapping[str, str], **fields: str) -> Plan:
    """A plan by its dependencies: `{"b": "a"}`; a step whose name ends in `!` is done by a tool."""
    return Plan(
        goal="g",
        steps=tuple(
            PlanStep(
                step_id=name.rstrip("!"),
                description=fields.get("description", f"Do {name}"),
                dependencies=tuple(dependencies.split()),
                tool="echo" if name.endswith("!") else None,
            )
            for name, dependencies in edges.items()
        ),
    )


def random_plan(size: int, seed: int, reach: int = 10) -> Plan:
    rng = random.Random(seed)
    edges: dict[str, str] = {}
    for index in range(size):
        near = list(edges)[-reach:]
        edges[f"s{index}"] = " ".join(rng.sample(near, min(len(near), rng.choice([0, 1, 1, 2, 3]))))
    return plan(edges)


def read_back(text: str, ids: list[str]) -> dict[str, set[str]]:
    """What the lines say: each lane is followed from the step it begins at to those it reaches."""
    rows = text.rpartition("\n\n")[0].splitlines()
    indent = len(rows[0]) - len(rows[0].lstrip(" 0123456789"))
    owner: dict[int, str] = {}
    found: dict[str, set[str]] = {}
    for row, below in zip(rows, [*rows[1:], ""], strict=True):
        lanes = row[indent:]
        step_id = next((word for word in lanes.split() if word in ids), None)
        if step_id is None:
            assert set(lanes) <= {" ", "│"}
            continue
        node = next(place for place, ch in enumerate(lanes) if ch in NODES)
        joined = [*reached(lanes, node, -1), *reached(lanes, node, 1)]
        found[step_id] = {owner[place] for place in joined} | (
            {owner[node]} if node in owner else set()
        )
        for place in (node, *joined):
            if place == node or lanes[place] in ENDS:
                owner.pop(place, None)
        if below[indent + node : indent + node + 1] in ("│", *JOINS):
            owner[node] = step_id
    return found


def reached(lanes: str, node: int, direction: int) -> list[int]:
    """The lanes that the line from a step to one side joins; lanes are two columns apart."""
    found = []
    place = node
    while 0 <= place + direction < len(lanes) and lanes[place + direction] == "─":
        place += 2 * direction
        found += [place] if lanes[place] in JOINS else []
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.integers(0, 10_000), st.integers(2, 14))
def test_the_lines_say_what_the_plan_says(size: int, seed: int, reach: int) -> None:
    drawn = random_plan(size, seed, reach)
    ids = [step.step_id for step in drawn.steps]
    assert read_back(draw(drawn, width=120), ids) == {
        step.step_id: set(step.dependencies) for step in drawn.steps
    }


def test_a_diamond() -> None:
    text = draw(plan({"read!": "", "facts": "read", "claims": "read", "compare": "facts claims"}))
    assert (
        text
        == """\
1  ■    read     [echo] Do read!
   │
2  ├─●  facts    Do facts
   ● │  claims   Do claims
   │ │
3  ●─╯  compare  Do compare

● done by the model   ■ done by a tool"""
    )


def test_a_chain_and_steps_that_need_nothing() -> None:
    assert draw(plan({"a": "", "b": "a"})).startswith("1  ●  a  Do a\n   │\n2  ●  b  Do b\n")
    assert draw(plan({"a": "", "b": ""})).startswith("1  ●  a  Do a\n   ●  b  Do b\n")


def test_joining_and_passing_by_look_different() -> None:
    text = draw(plan({"a": "", "b": "", "c": "", "d": "a c", "e": "a b c d"}))
    assert "├─│─┼─●  d" in text
    assert "●─┴─┴─╯  e" in text


def test_ascii_alone_where_nothing_else_can_be_shown() -> None:
    text = draw(plan({"a!": "", "b": "a", "c": "a", "d": "b c"}), ascii_only=True)
    assert text.isascii()
    assert (
        text
        == """\
1  #    a  [echo] Do a!
   |
2  +-o  b  Do b
   o |  c  Do c
   | |
3  o-'  d  Do d

o done by the model   # done by a tool"""
    )


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("size", [1, 3, 10, 40, 100])
def test_no_line_is_wider_than_allowed_and_every_step_has_one(width: int, size: int) -> None:
    for seed in range(3):
        drawn = random_plan(size, seed)
        lines = draw(drawn, width=width).splitlines()
        assert max(map(cell_len, lines)) <= width
        words = [set(line.split()) for line in lines]
        assert all(sum(step.step_id in there for there in words) >= 1 for step in drawn.steps)


def test_twenty_steps_side_by_side_fit_80_columns_as_a_drawing() -> None:
    parts = {f"part{n}": "start" for n in range(19)}
    text = draw(plan({"start": "", **parts, "end": " ".join(parts)}))
    assert "←" not in text
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "  end     Do end" in text


def test_dependencies_are_named_where_there_are_too_many_to_draw() -> None:
    parts = {f"part{n}": "start" for n in range(90)}
    text = draw(
        plan({"start": "", **parts, "end": "part0 part1 part89 " + " ".join(parts)}), width=80
    )
    assert "●  part0   ← start" in text
    assert "●  end     ← part0, part1, part89, " in text
    assert max(map(cell_len, text.splitlines())) <= 80


def test_wide_characters_count_two_and_control_characters_do_nothing() -> None:
    text = draw(
        plan({"読む": "", "b": "読む"}, description="見る\x1b[31m " + "長い説明" * 30), width=60
    )
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= 60
    assert "●  読む  見る" in text
    assert "●  b     見る" in text


def test_long_ids_are_cut() -> None:
    text = draw(
        plan(
            {"a_step_with_a_very_long_name_indeed": "", "b": "a_step_with_a_very_long_name_indeed"}
        )
    )
    assert "a_step_with_a_very_long…  Do a_step" in text


def test_a_cycle_cannot_be_drawn() -> None:
    with pytest.raises(PlanError, match="loop"):
        draw(plan({"a": "b", "b": "a"}))


def test_a_step_of_a_person_has_a_sign_of_its_own() -> None:
    steps = (
        PlanStep(step_id="a", description="measure", agent="person"),
        PlanStep(step_id="b", description="say", agent="llm", dependencies=("a",)),
    )
    drawn = draw(Plan(goal="g", steps=steps), width=80)
    assert "◆  a  [person] measure" in drawn
    assert "◆ done by a person" in drawn
    assert "*  a  [person] measure" in draw(Plan(goal="g", steps=steps), width=80, ascii_only=True)
