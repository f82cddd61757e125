"""Selects runs of a folder: by a condition on their figures, a time, words of their task."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from simpleeval import InvalidExpression, NameNotDefined, SimpleEval

from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import ConfigError
from aeon.domain.history import TerminationReason
from aeon.report.runs import Listed

NAMES = (*SCORE_CODES, "passes", "tokens", "cost", "bytes", "ended", "task", "synthetic")
"""What a condition may speak of."""
_OWN_ENDS = ("running", "unfinished", "cancelled", "unreadable")
_ENDS = {end: end for end in (*get_args(TerminationReason), *_OWN_ENDS)}
"""The ends that are one word, which need no quotes."""
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_AGO = re.compile(r"(\d{1,6})([mhd])")
_HINT = f"A condition compares {', '.join(NAMES)}: where='completeness<0.9 and ended==converged'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A selection of runs. `where` is a condition as Python writes it, `since` a date, a time, or
    how long ago (`7d`, `12h`, `30m`), `task` words that its task contains in their order, in any
    case; None: all of them."""

    where: str | None = None
    since: str | None = None
    task: str | None = None

    def select(self, runs: Iterable[Listed], now: datetime) -> list[Listed]:
        """Return the runs that match, in their order. Raises ConfigError for a condition or a time
        that cannot be read."""
        fits = [
            test
            for test in (self._by_condition(), self._by_time(now), self._by_task())
            if test is not None
        ]
        return [run for run in runs if all(test(run) for test in fits)]

    def _by_condition(self) -> Callable[[Listed], bool] | None:
        if self.where is None:
            return None
        where = self.where
        evaluator = SimpleEval(functions={})
        try:
            parsed = evaluator.parse(where)
        except (SyntaxError, InvalidExpression):
            raise _refuse(where, "it cannot be read") from None
        if isinstance(parsed, ast.Assign | ast.AugAssign):
            raise _refuse(where, "`=` does not compare, `==` does")

        def holds(run: Listed) -> bool:
            evaluator.names = _figures(run)
            try:
                found = evaluator.eval(where, previously_parsed=parsed)
            except NameNotDefined as error:
                raise _refuse(where, f"there is no {error.name!r}") from None
            except (InvalidExpression, TypeError, ValueError, ArithmeticError) as error:
                raise _refuse(where, str(error)) from None
            if not isinstance(found, bool):
                raise _refuse(where, f"it is {found!r}, neither true nor false")
            return found

        return holds

    def _by_time(self, now: datetime) -> Callable[[Listed], bool] | None:
        if self.since is None:
            return None
        start = _read_time(self.since, now)
        return lambda run: run.started >= start

    def _by_task(self) -> Callable[[Listed], bool] | None:
        if self.task is None:
            return None
        words = " ".join(self.task.split()).casefold()
        return lambda run: words in " ".join(run.task.split()).casefold()


def _figures(run: Listed) -> dict[str, object]:
    """Return the values that a condition may name. An unknown figure is NaN, which fits no
    comparison."""
    return {
        **_ENDS,
        **dict.fromkeys(SCORE_CODES, math.nan),
        **run.scores,
        "passes": run.passes,
        "tokens": run.tokens,
        "cost": math.nan if run.cost is None else run.cost,
        "bytes": run.bytes,
        "ended": run.ended,
        "task": run.task,
        "synthetic": run.synthetic,
    }


def _read_time(text: str, now: datetime) -> datetime:
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OSError, OverflowError):
        hint = "A date (2026-11-01), a time (2026-11-01T08:30), or how long ago: 30m, 12h, 7d."
        raise ConfigError(f"since={text}: it is no time", hint=hint) from None


def _refuse(where: str, problem: str) -> ConfigError:
    return ConfigError(f"where={where}: {problem}", hint=_HINT)
