"""When two answers are the same."""

import pytest

from aeon.schema.equality import canonical, is_same


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("Paris", " Paris\n"),
        ("15", "15.0"),
        ("15", "+15"),
        ("1500", "1.5e3"),
        (".5", "0.50"),
        ("-0", "0"),
        ('{"a": 1, "b": [true, null]}', '{"b":[true,null],"a":1.0}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("[1, 2]", "```\n[1,2]\n```"),
        ('```json\r\n{"a": 1}\r\n```', '{"a": 1}'),
        ('```json {"a": 1} ```', '{"a": 1}'),
        ('```{"a": 1}```', '{"a": 1}'),
        ("NaN", "NaN"),
        ("", "  "),
        ("{not JSON}", "{not JSON}"),
    ],
)
def test_these_are_the_same(answer: str, other: str) -> None:
    assert is_same(answer, other)
    assert hash(canonical(answer)) == hash(canonical(other))


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("Paris", "paris"),
        ("15", '"15"'),
        ("15", "15 cups"),
        ("15", "15 apples"),
        ("0.1", "0.10000000000000000001"),
        ("1", "true"),
        ("[1]", "[true]"),
        ("[1, 2]", "[2, 1]"),
        ('{"a": 1}', '{"a": "1"}'),
        ("1,5", "15"),
        ("nan", "NaN"),
        ("x", "```\nx\n```"),
    ],
)
def test_these_are_not_the_same(answer: str, other: str) -> None:
    assert not is_same(answer, other)


def test_json_that_is_nested_without_end_is_text() -> None:
    nested = "[" * 200_000
    assert canonical(nested) == nested


def test_a_number_with_a_vast_exponent_is_compared_at_once() -> None:
    assert not is_same("1e999999", "1e999998")


@pytest.mark.parametrize(
    "answer",
    [
        '{"x": 1e99999999999999999999}',
        "[1e99999999999999999999]",
        "[1e-99999999999999999999]",
        "1e99999999999999999999",
    ],
)
def test_an_exponent_beyond_all_numbers_makes_an_answer_a_text(answer: str) -> None:
    assert canonical(answer) == answer
    assert not is_same(answer, '{"x": 1}')


def test_a_code_block_without_an_end_is_compared_at_once() -> None:
    unended = "```" + "a" * 200_000
    assert canonical(unended) == unended
