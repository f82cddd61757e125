from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.files.text import MAX_DEPTH
from aeon.llm.extract import ExtractError, extract_json, read_bare, text_of

VALUE = {"goal": 'x {y} ``` \\ "q"', "steps": [{"a": 1}, {"b": None}]}
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
        f'<thought>Maybe {{"goal": 1}}?</thought>\n{TEXT}',
        f'[THINK]Maybe {{"goal": 1}}?[/THINK]{TEXT}',
        f'<|channel|>analysis<|message|>{{"goal": 1}}?<|end|><|channel|>final<|message|>{TEXT}<|return|>',
        f"<|channel|>final <|constrain|>json<|message|>{TEXT}",
        f"<|channel|>commentary to=functions.plan <|constrain|>json<|message|>{TEXT}<|call|>",
    ],
)
def test_json_is_found_wherever_models_put_it(text: str) -> None:
    assert extract_json(text) == VALUE


def test_of_several_objects_the_first_is_taken() -> None:
    assert extract_json('one {"a": 1} two {"a": 2}') == {"a": 1}


def test_a_fenced_answer_wins_over_an_example_in_prose() -> None:
    text = 'Unlike {"a": 0}:\n```json\n{"a": 1}\n```\nand {"a": 2}'
    assert extract_json(text) == {"a": 1}
    assert extract_json(text, lambda value: value != {"a": 1}) == {"a": 0}
    assert extract_json('Unlike {"a": 0}:\n```\n[1]\n```') == {"a": 0}


def is_answer(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"goal", "steps"}


@pytest.mark.parametrize(
    "text",
    [
        f'An example: {{"goal": "x"}}. The answer: {TEXT}',
        f'First a sketch: {{"steps": [...]}}. Now the answer: {TEXT}',
        f'```json\n{{"goal": "x"}}\n```\nor rather\n```json\n{TEXT}\n```',
        f'{{"name": "plan", "arguments": {TEXT}}}',
        f'<tool_call>\n{{"name": "plan", "arguments": {TEXT}}}\n</tool_call>',
        f'<tool_call>{{"name": "plan", "arguments": {json.dumps(TEXT)}}}</tool_call>',
        f'<|python_tag|>{{"name": "plan", "parameters": {TEXT}}}',
        f'[TOOL_CALLS][{{"name": "plan", "arguments": {TEXT}}}]',
        f'{{"type": "function", "function": {{"name": "plan", "arguments": {TEXT}}}}}',
        f'{{"tool_calls": [{{"id": "1", "type": "function", "function": {{"name": "p", "arguments": {TEXT}}}}}]}}',
        f'I call it: {{"type": "tool_use", "name": "plan", "input": {TEXT}}}',
    ],
)
def test_of_all_that_is_json_the_accepted_one_is_taken(text: str) -> None:
    assert extract_json(text, is_answer) == VALUE


def test_an_accepted_answer_that_looks_like_a_tool_call_is_left_as_it_is() -> None:
    value = {"name": "x", "arguments": {"a": 1}}
    assert extract_json(json.dumps(value), lambda _: True) == value
    assert extract_json(json.dumps(value)) == value


def test_where_nothing_is_accepted_it_is_as_if_nothing_were_asked() -> None:
    text = 'see [0], {"a": 1} and {"name": "p", "arguments": {"a": 2}}'
    assert extract_json(text, lambda _: False) == {"a": 1}
    with pytest.raises(ExtractError, match="no JSON object"):
        extract_json("I cannot.", lambda _: False)


def test_channels_without_a_final_one_hold_no_answer() -> None:
    with pytest.raises(ExtractError, match="no JSON object"):
        extract_json('<|channel|>analysis<|message|>{"draft": 1}')


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (TEXT, True),
        (f"<think>hm</think>\n{PRETTY}\n", True),
        (f"```json\n{TEXT}\n```", False),
        (f"Here: {TEXT}", False),
        (TEXT[:-1], False),
        ("", False),
    ],
)
def test_bare_is_json_and_nothing_else(text: str, bare: bool) -> None:
    with nullcontext() if bare else pytest.raises(ExtractError):
        assert read_bare(text) == VALUE


def called(arguments: Any, name: str = "plan") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": TEXT}, TEXT),
        ({"content": TEXT, "tool_calls": None}, TEXT),
        ({"content": None, "tool_calls": [called(TEXT)]}, TEXT),
        ({"content": "I call it now.", "tool_calls": [called(VALUE)]}, TEXT),
        ({"content": TEXT, "tool_calls": [called("{}")]}, TEXT),
        ({"content": None, "tool_calls": [called("{}", "search"), called(TEXT)]}, TEXT),
        ({"content": None, "function_call": {"name": "plan", "arguments": TEXT}}, TEXT),
        ({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": TEXT}]}, TEXT),
        ({"content": [TEXT[:5], {"type": "text", "text": TEXT[5:]}]}, TEXT),
        (
            {
                "content": [
                    {"type": "reasoning", "text": "Hm."},
                    7,
                    None,
                    {"type": "output_text", "text": TEXT},
                ]
            },
            TEXT,
        ),
        ({"content": VALUE}, TEXT),
        ({"content": None, "tool_calls": []}, ""),
        ({"content": None, "tool_calls": ["odd", {"function": None}]}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_a_message_is_its_content_or_its_tool_call(
    message: dict[str, Any], text: str
) -> None:
    assert text_of(message, "plan") == text


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
    with pytest.raises(
        ExtractError, match="property name enclosed in double quotes: line 1 column 2"
    ):
        extract_json("{'a': 1}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": {"x": 1, "x": 2}}', "'x' appears twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "1e999 is no JSON number, or is too large"),
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
    "text",
    [
        "```x\n" * 50_000,
        '{"' * 50_000,
        "{ " * 50_000,
        "</think>" * 30_000,
        '{"a":"\\' * 20_000,
        "<|channel|>final" * 20_000,
    ],
)
def test_a_hostile_text_is_refused_quickly(text: str) -> None:
    with pytest.raises(ExtractError):
        extract_json(text)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=5)
PROSE = st.text(st.characters(exclude_characters='{}[]"`<', exclude_categories=["Cs"]))


@pytest.mark.slow
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
