from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.domain.errors import StoreFailed
from aeon.store.cassette_yaml import dump, load

ODD = " \t\n\r\x00\x1b\x7f\x85\xa0\u2028\u2029\ufeff\ufffe\U0001f600aB-:#|>&*!%@`'\"\\{}[],?~=01.e"


texts = st.text(st.sampled_from(ODD)) | st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


def written(value: dict[str, Any]) -> str:
    """What stands in the file, once it has been there."""
    return dump(value).encode().decode()


@given(texts, texts)
def test_any_text_comes_back_byte_for_byte_wherever_it_stands(one: str, other: str) -> None:
    value = {
        "a": one,
        "list": [one, {"x": other, "y": one}, [other, [one]], {"z": [other]}],
        "b": other,
    }
    assert load(written(value)) == value


@pytest.mark.slow
@given(st.dictionaries(texts, values, max_size=4))
def test_any_json_value_comes_back_as_it_was(value: dict[str, Any]) -> None:
    value = {"v": value, "end": [value]}
    assert json.dumps(load(written(value))) == json.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        "no",
        "null",
        "0x1f",
        "1e3",
        "2026-11-21",
        "~",
        "=",
        "<<",
        "12:30",
        ".5",
        "on",
        "-",
        "? x",
        "- a",
        "a: b",
    ],
)
def test_a_text_that_looks_like_something_else_stays_a_text(value: str) -> None:
    assert load(written({value: value, "in": [value, {"a": value}]})) == {
        value: value,
        "in": [value, {"a": value}],
    }


@pytest.mark.parametrize("number", [1e16, 1e-7, -1.5e300, 0.1, 1.0, -0.0, 10**40, -3])
def test_a_number_keeps_its_value_and_its_kind(number: float) -> None:
    read = load(written({"n": number}))["n"]
    assert (read, type(read), repr(read)) == (number, type(number), repr(number))


def test_a_text_of_several_lines_is_a_block_as_it_was() -> None:
    assert (
        written({"a": "# Title\n\n  * one\n  * two\n"})
        == "a: |\n  # Title\n\n    * one\n    * two\n"
    )


def test_a_key_of_any_length_comes_back() -> None:
    value = {"tool": {"k" * 3000: 1}, "of": [{"k" * 3000: [1]}]}
    assert load(written(value)) == value


def test_what_is_shared_stands_once() -> None:
    text = "said in every request\n" * 3
    whole = dump({"shared": [text], "a": text, "b": [text, {"c": text}]}, {id(text)})
    assert whole.count("said") == 3
    assert whole.count("*id001") == 3
    assert load(whole) == {"shared": [text], "a": text, "b": [text, {"c": text}]}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)


MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{', '.join([f'*{chr(97 + n)}'] * 10)}]}}\n"
    for n in range(12)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-11-21", "2026-11-21"),
        ("a: 1" + ":1" * 400_000, "1" + ":1" * 400_000),
        ("a: yes", "yes"),
        ("a: 0x1f", "0x1f"),
        ("a: 1_000", "1_000"),
        ("a: 010", "010"),
        ("a: 1e3", 1000.0),
        ("a: -12", -12),
        ("a: true", True),
        ("a: null", None),
        ("a:", None),
        ("a: {<<: {b: 1}}", {"<<": {"b": 1}}),
    ],
)
def test_a_plain_scalar_is_one_of_jsons_or_a_text(text: str, value: object) -> None:
    read = load(text)["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.timeout(10)
def test_merge_keys_multiply_nothing() -> None:
    with pytest.raises(StoreFailed, match="characters once its aliases are followed"):
        load(MERGES)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "characters once its aliases are followed"),
        ("a: &a [*a]", "not YAML"),
        ("a: [", "not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "not YAML"),
        ('a: !json "{"', "not YAML"),
        ("[" * 100_000, "not YAML"),
        ("a: !!binary aGk=", "not YAML"),
        ("a: !!timestamp 2026-11-21", "not YAML"),
        ("a: !!set {x}", "not YAML"),
        ('a: {!!merge "<<": {b: 1}}', "a key in it is no text"),
        (f"a: {'1' * 5000}", "not YAML"),
        ("a: {1: b}", "a key in it is no text"),
        ("a: {[1]: b}", "a key in it is no text"),
    ],
    ids=[
        *(
            "bomb",
            "loop",
            "broken",
            "object",
            "json",
            "deep",
            "bytes",
            "date",
            "set",
            "merge",
            "digits",
            "number as key",
        ),
        "list as key",
    ],
)
def test_a_file_that_would_do_harm_is_refused(text: str, why: str) -> None:
    with pytest.raises(StoreFailed, match=why):
        load(text)
