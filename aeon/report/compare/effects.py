"""What each parameter changes: the runs grouped by its values, the largest effect first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from aeon.report.compare.rows import SCORES, Comparison, Run, show

MOST_GROUPS = 12


@dataclass(frozen=True, slots=True)
class Effect:
    """Runs grouped by the value of a parameter, in order; `keys` are the parameters that change together."""

    keys: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Run, ...]], ...]

    def means(self, figure: str) -> list[float]:
        """The mean of a figure, or the share that converged, in each group where it is known."""
        known = [known_values(figure, runs) for _, runs in self.groups]
        return [fmean(values) for values in known if values]

    @property
    def sizes(self) -> tuple[float, float]:
        """How far apart its groups are, for an order: of scores and of the share that converged at most, then of
        tokens, as a share of their largest mean. Groups of one run each show nothing but the runs."""
        if all(len(runs) == 1 for _, runs in self.groups):
            return 0.0, 0.0
        judged = max(_spread(self.means(name)) for name in (*SCORES, "converged"))
        tokens = self.means("tokens")
        return judged, _spread(tokens) / (max(tokens, default=0) or 1)


def _spread(values: Sequence[float]) -> float:
    return max(values, default=0.0) - min(values, default=0.0)


def known_values(figure: str, runs: Iterable[Run]) -> list[float]:
    """A figure of the runs that came to their end, where it is known; `converged` as 1 or 0, also of those that
    failed."""
    if figure == "converged":
        return [float(run.converged) for run in runs if run.converged is not None]
    found = (run.figures[figure] for run in runs if not run.error)
    return [value for value in found if value is not None]


def effects(comparison: Comparison) -> list[Effect]:
    """What to draw: for each parameter the runs by its value, the largest effect first. Parameters that change together
    are one effect, for their effects cannot be told apart; one with very many values has none, unless they are
    numbers."""
    runs = [run for run in comparison.runs if run.figures["seconds"] is not None]
    together: dict[tuple[int, ...], list[str]] = {}
    for key in comparison.parameters:
        texts = [show(run.parameters.get(key)) for run in runs]
        together.setdefault(tuple(texts.index(text) for text in texts), []).append(key)
    found = [_effect(keys, runs) for places, keys in together.items() if len(set(places)) > 1]
    drawn = [effect for effect in found if len(effect.groups) <= MOST_GROUPS]
    return sorted(drawn, key=lambda effect: effect.sizes, reverse=True)


def _effect(keys: Sequence[str], runs: Sequence[Run]) -> Effect:
    def value_of(run: Run) -> str:
        return " · ".join(show(run.parameters.get(key)) or "not set" for key in keys)

    numbers = {value_of(run): as_number(value_of(run)) for run in runs}
    numeric = None not in numbers.values()
    order = {text: numbers[text] if numeric else place for place, text in enumerate(numbers)}
    ranked = sorted(runs, key=lambda run: order[value_of(run)] or 0)
    groups = [(text, tuple(group)) for text, group in groupby(ranked, value_of)]
    if numeric and len(groups) > MOST_GROUPS:
        size = -(-len(groups) // MOST_GROUPS)
        parts = [groups[start : start + size] for start in range(0, len(groups), size)]
        groups = [
            (
                " to ".join(dict.fromkeys((part[0][0], part[-1][0]))),
                tuple(run for _, of in part for run in of),
            )
            for part in parts
        ]
    return Effect(tuple(keys), tuple(groups))


def as_number(text: str) -> float | None:
    """The number that a text says, or None."""
    with suppress(ValueError):
        return float(text)
    return None
