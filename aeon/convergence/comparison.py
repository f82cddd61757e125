"""Which of two answers is better: asked of the grader, who learns nothing of how either was
made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aeon.domain.assessment import Preferred
from aeon.domain.values import JsonMapping
from aeon.supervisor.structured import StructuredCaller


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer to compare, with what checks found about it, as prompts show it."""

    text: str
    checks: Sequence[JsonMapping] = ()


def parse_preferred(answer: JsonMapping) -> Preferred:
    """The grader's answer to a comparison."""
    return Preferred(better=answer["better"], explanation=answer["explanation"])


class Comparer:
    """Asks the grader which of two answers is better. May be used from many threads."""

    def __init__(self, structured: StructuredCaller) -> None:
        self._structured = structured

    def prefer(self, task: str, first: Candidate, second: Candidate) -> Preferred:
        """The better of two answers, shown in this order; one call. Raises LLMError,
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
        """The two calls of a comparison in both orders, as `settle_comparison` takes their answers;
        each is one LLM cycle."""
        return (
            lambda: self.prefer(task, earlier, later),
            lambda: self.prefer(task, later, earlier),
        )
