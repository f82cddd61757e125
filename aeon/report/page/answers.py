"""The answers of a run, pass by pass: each as its changes since the one before, and the pass that
was better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from operator import attrgetter

from markupsafe import Markup

from aeon.domain.result import RunResult
from aeon.execution.settings import UNJUDGED_MODES
from aeon.report.diff import LONGEST, Part, compare_texts, count_changed_words
from aeon.report.patterns import Patterns
from aeon.report.scores import NOTICEABLE, find_answering_pass
from aeon.report.words import round_down, shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """The answer of consecutive `passes` with one text; `number` is the first of them, and
    `is_whole` whether nothing was still to come in the last. `since` is the earlier pass that it is
    compared with, `same_as` the earlier pass with the same text; `added` and `removed` count
    words."""

    passes: tuple[int, ...]
    is_final: bool
    is_whole: bool = True
    text: Markup
    since: int | None = None
    same_as: int | None = None
    added: int = 0
    removed: int = 0

    @property
    def number(self) -> int:
        """The first of its passes."""
        return self.passes[0]


def find_final_pass(result: RunResult) -> int | None:
    """Return the number of the pass that the run's answer is from; None for an answer of no
    pass."""
    if not result.answer.strip():
        return None
    answering = find_answering_pass(result.history.passes, result)
    return answering.pass_number if answering else None


def view_answers(result: RunResult) -> list[AnswerView]:
    """Return each answer once for the consecutive passes that have it: the first whole, each later
    one compared with the one before. None in core mode, where a pass is a step."""
    if result.configuration["mode"]["kind"] in UNJUDGED_MODES:
        return []
    final = find_final_pass(result)
    views: list[AnswerView] = []
    seen: dict[str, int] = {}
    before: tuple[int, str] | None = None
    for text, passes in _group_answers(result):
        is_final = final in passes
        if text in seen:
            same = seen[text]
            views.append(AnswerView(passes=passes, is_final=is_final, text=Markup(), same_as=same))
        elif before is None:
            whole = Markup(escape(shorten(text, LONGEST)))
            is_whole = result.history.passes[passes[-1]].answer_complete
            view = AnswerView(passes=passes, is_final=is_final, is_whole=is_whole, text=whole)
            views.append(view)
        else:
            views.append(_compare(passes, text, before, is_final=is_final))
        seen.setdefault(text, passes[0])
        before = passes[-1], text
    return views


def _group_answers(result: RunResult) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return the answers in their order, each with its consecutive passes."""
    answered = (one for one in result.history.passes if one.answer.strip())
    for text, group in groupby(answered, key=attrgetter("answer")):
        yield text, tuple(one.pass_number for one in group)


def view_first_and_last(result: RunResult) -> tuple[Markup, Markup] | None:
    """Return the first whole answer with its removed words, and the final one with its added words;
    None where they are the same, or there is no whole answer."""
    bought = result.bought
    if bought is None or not bought.changed:
        return None
    first = result.history.passes[bought.first.pass_number].answer
    parts = list(compare_texts(first, result.answer))
    before = [part for part in parts if part[0] != "ins"]
    after = [part for part in parts if part[0] != "del"]
    return _mark(before), _mark(after)


def _compare(
    passes: tuple[int, ...], text: str, before: tuple[int, str], *, is_final: bool
) -> AnswerView:
    since, earlier = before
    parts = list(compare_texts(earlier, text))
    removed, added = count_changed_words(parts)
    return AnswerView(
        passes=passes,
        is_final=is_final,
        text=_mark(parts),
        since=since,
        added=added,
        removed=removed,
    )


def _mark(parts: Sequence[Part]) -> Markup:
    html = []
    for tag, text in parts:
        if tag == "gap":
            html.append(f'<span class="gap">{escape(text)}</span>\n')
        elif tag == "same":
            html.append(escape(text))
        elif text:
            html.append(f"<{tag}>{escape(text)}</{tag}>")
    return Markup("".join(html))


def find_better_pass(result: RunResult, patterns: Patterns) -> tuple[int, str] | None:
    """Return the best pass, and the scores in which it exceeds the pass of the answer; None where
    it exceeds none, is below in one, or has the same answer."""
    final = find_final_pass(result)
    best = patterns.best_pass
    judged = {one.pass_number: one.scores for one in patterns.assessed}
    if final is None or best is None or not {best, final} <= judged.keys():
        return None
    passes = result.history.passes
    if passes[best].answer == passes[final].answer:
        return None
    here = judged[final]
    there = judged[best]
    rises = _rises(here, there)
    figures = [
        f"{name} {round_down(there[name]):.2f} against {round_down(here[name]):.2f}"
        for name, rise in rises.items()
        if rise >= NOTICEABLE
    ]
    if not figures or min(rises.values()) <= -NOTICEABLE:
        return None
    return best, ", ".join(figures)


def _rises(here: Mapping[str, float], there: Mapping[str, float]) -> dict[str, float]:
    """Return by how much each common score is higher in `there`."""
    # Rounded, since 0.72 - 0.7 is less than 0.02.
    return {name: round(there[name] - here[name], 6) for name in there if name in here}
