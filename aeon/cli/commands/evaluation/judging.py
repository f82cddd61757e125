"""Judges given answers at the terminal, as rows of a batch are run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.app.calibration import find_changes
from aeon.batch.dataset import Dataset
from aeon.batch.endpoints import SharedEndpoints
from aeon.batch.forecast import Forecast
from aeon.batch.half_price import with_journal
from aeon.batch.results import read_places
from aeon.batch.run import open_aeon
from aeon.batch.runner import GroupControl
from aeon.batch.summary import Line
from aeon.cli.commands.batch import GivenRows, open_batch, open_runner
from aeon.cli.commands.batch_progress import run_attended
from aeon.cli.terminal.streams import warn
from aeon.config.compose.literal import Composition
from aeon.config.settings import Settings
from aeon.domain.assessment import SCORE_CODES, Calibration
from aeon.domain.errors import ConfigError
from aeon.evaluation.baseline import digest_checks
from aeon.evaluation.judging import (
    JUDGED_ALONE,
    AnswerJudge,
    GivenAnswers,
    forecast_judgements,
    has_answer,
    is_judged,
    list_judges,
)
from aeon.evaluation.models import Measurement
from aeon.evaluation.sentences import describe_correction, describe_uncorrected
from aeon.evaluation.table import correct_arms
from aeon.llm.prices import check_prices, price_book


@dataclass(frozen=True, slots=True)
class Judge:
    """The judge of a configuration, called through `aeon`; it writes its judgements into the file
    `place`."""

    aeon: Aeon
    composition: Composition
    endpoints: SharedEndpoints
    control: GroupControl
    place: Path

    def judge(self, given: str, rows: GivenAnswers) -> None:
        """Judge the answers that are not yet judged; `given` names their source. Judgements of
        other answers stay, since they were paid for."""
        source = GivenRows(given, self.place, (1, 1))
        runner = open_runner(self.aeon, self.composition, rows, self.endpoints, self.place)
        settings = self.aeon.settings
        # A changed answer is another answer.
        batch = settings.batch.model_copy(update={"changed": "again"})
        opened = open_batch(
            source, runner, rows, self.control, batch, keeps_others=True, is_done=is_judged
        )
        with closing(opened) as running:
            forecast = forecast_judgements(self.aeon, rows.answers, running.count()[0])
            run_attended(running, settings, forecast, self.endpoints, lambda *_: None)

    def read_lines(self) -> dict[str, Line]:
        """Return the lines of the judged answers, by their ids."""
        if not self.place.exists():
            return {}
        return {line["id"]: line for _, line in read_places(self.place)}


def make_folder(folder: Path, purpose: str) -> None:
    """Create the folder of the files of a `purpose`, unless it exists. Raises ConfigError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"out={folder}: {error.strerror or error}"
        raise ConfigError(problem, hint=f"Name a folder for the {purpose}.") from None


@contextmanager
def open_judge(
    composition: Composition,
    settings: Settings,
    endpoints: SharedEndpoints,
    control: GroupControl,
    place: Path,
    *,
    allows_simulated: bool,
) -> Iterator[Judge]:
    """Yield the judge of a configuration. Raises ConfigError for a provider without a model, unless
    that is allowed."""
    alone = composition.with_overrides((*composition.overrides, *JUDGED_ALONE))
    # Judgements are rows of their own, with a journal apart from that of the answers.
    alone = with_journal(alone, settings, place)
    with open_aeon(alone, open_endpoints=endpoints.open) as aeon:
        warn(*aeon.warnings)
        if aeon.synthetic and not allows_simulated:
            raise ConfigError(
                "provider=simulated: no model judges, so nothing is measured",
                hint="Choose a provider; allow_simulated=true is for trying this out.",
            )
        check_prices(price_book(aeon.settings.provider), aeon.settings.batch.max_cost, of="batch")
        yield Judge(aeon, alone, endpoints, control, place)


@dataclass(frozen=True, slots=True)
class ArmJudge:
    """Grades the answers of all arms of a measurement with one judge, at the thresholds of
    `settings`."""

    judge: Judge
    settings: Settings

    @property
    def before(self) -> AnswerJudge:
        """The grader before the judge is asked."""
        return AnswerJudge(self._thresholds)

    def read(self) -> AnswerJudge:
        """Return the grader with the judgements so far."""
        return AnswerJudge(self._thresholds, self.judge.read_lines())

    @property
    def digest(self) -> str:
        """A digest of what decides which answers pass: thresholds, criteria, checks, prompts, and
        the judge's model."""
        settings = self.judge.aeon.settings
        model = settings.roles.grader.model or settings.provider.model
        judged_by = {"provider": settings.provider.kind, "model": model}
        judge = {**self._thresholds, **self.judge.aeon.judge_digests, **judged_by}
        return digest_checks(self.judge.aeon.checks, judge)

    @property
    def _thresholds(self) -> dict[str, float]:
        return {name: getattr(self.settings.convergence, name) for name in SCORE_CODES}

    def forecast(self, dataset: Dataset, answers: int) -> Forecast:
        """Forecast the least cost of judging this number of answers to the rows of a dataset."""
        rows = [row for row in dataset.rows() if not row.problem]
        return forecast_judgements(self.judge.aeon, rows, answers)

    def ask(self, given: str, dataset: Dataset, lines: Iterable[Line]) -> None:
        """Judge the answers that are not yet judged."""
        rows = {row.id: row for row in dataset.rows()}
        answered = sorted(filter(has_answer, lines), key=itemgetter("row"))
        answers = [
            replace(
                rows[line["id"].split("/", 2)[2]],
                number=number,
                line=number,
                id=line["id"],
                overrides=(),
                answer=line["answer"],
            )
            for number, line in enumerate(answered, start=1)
        ]
        if answers:
            self.judge.judge(given, GivenAnswers.of(self.judge.place, answers))

    def correct(self, measurement: Measurement) -> Measurement:
        """Return the measurement with its rates corrected by the calibration, or with the reason
        why they are not."""
        calibration = self.settings.convergence.calibration
        reason = self._find_reason(calibration)
        if calibration is None or reason:
            return measurement.model_copy(update={"judging": describe_uncorrected(reason)})
        corrected = correct_arms(measurement, calibration)
        return corrected.model_copy(update={"judging": describe_correction(corrected, calibration)})

    def _find_reason(self, calibration: Calibration | None) -> str:
        """Return why rates cannot be corrected by a calibration; empty where they can."""
        if calibration is None:
            return "there is no calibration (aeon docs calibrate)"
        models = list_judges(self.judge.read_lines().values())
        changes = [*find_changes(calibration, self.judge.aeon.judge_digests, models)]
        if set(self._thresholds.values()) != {calibration.threshold}:
            changes.append(f"the thresholds are not the calibrated {calibration.threshold:g}")
        return "; ".join(changes)
