"""The effect of each parameter: the runs grouped by its values, the largest effect first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean

from aeon.report.compare.rows import SCORES, ComparedRun, Comparison, show

MOST_GROUPS = 12
SHARES = {"checks": "the share of checks that passed", "converged": "the share that converged"}
"""What is judged of a run beside its scores, in words."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Runs grouped by the value of a parameter, in order; `keys` are the parameters that change
    together."""

    keys: tuple[str, ...]
    groups: tuple[tuple[str, tuple[ComparedRun, ...]], ...]

    def means(self, figure: str) -> list[float]:
        """Return the mean of a figure, or a share of `SHARES`, in each group where it is known."""
        known = [collect_values(figure, runs) for _, runs in self.groups]
        return [fmean(values) for values in known if values]

    @property
    def sizes(self) -> tuple[float, float]:
        """Return how far its groups differ, as a sort key: scores and the shares of `SHARES` at
        most, then tokens, as a share of their largest mean. Groups of one run each only show the
        runs themselves."""
        if all(len(runs) == 1 for _, runs in self.groups):
            return 0.0, 0.0
        judged = max(_spread(self.means(name)) for name in (*SHARES, *SCORES))
        tokens = self.means("tokens")
        return judged, _spread(tokens) / (max(tokens, default=0) or 1)


def _spread(values: Sequence[float]) -> float:
    return max(values, default=0.0) - min(values, default=0.0)


def collect_values(figure: str, runs: Iterable[ComparedRun]) -> list[float]:
    """Return a figure of the runs that came to their end, where it is known; `converged` as 1 or 0,
    also for failed runs; `checks` as the share that passed."""
    if figure == "converged":
        return [float(run.converged) for run in runs if run.converged is not None]
    ended = [run for run in runs if not run.error]
    if figure == "checks":
        return list(_collect_shares(ended))
    found = (run.figures[figure] for run in ended)
    return [value for value in found if value is not None]


def _collect_shares(runs: Iterable[ComparedRun]) -> Iterator[float]:
    """Yield the share of checks that passed, of runs that have any."""
    for run in runs:
        if run.checks:
            number, _, total = run.checks.partition(" of ")
            yield int(number) / int(total)


def effects(comparison: Comparison) -> list[Effect]:
    """Return the effects to draw: for each parameter the runs by its value, the largest effect
    first. Parameters that change together are one effect, since their effects cannot be separated;
    one with very many values has none, unless they are numbers."""
    runs = [run for run in comparison.runs if run.figures["seconds"] is not None]
    together: dict[tuple[int, ...], list[str]] = {}
    for key in comparison.parameters:
        texts = [show(run.parameters.get(key)) for run in runs]
        together.setdefault(tuple(texts.index(text) for text in texts), []).append(key)
    found = [_effect(keys, runs) for places, keys in together.items() if len(set(places)) > 1]
    drawn = [effect for effect in found if len(effect.groups) <= MOST_GROUPS]
    return sorted(drawn, key=lambda effect: effect.sizes, reverse=True)


def _effect(keys: Sequence[str], runs: Sequence[ComparedRun]) -> Effect:
    by_value: dict[str, list[ComparedRun]] = {}
    for run in runs:
        by_value.setdefault(_value_of(run, keys), []).append(run)
    numbers = {text: as_number(text) for text in by_value}
    values = list(by_value)
    known = {text: number for text, number in numbers.items() if number is not None}
    if len(known) == len(values):
        values.sort(key=known.__getitem__)
        by_value = _join_neighbours({text: by_value[text] for text in values})
    return Effect(tuple(keys), tuple((text, tuple(group)) for text, group in by_value.items()))


def _value_of(run: ComparedRun, keys: Sequence[str]) -> str:
    return " · ".join(show(run.parameters.get(key)) or "not set" for key in keys)


def _join_neighbours(by_value: Mapping[str, list[ComparedRun]]) -> dict[str, list[ComparedRun]]:
    """Return the runs by numbers in their order, joining neighbouring numbers if there are too many
    to draw."""
    size = -(-len(by_value) // MOST_GROUPS)
    values = list(by_value)
    joined = {}
    for start in range(0, len(values), size):
        part = values[start : start + size]
        title = " to ".join(dict.fromkeys((part[0], part[-1])))
        joined[title] = [run for value in part for run in by_value[value]]
    return joined


def as_number(text: str) -> float | None:
    """Return the number in a text, or None."""
    with suppress(ValueError):
        return float(text)
    return None
