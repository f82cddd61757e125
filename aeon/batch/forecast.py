"""What a batch will come to: by the table and the prices before its first row, then by its first rows."""

from __future__ import annotations

from typing import NamedTuple

from aeon.app.aeon import Aeon
from aeon.batch.dataset import Dataset, Row
from aeon.batch.summary import Summary
from aeon.domain.request import Usage
from aeon.execution.forecast import forecast
from aeon.llm.prices import price_book
from aeon.report.words import count_noun, format_seconds

FIRST_ROWS = 8
# The calls of a row that needs one step and converges at once, each with its role.
_GRADED = (("step", "worker"), ("semantic_validation", "grader"), ("convergence", "grader"))
_LEAST = {
    "adaptive": (("task_profile", "planner"), ("plan", "planner"), ("semantic_validation", "grader"), *_GRADED),
    "auto": (("task_profile", "planner"), _GRADED[0], _GRADED[2]),
    "core": (("plan", "planner"), _GRADED[0]),
}
_CHARACTERS_OF_A_TOKEN = 4


class Forecast(NamedTuple):
    """What is foreseen of so many rows, in words; `least_cost` is what their prompts cost, None without a price."""

    rows: int
    least_cost: float | None
    words: str


def forecast_rows(aeon: Aeon, dataset: Dataset, rows: int) -> Forecast:
    """What `rows` rows of a dataset come to at least, about, told from the first that can be run."""
    settings, core = aeon.settings, aeon.settings.mode.kind == "core"
    calls, prices, tokens, costs = _LEAST[settings.mode.kind], price_book(settings.provider), 0, list[float | None]()
    row = next((row for row in dataset.rows() if not row.problem), Row(0, 0, "", "nothing"))
    for call, role in calls:
        shown = aeon.render(call, row.task, row.inputs)
        size = (len(shown.system) + len(shown.user)) // _CHARACTERS_OF_A_TOKEN
        costs.append(prices.cost(Usage(input_tokens=size), asked=getattr(settings.roles, role).model or ""))
        tokens += size
    least = len(calls)
    if aeon.workflow is not None:
        least = forecast(aeon.workflow.plan(), lambda step: 0 if step.tool and step.arguments else 1, core=core)
    most = settings.ttl.base if core else settings.ttl.limit + 1  # the profile is free
    most = max(least, min(most, settings.limits.max_llm_calls or most))
    cost = None if None in costs else rows * sum(cost or 0.0 for cost in costs)
    money = "no price is known" if cost is None else f"cost at least {cost:.4f}"
    capped = settings.limits.max_cost
    words = (
        f"{count_noun(rows, 'row')} to go: {least} to {most} calls each, in all at least {rows * least:,} calls and "
        f"{rows * tokens:,} tokens of prompts; {'no model is called' if aeon.synthetic else money}"
        + ("." if capped is None else f", at most about {capped * rows:.2f}.")
    )
    return Forecast(rows, cost, words)


def project(summary: Summary, left: int, seconds: float) -> str:
    """What all rows but invalid ones come to when they are as those that ran; each of the `left` ones takes `seconds`
    more."""
    rows = summary.count - summary.ends["invalid"] + left
    share = rows / summary.ran
    tokens = (summary.total("input_tokens") + summary.total("output_tokens")) * share
    cost = "" if summary.cost is None else f", cost {summary.cost * share:.4f}"
    calls, time = f"{summary.total('calls') * share:,.0f} calls", format_seconds(seconds * left)
    return f"By the first rows all {rows:,}: about {calls}, {tokens:,.0f} tokens{cost}; {time} more."
