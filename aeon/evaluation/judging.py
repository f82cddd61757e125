"""Given answers, each judged alone by the judge of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from aeon.app.aeon import Aeon
from aeon.batch.dataset import Common, Dataset, Row
from aeon.batch.forecast import Forecast
from aeon.batch.summary import REPEATED_ENDS, Line
from aeon.config.settings import BatchColumns
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.request import Usage, add_costs
from aeon.evaluation.grading import (
    Grade,
    fail_without_answer,
    grade_failure,
    has_text,
    lacks_answer,
    leave_unmeasured,
)
from aeon.llm.prices import price_book
from aeon.report.words import count_noun

JUDGED_ALONE = (
    "mode=single",
    "answer.judge=true",
    "answer.baseline=false",
    "plan_file=null",
    "tools=none",
    "execution.samples=1",
    "refinement.accept=always",
    "evaluation.skip_judge_when_checks_fail=false",
    "convergence.when=any",
    "convergence.patience=null",
    "convergence.open_severity=null",
    "convergence.margin=0",
    "convergence.calibration=null",
    "convergence.completeness=0",
    "convergence.coherence=0",
    "convergence.consistency=0",
)
"""The settings that judge a given answer once, whatever its scores. The thresholds are 0, so that
objections other than scores can be told apart from them."""
_CHARACTERS_OF_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class GivenAnswers(Dataset):
    """Answers read from a file, each as a row in which it is judged."""

    answers: tuple[Row, ...]

    @classmethod
    def of(cls, path: Path, answers: Iterable[Row]) -> GivenAnswers:
        """Return the rows of these answers, read from the file `path`."""
        rows = tuple(answers)
        return cls(path, BatchColumns(), Common(), len(rows), (), rows)

    def rows(self) -> Iterator[Row]:
        """See `Dataset`."""
        return iter(self.answers)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One judgement of an answer. `is_held_back`: something other than a score objects, a blocking
    issue, a criterion or a check."""

    scores: Mapping[str, float]
    is_held_back: bool

    def passes(self, thresholds: Mapping[str, float]) -> bool:
        """Whether the answer is good enough at these thresholds."""
        reached = all(self.scores[name] >= least for name, least in thresholds.items())
        return reached and not self.is_held_back


def is_judged(line: Line) -> bool:
    """Check whether the line of a row has a judgement."""
    scores = line.get("scores") or {}
    is_whole = all(scores.get(f"{name}_score") is not None for name in SCORE_CODES)
    return line["ended"] in ("completed", "check_failed") and is_whole


def explain_missing(line: Line | None) -> str:
    """Return why an answer has no judgement, by its line, if it has one."""
    line = line or {}
    error = line.get("error") or {}
    lost = "; ".join(line.get("degraded_messages") or ())
    return error.get("message") or lost or "the judge did not answer"


def read_judgement(line: Line) -> Judgement:
    """Return the judgement in the line of an answer that was judged alone."""
    scores = {name: line["scores"][f"{name}_score"] for name in SCORE_CODES}
    return Judgement(scores, is_held_back="complete" not in line["reason_codes"])


def list_judges(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return the models that judged."""
    return tuple(sorted({model for line in lines for model in line.get("judged_by", ())}))


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """The judge's grades of a measurement's answers: the `lines` of their judgements, by the ids of
    the answers, and the `thresholds` to reach. Without lines nothing has been judged yet, and every
    answer counts as passed."""

    thresholds: Mapping[str, float]
    lines: Mapping[str, Line] | None = None

    def grade(self, _: Row, name: str, line: Line | None) -> Grade:
        """Grade the answer of this name to a row, given its own line in the results."""
        if line is None or line["ended"] in REPEATED_ENDS:
            return grade_failure(line)
        if lacks_answer(line):
            return fail_without_answer(line)
        if not has_answer(line):
            return Grade(verdict="failed", score=0.0, reason="there is no answer")
        if self.lines is None:
            return Grade(verdict="passed", score=1.0)
        judged = self.lines.get(name)
        if judged is None or not is_judged(judged):
            return leave_unmeasured(explain_missing(judged))
        return self._grade_judged(judged)

    def _grade_judged(self, line: Line) -> Grade:
        judgement = read_judgement(line)
        if judgement.passes(self.thresholds):
            return Grade(verdict="passed", score=1.0)
        low = [
            f"{name} {judgement.scores[name]:g}"
            for name, least in self.thresholds.items()
            if judgement.scores[name] < least
        ]
        held_back = line["reason_codes"] if judgement.is_held_back else ()
        return Grade(verdict="failed", score=0.0, reason=", ".join([*low, *held_back]))


def has_answer(line: Line) -> bool:
    """Check whether the line of a run has an answer to judge."""
    return line["ended"] not in REPEATED_ENDS and has_text(line)


def forecast_judgements(aeon: Aeon, answers: Sequence[Row], judgements: int) -> Forecast:
    """Forecast the least that `judgements` judgements of these answers take: each is one call to
    the grader, whose prompt holds the task and the answer."""
    settings = aeon.settings
    shown = aeon.render("convergence", "", {})
    own = fmean(map(_count_characters, answers))
    tokens = round((len(shown.system) + len(shown.user) + own) / _CHARACTERS_OF_A_TOKEN)
    model = settings.roles.grader.model or ""
    cost = price_book(settings.provider).cost(Usage(input_tokens=tokens), asked=model)
    money = "no price is known" if cost is None else f"cost at least {judgements * cost:.4f}"
    words = (
        f"{count_noun(judgements, 'judgement')} to go: a call each, {judgements * tokens:,} "
        f"tokens of prompts; {'no model is called' if aeon.synthetic else money}."
    )
    least_cost = None if cost is None else judgements * cost
    return Forecast(judgements, least_cost, words, noun="judgement")


def add_judging(rows: Forecast, judging: Forecast) -> Forecast:
    """Add the forecast of judging the answers after all rows have ended."""
    return rows._replace(
        least_cost=add_costs((rows.least_cost, judging.least_cost)),
        words=f"{rows.words}\njudge: {judging.words}",
    )


def _count_characters(row: Row) -> int:
    return len(row.task) + len(row.answer or "") + sum(map(len, row.inputs.values()))
