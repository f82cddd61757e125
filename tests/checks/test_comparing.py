"""Each type that compares: when it passes, and what it says when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.checks.comparing import count_edits, make_condition
from aeon.domain.checks import ComparingCheck
from tests.checks.builders import check

GOOD = [
    ("equals", "Berlin", " Berlin\n"),
    ("equals", 42, "42.0"),
    ("equals", "42", "42.00"),
    ("equals", {"a": [1, 2.0]}, '{"a": [1.0, 2]}'),
    ("equals", True, "true"),
    ("contains", "erl", "Berlin"),
    ("icontains", "BERLIN", "in berlin"),
    ("contains-all", ["a", "b"], "b and a"),
    ("contains-all", "a, b", "b and a"),
    ("contains-any", ["x", "a"], "a"),
    ("starts-with", "Dear", "Dear all"),
    ("regex", r"(?i)^the \d+ cats$", "The 3 cats"),
    ("is-json", None, "[1]"),
    ("is-json", {"type": "array", "items": {"type": "integer"}}, "[1]"),
    ("word-count", 2, "two  words\n"),
    ("word-count", {"min": 1, "max": 3}, "two words"),
    ("levenshtein", "kitten", "sitting"),
    ("similar-number", 1234.5, "In 2026 the total is 1,234.50 EUR"),
    ("similar-number", -3, "-3"),
]
BAD = [
    ("equals", "Berlin", "Berlin!", 'The answer must equal "Berlin".'),
    ("equals", 1, "true", "The answer must equal 1."),
    ("contains", "Berlin", "Paris", 'The answer must contain "Berlin".'),
    ("contains-all", ["a", "b"], "a", 'The answer must contain all of "a", "b". It lacks "b".'),
    ("contains-any", ["x", "y"], "a", 'The answer must contain one of "x", "y".'),
    ("starts-with", "Dear", "Oh dear", 'The answer must start with "Dear".'),
    ("regex", r"^\d+$", "12 cats", r"The answer must match the regular expression ^\d+$."),
    ("is-json", None, "{", "The answer must be JSON."),
    ("is-json", None, '{"a": NaN}', "The answer must be JSON."),
    (
        "is-json",
        {"type": "array"},
        "[-Infinity]",
        "The answer must be JSON of the schema. It is no JSON.",
    ),
    ("word-count", {"max": 1}, "two words", "The answer must have at most 1 words. It has 2."),
    ("word-count", 3, "two words", "The answer must have exactly 3 words. It has 2."),
    ("levenshtein", "kitten", "smitten mittens", 'The answer must be within 5 edits of "kitten".'),
    ("similar-number", 4, "7", "The answer must end with the number 4. It ends with 7."),
    ("similar-number", 4, "x", "The answer must end with the number 4. There is no number in it."),
]


@pytest.mark.parametrize(("kind", "value", "answer"), GOOD)
def test_it_passes_and_its_negation_does_not(kind: str, value: Any, answer: str) -> None:
    assert check(answer, type=kind, value=value).passed
    negated = check(answer, type=f"not-{kind}", value=value)
    assert not negated.passed
    assert negated.feedback.startswith("The answer must not ")


@pytest.mark.parametrize(("kind", "value", "answer", "feedback"), BAD)
def test_it_fails_with_its_reason_and_its_negation_passes(
    kind: str, value: Any, answer: str, feedback: str
) -> None:
    failed = check(answer, type=kind, value=value)
    assert (failed.passed, failed.feedback) == (False, feedback)
    negated = check(answer, type=f"not-{kind}", value=value)
    assert (negated.passed, negated.feedback) == (True, "")


def test_the_less_of_a_list_is_contained_the_better_its_negation_scores() -> None:
    texts = ["alpha", "beta", "gamma", "delta"]
    answers = ["alpha beta gamma delta", "alpha beta", "nothing"]
    found = [check(answer, type="not-contains-all", value=texts) for answer in answers]
    assert [one.score for one in found] == [0, 0.5, 1]
    assert [one.passed for one in found] == [False, True, True]


def test_json_of_a_schema_says_what_is_wrong_with_it() -> None:
    schema = {"type": "object", "required": ["a"]}
    assert check("{}", type="is-json", value=schema).feedback.endswith("'a' is a required property")


def test_json_that_is_nested_for_ever_is_not_measured_or_not_equal() -> None:
    deep = "[" * 100_000
    for kind in ("is-json", "equals"):
        assert not check(deep + "]" * 100_000, type=kind, value={"type": "array"}).passed


def test_thresholds_decide_how_close_is_close() -> None:
    assert not check("sitting", type="levenshtein", value="kitten", threshold=2).passed
    assert check("sitting", type="levenshtein", value="kitten", threshold=3).passed
    assert check("about 4.2", type="similar-number", value=4, threshold=0.2).passed
    assert not check("about 4.3", type="similar-number", value=4, threshold=0.2).passed


@pytest.mark.parametrize("number", ["1e9999999", "1e99999999999999999999"])
def test_a_number_beyond_all_bounds_is_a_wrong_one(number: str) -> None:
    similar = check(f"It is {number}", type="similar-number", value=4)
    assert (similar.passed, similar.measured) == (False, True)
    assert similar.feedback == f"The answer must end with the number 4. It ends with {number}."
    equal = check(f'{{"x": {number}}}', type="equals", value={"x": 4})
    assert (equal.passed, equal.measured) == (False, True)


def test_a_share_is_a_score() -> None:
    assert check("a", type="contains-all", value=["a", "b"]).score == 0.5


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"type": "equals"}, "needs a value"),
        ({"type": "contains", "value": ""}, "must be a text"),
        ({"type": "contains-all", "value": []}, "must be a list of texts"),
        ({"type": "regex", "value": "("}, "is no regular expression"),
        ({"type": "is-json", "value": {"type": "nonsense"}}, "nonsense"),
        ({"type": "word-count", "value": {"least": 3}}, "must be a number"),
        ({"type": "word-count", "value": True}, "must be a number"),
        ({"type": "similar-number", "value": "4"}, "must be a number"),
        ({"type": "contains", "value": "x", "threshold": 1}, "takes no threshold"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make_condition(ComparingCheck.model_validate(settings))


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edits_are_counted_as_far_as_the_limit(one: str, other: str, edits: int) -> None:
    assert count_edits(one, other, 5) == edits
    assert count_edits(other, one, 5) == edits
    assert count_edits(one, other, 1) == min(edits, 2)


def test_a_pattern_that_multiplies_and_edits_of_long_texts_end() -> None:
    assert not check("a" * 5_000 + "b", type="regex", value="^(a+)+$").passed
    outcome = check("a" * 300_000, type="levenshtein", value="b" * 300_000, threshold=1_000)
    assert not outcome.measured
    assert outcome.feedback == "the answer is too long to count so many edits"


@pytest.mark.parametrize(
    ("kind", "value", "condition"),
    [
        ("contains", "tea", 'must contain "tea"'),
        ("not-contains", "tea", 'must not contain "tea"'),
        ("word-count", {"max": 80}, "must have at most 80 words"),
    ],
)
def test_an_outcome_has_its_condition_in_words(kind: str, value: Any, condition: str):
    assert check("nothing", type=kind, value=value).condition == condition


def test_a_long_condition_is_cut():
    condition = check("nothing", type="contains-all", value=["tea"] * 1_000).condition
    assert condition.startswith('must contain all of "tea", "tea"')
    assert len(condition) < 400
