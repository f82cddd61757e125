"""Forecasts the calls, tokens and cost of a batch: from the table and the prices before its first
row, then from its first rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aeon.app.aeon import Aeon
from aeon.batch.dataset import Dataset, Row
from aeon.batch.summary import Summary
from aeon.config.settings import Settings
from aeon.convergence.margin import MOST_JUDGEMENTS
from aeon.domain.plan import PlanStep
from aeon.domain.request import Usage, add_costs
from aeon.execution.forecast import forecast
from aeon.execution.settings import UNJUDGED_MODES
from aeon.llm.prices import price_book
from aeon.report.words import count_noun, format_seconds

FIRST_ROWS = 8
# The calls of a row that needs one step and converges at once, each with its role.
_GRADED = (("step", "worker"), ("semantic_validation", "grader"), ("convergence", "grader"))
_LEAST = {
    "adaptive": (
        ("task_profile", "planner"),
        ("plan", "planner"),
        ("semantic_validation", "grader"),
        *_GRADED,
    ),
    "auto": (("task_profile", "planner"), _GRADED[0], _GRADED[2]),
    "core": (("plan", "planner"), _GRADED[0]),
    "single": (("direct", "worker"),),
}
_CHARACTERS_OF_A_TOKEN = 4


class Forecast(NamedTuple):
    """The forecast of a number of rows, in words; each is called `noun`. `least_cost` is the cost
    of their prompts, None without a price. `is_even`: the first rows to end predict the others. The
    `invalid` ones come on top of `rows`, and cost nothing."""

    rows: int
    least_cost: float | None
    words: str
    is_even: bool = True
    invalid: int = 0
    noun: str = "row"


def add_forecasts(parts: Mapping[str, Forecast]) -> Forecast:
    """Add several forecasts, each with its name in front of its words."""
    return Forecast(
        sum(part.rows for part in parts.values()),
        add_costs(part.least_cost for part in parts.values()),
        "\n".join(f"{name}: {part.words}" for name, part in parts.items()),
        is_even=False,
        invalid=sum(part.invalid for part in parts.values()),
    )


def forecast_rows(
    aeon: Aeon, dataset: Dataset, rows: int, invalid: int = 0, noun: str = "row"
) -> Forecast:
    """Forecast the least that `rows` rows of a dataset take, approximately, besides `invalid` ones;
    each is called `noun`."""
    settings = aeon.settings
    least, most = _count_calls(aeon)
    tokens, cost = _mean_prompts(aeon, dataset)
    money = "no price is known" if cost is None else f"cost at least {rows * cost:.4f}"
    capped = settings.limits.max_cost
    each = f"{least} to {most} calls" if least < most else count_noun(least, "call")
    if aeon.synthetic:
        money = "no model is called"
    words = (
        f"{count_noun(rows, noun)} to go: {each} each, in all at least "
        f"{count_noun(rows * least, 'call')} and {rows * tokens:,.0f} tokens of prompts; {money}"
        + ("." if capped is None else f", at most about {capped * rows:.2f}.")
    )
    if invalid:
        words += f" {count_noun(invalid, 'row')} cannot be run."
    least_cost = None if cost is None else rows * cost
    return Forecast(rows, least_cost, words, invalid=invalid, noun=noun)


def _count_calls(aeon: Aeon) -> tuple[int, int]:
    """Return the least and the most calls of a row."""
    settings = aeon.settings
    core = settings.mode.kind in UNJUDGED_MODES
    least = len(_LEAST[settings.mode.kind])
    if aeon.workflow is not None:
        least = forecast(aeon.workflow.plan(), _count_cycles, core=core)
    most = settings.ttl.base if core else settings.ttl.limit + 1  # the profile is free
    if settings.mode.kind == "single":
        most = min(most, _count_single(settings))
    most = max(least, most)
    cap = settings.limits.max_llm_calls or most
    return min(least, cap), min(most, cap)


def _count_single(settings: Settings) -> int:
    """Return the most calls of a row in mode=single: its samples, and its judgements."""
    judgements = MOST_JUDGEMENTS if settings.convergence.margin else 1
    return settings.execution.cycles_of_samples + settings.answer.judge * judgements


def _count_cycles(step: PlanStep) -> int:
    is_free = step.is_for_person or (step.tool and step.arguments)
    return 0 if is_free else 1


def _mean_prompts(aeon: Aeon, dataset: Dataset) -> tuple[float, float | None]:
    """Return the mean tokens of a row's prompts by the shortest way, and their cost, for all rows
    that can be run: interpolated by length between the shortest row and the longest."""
    ends = dict[int, Row]()
    total = 0
    count = 0
    for row in dataset.rows():
        if not row.problem:
            size = len(row.task) + sum(map(len, row.inputs.values()))
            ends[size] = row
            total += size
            count += 1
            # Only the ends: a dataset may have millions of rows.
            for between in sorted(ends)[1:-1]:
                del ends[between]
    shortest = min(ends)
    longest = max(ends)
    share = (total / count - shortest) / (longest - shortest) if longest > shortest else 0.0
    (tokens, cost), (more, dearer) = (_prompts_of(aeon, ends[size]) for size in (shortest, longest))
    mean = None if cost is None or dearer is None else cost + (dearer - cost) * share
    return tokens + (more - tokens) * share, mean


def _prompts_of(aeon: Aeon, row: Row) -> tuple[int, float | None]:
    settings = aeon.settings
    tokens = 0
    costs = list[float | None]()
    for call, role in _LEAST[settings.mode.kind][: settings.limits.max_llm_calls]:
        shown = aeon.render(call, row.task, row.inputs)
        size = (len(shown.system) + len(shown.user)) // _CHARACTERS_OF_A_TOKEN
        model = getattr(settings.roles, role).model or ""
        costs.append(price_book(settings.provider).cost(Usage(input_tokens=size), asked=model))
        tokens += size
    return tokens, add_costs(costs)


def project(summary: Summary, left: int, seconds: float, noun: str = "row") -> str:
    """Project the totals of all valid rows from those that ran; each of the `left` ones takes
    `seconds` more. Each row is called `noun`."""
    rows = summary.count - summary.ends["invalid"] + left
    share = rows / summary.ran
    tokens = (summary.total("input_tokens") + summary.total("output_tokens")) * share
    cost = "" if summary.cost is None else f", cost {summary.cost * share:.4f}"
    calls = f"{summary.total('calls') * share:,.0f} calls"
    time = format_seconds(seconds * left)
    return (
        f"By the first {noun}s all {rows:,}: about {calls}, {tokens:,.0f} tokens{cost}; "
        f"{time} more."
    )
