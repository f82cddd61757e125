"""The text of a field as it comes, piece by piece."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from aeon.service.http.partial import PartialField

OTHER_VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=8,
)


def read_in_pieces(text: str, size: int = 1, name: str = "answer") -> str:
    """The text of a field, from pieces of a size."""
    field = PartialField(name)
    for start in range(0, len(text), size):
        field.read(text[start : start + size])
    return "".join(field.pieces)


@given(
    answer=some.text().filter(lambda text: "[[" not in text),
    before=some.dictionaries(some.text().filter(lambda name: name != "answer"), OTHER_VALUES),
    after=OTHER_VALUES,
    size=some.integers(1, 9),
    plain=some.booleans(),
)
def test_the_text_is_that_of_the_whole(
    answer: str, before: dict[str, object], after: object, size: int, plain: bool
):
    document = {**before, "answer": answer, "later": after}
    text = json.dumps(document, ensure_ascii=not plain)
    assert read_in_pieces(text, size) == answer


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ""),
        ("no JSON", ""),
        ('```json\n{"answer": "tea"}\n```', "tea"),
        ('Here it "is": {"answer" : "tea", "answer": "coffee"}', "tea"),
        ('{"working": {"answer": "no"}, "answer": "tea"}', "tea"),
        ('{"working": ["answer", {"answer": "no"}], "answer": "tea"}', "tea"),
        ('{"other": "answer", "answer": "tea"}', "tea"),
        ('{"answer": {"answer": "no"}}', ""),
        ('{"answer": 3, "other": "no"}', ""),
        ('{"answer": "co', "co"),
        ('{"answer": "co\\', "co"),
        ('{"answer": "co\\u00e', "co"),
        ('{"answer": "co\\ud83d', "co"),
        ('{"answer": "\\ud83d\\ude00!"}', "\U0001f600!"),
        ('{"answer": "a\nb\\nc"}', "a\nb\nc"),
        ('{"answer": "broken \\uzzzz here"}', "broken "),
        ('{"answer": "see [[steps.one]] there"}', "see "),
        ('{"answer": "a [list] and ["}', "a [list] and ["),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_what_models_write(text: str, read: str, size: int):
    assert read_in_pieces(text, size) == read


def test_nothing_is_read_twice():
    field = PartialField("answer")
    text = json.dumps({"working": "é\n" * 3000, "answer": "[é]\n" * 3000})
    for character in text:
        field.read(character)
        assert len(field.unread) < 12
    assert "".join(field.pieces) == "[é]\n" * 3000
