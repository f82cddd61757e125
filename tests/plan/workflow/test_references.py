"""References in workflows: what they name, how they are resolved, and how they are kept from being ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.domain.errors import PlanError
from aeon.plan.workflow.references import (
    BadReference,
    Reference,
    escape_references,
    references,
    resolve_arguments,
    resolve_text,
)

INPUTS = {"name": "Ada", "n": "5"}
OUTPUTS: dict[str, Any] = {
    "sum": 12.5,
    "text": "plain",
    "json": '{"rows": [{"v": 1}, {"v": null}]}',
    "object": {"a": {"b": [True, "x"]}, "0": "zero"},
    "a.b": "dotted",
}


@pytest.mark.parametrize(
    ("given_text", "value"),
    [
        ("plain $ {text}", "plain $ {text}"),
        ("${inputs.name}", "Ada"),
        ("Hello ${inputs.name}!", "Hello Ada!"),
        ("${inputs.n}", "5"),
        ("${steps.sum.output}", 12.5),
        ("= ${steps.sum.output} =", "= 12.5 ="),
        ("${steps.object.output.a}", {"b": [True, "x"]}),
        ("<${steps.object.output.a}>", '<{"b": [true, "x"]}>'),
        ("${steps.object.output.a.b.0}", True),
        ("${steps.object.output.0}", "zero"),
        ("${steps.json.output.rows.0.v}", 1),
        ("${steps.json.output.rows.1.v}", None),
        ("${steps.json.output.rows.1.v}.", "null."),
        ("${steps.a.b.output}", "dotted"),
        ("$${inputs.name}", "${inputs.name}"),
        ("$$${inputs.name}", "$${inputs.name}"),
        ("$${${inputs.name}}", "${Ada}"),
        ("$${", "${"),
    ],
)
def test_a_reference_is_exchanged_for_what_it_names(given_text: str, value: Any) -> None:
    assert resolve_arguments({"x": given_text, "deep": [{"y": given_text}]}, INPUTS, OUTPUTS) == {
        "x": value,
        "deep": [{"y": value}],
    }


def test_what_is_filled_in_is_not_read_again() -> None:
    assert resolve_arguments({"x": "${inputs.a} "}, {"a": "${inputs.b} $${"}, {}) == {
        "x": "${inputs.b} $${ "
    }


def test_values_that_are_no_text_and_keys_stay_as_they_are() -> None:
    arguments = {"${inputs.name}": 1, "n": None, "b": True, "l": [1, 2.5]}
    assert resolve_arguments(arguments, INPUTS, OUTPUTS) == arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${inputs.other}", "there is no input `other` (there are: name, n)"),
        ("${steps.later.output}", "step `later` has no output"),
        ("${steps.object.output.q}", "there is no `q` in an object (it has: a, 0)"),
        ("${steps.object.output.a.b.7}", "there is no `7` in a list of 2"),
        ("${steps.text.output.q}", "there is no `q` in a text that is no JSON"),
        ("${steps.sum.output.q}", "there is no `q` in `12.5`"),
        ("${HOME}", "names nothing"),
        ("${steps.sum}", "names nothing"),
        ("${steps..output}", "names nothing"),
        ("${steps.sum.output.}", "names nothing"),
        ("${inputs.}", "names nothing"),
        ("${}", "names nothing"),
        ("${inputs.name", "without a closing `}`"),
    ],
)
def test_what_names_nothing_says_where_and_what_there_is(text: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve_arguments({"q": {"r": ["", text]}}, INPUTS, OUTPUTS)
    assert caught.value.message.startswith("arguments.q.r[2]: ")
    assert said in caught.value.message


def test_everything_that_cannot_be_resolved_is_said_at_once() -> None:
    with pytest.raises(PlanError) as caught:
        resolve_arguments({"a": "${x}", "b": "${inputs.y}", "c": "fine"}, {}, {})
    assert [
        part.split(":")[0]
        for part in caught.value.message.split("; ")
        if part.startswith("arguments")
    ] == [
        "arguments.a",
        "arguments.b",
    ]


def test_a_description_takes_inputs_and_no_outputs() -> None:
    assert resolve_text("For ${inputs.name}: $${n}", INPUTS) == "For Ada: ${n}"
    with pytest.raises(PlanError, match="in arguments only"):
        resolve_text("${steps.sum.output}", INPUTS)


def test_references_are_found_wherever_a_text_is() -> None:
    found = list(references({"a": ["${inputs.x}", {"b": "${steps.s.output.k} ${no}"}], "c": 1}))
    assert [f.name for f in found if isinstance(f, Reference)] == ["x", "s"]
    assert [f.path for f in found if isinstance(f, Reference)] == [(), ("k",)]
    assert isinstance(found[2], BadReference)


@given(st.text(alphabet="${}ab.inputs", max_size=30))
def test_an_escaped_text_is_read_back_as_it_was(text: str) -> None:
    assert resolve_text(escape_references(text), {}) == text
    assert resolve_arguments({"x": escape_references(text)}, {}, {}) == {"x": text}


def test_references_to_keep_are_not_escaped() -> None:
    text = "${inputs.a} ${inputs.b} $${ ${c}"
    kept = escape_references(text, lambda reference: reference.name == "a")
    assert resolve_text(kept, {"a": "A"}) == "A ${inputs.b} $${ ${c}"
