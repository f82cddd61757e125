"""`equal=tokens`: cheaper arms get more samples, until all arms have spent as much as the
dearest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aeon.batch.forecast import Forecast
from aeon.domain.errors import ConfigError
from aeon.domain.request import add_costs
from aeon.domain.values import JsonObject
from aeon.evaluation.models import ArmSummary, Measurement
from aeon.evaluation.samples import MOST_SAMPLES, ArmSamples
from aeon.observability.artefacts import replace_file, write_json
from aeon.report.words import count_noun

WITHIN = 0.02
"""The relative difference up to which the tokens of arms count as equal."""
MOST_ROUNDS = 6
_FORMAT = "aeon.eval.samples/1"


@dataclass
class Equalizer:
    """Finds the number of samples with which all arms spend the same. It stores the numbers in a
    file, to resume a stopped measurement. Raises ConfigError for those of another number of
    answers, unless it `begins_anew`."""

    path: Path
    samples: dict[str, ArmSamples]
    begins_anew: bool = False

    def __post_init__(self) -> None:
        self._before: dict[str, tuple[int, int]] = {}
        for name, total in self._read().items():
            if name in self.samples:
                self.samples[name] = self.samples[name].with_total(total)

    @property
    def _answers(self) -> int:
        return next(iter(self.samples.values())).answers

    def _read(self) -> Mapping[str, int]:
        """Read the stored total of samples of each arm."""
        try:
            found = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.path}: cannot be read: {error}") from None
        is_ours = isinstance(found, dict) and found.get("format") == _FORMAT
        if not is_ours or not self._is_of_these_answers(found):
            return {}
        totals: JsonObject = found.get("samples") or {}
        return {name: total for name, total in totals.items() if isinstance(total, int)}

    def _is_of_these_answers(self, found: JsonObject) -> bool:
        before: int = found.get("answers", 0)
        if before == self._answers or self.begins_anew:
            return before == self._answers
        again = ", or have answers run again with batch.changed=again"
        raise ConfigError(
            f"{self.path}: its samples are for {count_noun(before, 'answer')}, and now there are "
            f"{self._answers:,}",
            hint="With equal=tokens the samples of every answer depend on how many rows there "
            "are: none can be added or left out. Give the rows and repeats as they were, or name "
            f"another folder with out={again if self._answers > before else ''}.",
        )

    def save(self) -> None:
        """Write the numbers of samples. Raises ArtefactError."""
        totals = {name: one.total for name, one in self.samples.items()}
        found = {"format": _FORMAT, "answers": self._answers, "samples": totals}
        replace_file(self.path, write_json(found))

    def plan(self, measurement: Measurement) -> bool:
        """Set the samples according to the arms' usage. Returns whether work is left: some arm is
        not within reach of the dearest, and another number of samples may bring it there."""
        if _list_unreported(measurement):
            return False
        most = max(arm.tokens for arm in measurement.arms)
        changed = False
        for arm in measurement.arms:
            if arm.tokens and abs(most - arm.tokens) > WITHIN * most:
                changed = self._plan_arm(arm.name, arm.tokens, most) or changed
        return changed

    def _plan_arm(self, name: str, spent: int, most: int) -> bool:
        now = self.samples[name]
        tokens = spent
        total = now.total
        spent_before, total_before = self._before.get(name, (0, 0))
        # Between two rounds only samples made the difference; the whole also holds what does not
        # grow with them.
        if total_before != total and (spent_before < spent) == (total_before < total):
            tokens -= spent_before
            total -= total_before
        self._before[name] = spent, now.total
        wanted = now.with_total(now.total + round((most - spent) * total / tokens))
        self.samples[name] = wanted
        return wanted.total != now.total


def forecast_equality(
    measurement: Measurement, samples: Mapping[str, ArmSamples], rows: int
) -> Forecast:
    """Forecast the cost of the rows that get other samples: about as much as their arms have spent
    less than the dearest."""
    most = max(arm.tokens for arm in measurement.arms)
    cost = add_costs(_forecast_rest(arm, most) for arm in measurement.arms)
    words = f"equal=tokens: {'; '.join(_list_samples(samples))}."
    return Forecast(rows, cost, words, is_even=False, noun="answer")


def _forecast_rest(arm: ArmSummary, most: int) -> float | None:
    if arm.cost is None:
        return None
    return arm.cost * (most - arm.tokens) / arm.tokens if arm.tokens else 0.0


def raise_to_dearest(total: Forecast, arms: Mapping[str, Forecast]) -> Forecast:
    """Return the forecast for all arms if each spends as much as the dearest."""
    if total.least_cost is None:
        return total
    dearest = max((arm.least_cost or 0.0 for arm in arms.values()), default=0.0)
    return total._replace(least_cost=len(arms) * dearest)


def _list_samples(samples: Mapping[str, ArmSamples]) -> list[str]:
    return [
        f"{name} takes {_count_each(one)} samples for an answer"
        for name, one in samples.items()
        if one.total != one.configured * one.answers
    ]


def _count_each(samples: ArmSamples) -> str:
    # With select=check an answer takes no more samples once one passes.
    most = "up to " if samples.execution.select == "check" else ""
    return f"{most}{samples.total / samples.answers:.3g}"


def _list_unreported(measurement: Measurement) -> list[str]:
    """Return the arms whose tokens are unknown."""
    return [arm.name for arm in measurement.arms if arm.unreported]


def describe_equality(measurement: Measurement, samples: Mapping[str, ArmSamples]) -> str:
    """Describe whether the arms spent the same, and the samples they got for it."""
    if unreported := _list_unreported(measurement):
        return (
            "equal=tokens: nothing was made equal, since the tokens of "
            f"{', '.join(unreported)} are unknown: "
            f"{'its' if len(unreported) == 1 else 'their'} server did not report the usage of all "
            "calls."
        )
    spent = [arm.tokens for arm in measurement.arms]
    apart = (max(spent) - min(spent)) / max(spent) if max(spent) else 0.0
    if apart <= WITHIN:
        state = f"all arms spent the same, within {100 * apart:.1f} %"
    else:
        state = (
            f"the arms spent {100 * apart:.1f} % apart, more than {100 * WITHIN:.0f} %: whole "
            f"samples, at most {MOST_SAMPLES} for an answer, came no closer"
        )
    return f"equal=tokens: {'; '.join([state, *_list_samples(samples)])}."
