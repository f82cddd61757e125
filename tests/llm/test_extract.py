from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.llm.extract import MAX_DEPTH, ExtractError, extract_json

VALUE = {"goal": 'x {y} ``` </think> \\ "q"', "steps": [{"a": 1}, {"b": None}]}
TEXT = json.dumps(VALUE)
PRETTY = json.dumps(VALUE, indent=2)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n  {PRETTY}\n",
        "\ufeff" + TEXT,
        f"```json\n{PRETTY}\n```",
        f"```\n{TEXT}\n```\nThat is all.",
        f"Here you are:\n\n```json\n{PRETTY}\n```",
        f"I use {{x}} and [1] and {{ braces: as follows: {TEXT} - done {{",
        f'<think>Maybe {{"goal": 1}}?</think>\n{TEXT}',
        f"<thinking>\nhm\n</thinking>\n```json\n{TEXT}\n```",
        f'a template ate the opening tag {{"goal": 0}}</think>{TEXT}',
        f'it is missing, and there is prose {{"goal": 0}}</think> so: {TEXT}',
        f'```python\nprint("no")\n```\n```json\n{TEXT}\n```',
        f'First a sketch: {{"steps": [...]}}. Now the answer: {TEXT}',
    ],
)
def test_json_is_found_wherever_models_put_it(text: str) -> None:
    assert extract_json(text) == VALUE


def test_a_fenced_answer_wins_over_an_example_in_prose() -> None:
    assert extract_json('Unlike {"a": 0}:\n```json\n{"a": 1}\n```') == {"a": 1}


def test_of_several_objects_the_first_is_taken() -> None:
    assert extract_json('one {"a": 1} two {"a": 2}') == {"a": 1}


def test_an_array_is_taken_where_there_is_no_object() -> None:
    assert extract_json('see [1] and [{"a": 1}]') == [1]
    assert extract_json('as in [1]: {"a": 1}') == {"a": 1}


@pytest.mark.parametrize(("text", "value"), [("3", 3), ('"x"', "x"), ("null", None), ("[]", [])])
def test_a_text_that_is_json_of_any_kind_is_taken_as_it_is(text: str, value: Any) -> None:
    assert extract_json(text) == value


def test_a_part_of_a_broken_object_is_never_taken_for_the_answer() -> None:
    with pytest.raises(ExtractError, match="line 1 column"):
        extract_json('Here: {"goal": "x", "steps": [{"step_id": "a"}],}')
    with pytest.raises(ExtractError):
        extract_json('{"goal": "x", "steps": [{"step_id": "a"}')


def test_an_object_in_unfinished_reasoning_is_not_the_answer() -> None:
    with pytest.raises(ExtractError, match="no JSON object"):
        extract_json('<think> {"draft": 1}')
    with pytest.raises(ExtractError, match="no JSON object"):
        extract_json('<think> {"draft": 1} </think> I cannot.')
    with pytest.raises(ExtractError, match="no JSON object"):
        extract_json('the opening tag is missing {"draft": 1} </think> I cannot.')


def test_an_error_tells_its_position_in_the_whole_text() -> None:
    text = 'Here\nit is: {"a": 1, "b": }'
    with pytest.raises(ExtractError) as caught:
        extract_json(text)
    assert caught.value.position == text.index("}")
    assert "line 2 column 22" in caught.value.message


def test_an_answer_that_begins_as_json_is_told_what_is_wrong_there() -> None:
    with pytest.raises(ExtractError, match="property name enclosed in double quotes: line 1 column 2"):
        extract_json("{'a': 1}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": {"x": 1, "x": 2}}', "'x' appears twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "1e999 is too large"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"\\udc00": 1}', "surrogate"),
        ('{"a": ' + "9" * 5000 + "}", "4300"),
        ('{"a": ' * 100_000, "nested more than"),
        ("[" * 100_000 + "]" * 100_000, "nested more than"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), "nested more than"),
        ("", "Expecting value|no JSON"),
        ("I cannot do that.", "no JSON object"),
    ],
)
def test_unusable_json_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ExtractError, match=reason):
        extract_json(text)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert extract_json('{"a": "\\ud83d\\ude42"}') == {"a": "🙂"}


def test_deep_but_reasonable_nesting_is_taken() -> None:
    assert extract_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["```x\n" * 50_000, '{"' * 50_000, "{ " * 50_000, "</think>" * 30_000, '{"a":"\\' * 20_000]
)
def test_a_hostile_text_is_refused_quickly(text: str) -> None:
    with pytest.raises(ExtractError):
        extract_json(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=5)
PROSE = st.text(st.characters(exclude_characters='{}[]"`<', exclude_categories=["Cs"]))


@given(OBJECTS, PROSE, PROSE, st.booleans(), st.sampled_from([None, 2]))
def test_an_object_survives_noise_around_it(
    value: dict[str, Any], before: str, after: str, escaped: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    assert extract_json(f"{before}{text}{after}") == value
    assert extract_json(f"<think>{before}</think>{after}{text}") == value
    assert extract_json(f"{before}\n```json\n{text}\n```\n{after}") == value


@given(st.text())
def test_any_text_gives_json_or_an_extract_error(text: str) -> None:
    with suppress(ExtractError):
        json.dumps(extract_json(text), allow_nan=False).encode()
