"""What judging labelled answers will come to."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from aeon.app.aeon import Aeon
from aeon.batch.forecast import Forecast
from aeon.domain.request import Usage
from aeon.evaluation.calibration.labels import Label
from aeon.llm.prices import price_book
from aeon.report.words import count_noun

_CHARACTERS_OF_A_TOKEN = 4


def forecast_judgements(aeon: Aeon, labels: Sequence[Label], judgements: int) -> Forecast:
    """What so many judgements come to, at least: each is one call to the grader, whose prompt holds
    the task and the answer."""
    settings = aeon.settings
    shown = aeon.render("convergence", "", {})
    own = fmean(_count_characters(label) for label in labels)
    tokens = round((len(shown.system) + len(shown.user) + own) / _CHARACTERS_OF_A_TOKEN)
    model = settings.roles.grader.model or ""
    cost = price_book(settings.provider).cost(Usage(input_tokens=tokens), asked=model)
    money = "no price is known" if cost is None else f"cost at least {judgements * cost:.4f}"
    words = (
        f"{count_noun(judgements, 'judgement')} to go: a call each, {judgements * tokens:,} tokens of "
        f"prompts; {'no model is called' if aeon.synthetic else money}."
    )
    total = None if cost is None else judgements * cost
    return Forecast(judgements, total, words)


def _count_characters(label: Label) -> int:
    return len(label.task) + len(label.answer) + sum(map(len, label.inputs.values()))
