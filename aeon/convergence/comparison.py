"""Asks the grader which of two answers is better, without saying how either was made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aeon.domain.assessment import Preferred
from aeon.domain.checks import CheckOutcome
from aeon.domain.values import JsonMapping
from aeon.supervisor.structured import StructuredCaller

CYCLES_OF_A_COMPARISON = 2
"""LLM cycles of a comparison: both orders."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer to compare, with the outcomes of its checks for prompts."""

    text: str
    checks: Sequence[JsonMapping] = ()

    @classmethod
    def of(cls, text: str, checks: Sequence[CheckOutcome]) -> Candidate:
        """Return an answer with the checks that ran on it."""
        return cls(text, [check.view for check in checks])


def parse_preferred(answer: JsonMapping) -> Preferred:
    """Parse the grader's answer to a comparison."""
    return Preferred(better=answer["better"], explanation=answer["explanation"])


class Comparer:
    """Asks the grader which of two answers is better; thread-safe."""

    def __init__(self, structured: StructuredCaller) -> None:
        self._structured = structured

    def prefer(self, task: str, first: Candidate, second: Candidate) -> Preferred:
        """Return the better of two answers, shown in this order; one call. Raises LLMError, and
        ValidationError for an answer that cannot be repaired."""
        return self._structured.call(
            "comparison",
            {"task": task, "first": first, "second": second},
            parse_preferred,
            role="grader",
        )

    def questions(
        self, task: str, earlier: Candidate, later: Candidate
    ) -> tuple[Callable[[], Preferred], Callable[[], Preferred]]:
        """Return the two calls of a comparison, in both orders, for `settle_comparison`; each is
        one LLM cycle."""
        return (
            lambda: self.prefer(task, earlier, later),
            lambda: self.prefer(task, later, earlier),
        )
