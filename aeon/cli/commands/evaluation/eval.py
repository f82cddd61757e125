"""`aeon eval dataset=FILE out=DIR`: arms measured on the rows of a dataset."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.batch.batch import Batch
from aeon.batch.dataset import Arm, Dataset
from aeon.batch.endpoints import SharedEndpoints
from aeon.batch.forecast import Forecast, add_forecasts, forecast_rows
from aeon.batch.half_price import remove_journal, with_journal
from aeon.batch.passing import make_passing_folder
from aeon.batch.results import read_places
from aeon.batch.run import RowRunner, open_aeon
from aeon.batch.runner import GroupControl, group_endpoints
from aeon.batch.summary import Line
from aeon.checks.selection import CheckSet
from aeon.cli.commands.batch import (
    GivenRows,
    dataset_file,
    open_batch,
    open_given_dataset,
    open_runner,
    read_shard,
)
from aeon.cli.commands.batch_progress import run_attended
from aeon.cli.commands.evaluation.judging import ArmJudge, make_folder, open_judge
from aeon.cli.job.prepare import read_settings
from aeon.cli.terminal.status import BELOW, DONE, INTERRUPTED, NOT_MEASURED
from aeon.cli.terminal.streams import put, say, warn
from aeon.cli.terminal.width import fit_rows, terminal_width
from aeon.config.compose.compose import parse
from aeon.config.compose.literal import Composition, key_of
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.evaluation.arms import (
    ArmRows,
    list_arms,
    name_arm,
    open_arms,
    refuse_settings_of_arms,
    require_answers_of,
)
from aeon.evaluation.baseline import (
    bless,
    compare_with_baseline,
    digest_checks,
    has_own_checks,
    read_baseline,
    require_replaceable,
)
from aeon.evaluation.equal import (
    MOST_ROUNDS,
    Equalizer,
    describe_equality,
    forecast_equality,
    raise_to_dearest,
)
from aeon.evaluation.forms import write_text
from aeon.evaluation.grading import is_done
from aeon.evaluation.judging import AnswerJudge, add_judging
from aeon.evaluation.models import Measurement
from aeon.evaluation.report import write_files
from aeon.evaluation.samples import ArmSamples
from aeon.evaluation.table import measure, tell_checks_apart
from aeon.llm.prices import check_prices, price_book
from aeon.report.words import relative_to_here

ROWS = "rows.jsonl"
SAMPLES = "samples.json"
JUDGED = "judged.jsonl"
"""The results of the rows, in the folder of a measurement, with `equal=tokens` the samples, and
with `judge=true` the judgements."""
_CONFIGURATION = "aeon.eval"


@dataclass(frozen=True, slots=True)
class _ArmRuns:
    """A measurement under way: its command line, its arms, each with the Aeon that runs it, its
    rows, and their runner. Threshold and baseline apply to the arm `judged`."""

    words: Namespace
    opened: Sequence[tuple[Arm, Aeon]]
    judged: str
    shard: tuple[int, int]
    dataset: Dataset
    given: GivenRows
    runner: RowRunner
    control: GroupControl
    judge: ArmJudge | None = None

    @property
    def arms(self) -> list[Arm]:
        """The arms."""
        return [arm for arm, _ in self.opened]

    @property
    def folder(self) -> Path:
        """The folder of the measurement."""
        folder: Path = self.words.out.expanduser()
        return folder

    @property
    def decided_by(self) -> dict[str, str]:
        """For each arm a digest of what decides, besides its rows, which answers pass."""
        if self.judge is not None:
            return dict.fromkeys((arm.name for arm in self.arms), self.judge.digest)
        has_own = has_own_checks(self.dataset)
        return {
            arm.name: digest_checks(aeon.checks.for_row(CheckSet()) if has_own else aeon.checks)
            for arm, aeon in self.opened
        }

    def read_lines(self) -> Iterator[Line]:
        """Return the lines of the results."""
        return (line for _, line in read_places(self.folder / ROWS))

    def measure(self, judge: AnswerJudge | None = None) -> Measurement:
        """Measure the answers so far. Until the judge has been asked, answers that it has to grade
        count as passed."""
        words = self.words
        lines = self.read_lines()
        if judge is None and self.judge is not None:
            judge = self.judge.before
        return measure(
            self.dataset,
            self.arms,
            words.repeat,
            lines,
            self.judged,
            words.threshold,
            self.shard,
            judge,
        )

    def measure_judged(self) -> Measurement:
        """Measure all answers, after the judge has graded those that it has to."""
        if self.judge is None:
            return self.measure()
        if not self.control.stop_requested:
            self.judge.ask(str(self.words.dataset), self.dataset, self.read_lines())
        return self.judge.correct(self.measure(self.judge.read()))

    def _list_rows(self, samples: Mapping[str, ArmSamples] | None = None) -> ArmRows:
        repeat = self.words.repeat
        return ArmRows.of(self.dataset, self.arms, repeat, samples=samples, shard=self.shard)

    def run_rows(self) -> str:
        """Have each arm answer its missing rows; with `equal=tokens` repeat that with other numbers
        of samples, until all arms have spent the same. Returns a description of how closely they
        did."""
        if self.words.equal is None:
            self._run_once()
            return ""
        answers = self.dataset.count * self.words.repeat
        samples = {arm.name: ArmSamples.of(aeon.settings, answers) for arm, aeon in self.opened}
        begins_anew = self.runner.aeon.settings.batch.changed == "again"
        equalizer = Equalizer(self.folder / SAMPLES, samples, begins_anew)
        self._run_once(equalizer)
        for _ in range(MOST_ROUNDS):
            measurement = self.measure()
            if measurement.not_measured or not equalizer.plan(measurement):
                break
            self._run_once(equalizer, before=measurement)
        measurement = self.measure()
        if not measurement.not_measured:
            self._remove_runs()
        return describe_equality(measurement, equalizer.samples)

    def _remove_runs(self) -> None:
        """Remove the files of rows that might have needed more samples."""
        running = self.runner.running
        running.drop_done(self._list_rows().rows())
        running.close()
        # The answers that a cluster stored to resume them.
        running.folder.with_suffix(".answers").unlink(missing_ok=True)

    def _run_once(
        self, equalizer: Equalizer | None = None, before: Measurement | None = None
    ) -> None:
        """Run the rows that are not done; after the measurement `before`, also those that need
        another number of samples."""
        runner = self.runner
        samples = equalizer.samples if equalizer else {}
        rows = self._list_rows(samples)
        runner.of = rows.count
        batch = runner.aeon.settings.batch
        if before is not None:
            batch = batch.model_copy(update={"changed": "again"})
        running = open_batch(
            self.given,
            runner,
            rows,
            self.control,
            batch,
            keeps_runs=equalizer is not None,
            is_done=is_done,
        )
        with closing(running):
            if equalizer is not None and before is not None:
                # Saved only here: until now the results belong to the former samples.
                running.results.begin()
                equalizer.save()
            if before is not None:
                forecast = forecast_equality(before, samples, running.count()[0])
            else:
                forecast = self._forecast(running)
            run_attended(running, runner.aeon.settings, forecast, runner.endpoints, lambda *_: None)

    def _forecast(self, running: Batch) -> Forecast:
        left = Counter((row.arm and row.arm.name, bool(row.problem)) for row in running.rows())
        parts = {}
        for arm, aeon in self.opened:
            valid, invalid = left[arm.name, False], left[arm.name, True]
            if valid or invalid:
                parts[arm.name] = forecast_rows(aeon, self.dataset, valid, invalid, noun="answer")
        total = add_forecasts(parts)._replace(noun="answer")
        if self.words.equal is not None:
            total = raise_to_dearest(total, parts)
        if self.judge is None or not total.rows:
            return total
        return add_judging(total, self.judge.forecast(self.dataset, total.rows))


def evaluate(words: Namespace) -> int:
    """Measure arms on a dataset. 0 when everything was measured and the judged arm holds, 4 when it
    is below the threshold or worse than the baseline, 5 when something was not measured, 130 when
    interrupted. Raises ConfigError before any paid call."""
    _check_arms(words.overrides)
    typed, settings = read_settings(words, "sweep")
    shard = read_shard(words.shard)
    _check(words, settings)
    place = words.out.expanduser() / ROWS
    composition = with_journal(typed, settings, place)
    control = GroupControl()
    arms = list_arms(settings.arms)
    with (
        nullcontext(Path()) if words.dataset != "-" else make_passing_folder() as passing,
        closing(group_endpoints(settings.batch, control)) as endpoints,
        _open_first(arms[0], composition, endpoints) as aeon,
        _open_judge(words, typed, settings, endpoints, control) as judge,
    ):
        given = GivenRows(words.dataset, place, (1, 1))
        path = dataset_file(words.dataset, passing / "dataset.jsonl")
        dataset = open_given_dataset(path, given, aeon)
        refuse_settings_of_arms(dataset, arms)
        runner = open_runner(aeon, composition, dataset, endpoints, place)
        # Each row has the configuration of its arm: they may differ in everything.
        runner.configuration = _CONFIGURATION
        runner.opened_with = arms[0].overrides
        opened = open_arms(arms, runner)
        _check_providers(opened, settings)
        judged = _find_judged(words, opened)
        if judge is None:
            _require_measure(dataset, [aeon for _, aeon in opened])
        require_answers_of(arms, words.repeat, place)
        evaluation = _ArmRuns(words, opened, judged, shard, dataset, given, runner, control, judge)
        decided_by = evaluation.decided_by
        baseline = _read_baseline(words, judged, dataset, decided_by[judged])
        make_folder(place.parent, "measurement")
        equality = evaluation.run_rows()
        measurement = tell_checks_apart(evaluation.measure_judged(), decided_by)
        measurement = measurement.model_copy(update={"equality": equality})
        if baseline is not None:
            compared = compare_with_baseline(measurement, baseline, words.baseline.name)
            measurement = measurement.model_copy(update={"baseline": compared})
        _show(evaluation, measurement)
    if not control.stop_requested and not measurement.not_measured:
        remove_journal(place)
        remove_journal(place.with_name(JUDGED))
    return _finish(measurement, words, control)


def _open_first(arm: Arm, composition: Composition, endpoints: SharedEndpoints) -> Aeon:
    """Open the first arm: the base configuration need not run by itself, since arms may name their
    providers."""
    with name_arm(arm):
        return open_aeon(composition, *arm.overrides, open_endpoints=endpoints.open)


@contextmanager
def _open_judge(
    words: Namespace,
    composition: Composition,
    settings: Settings,
    endpoints: SharedEndpoints,
    control: GroupControl,
) -> Iterator[ArmJudge | None]:
    """Yield the judge that grades the answers; None where programs grade them."""
    if words.judge != "true":
        yield None
        return
    place = words.out.expanduser() / JUDGED
    allows = words.allow_simulated == "true"
    with open_judge(
        composition, settings, endpoints, control, place, allows_simulated=allows
    ) as judge:
        yield ArmJudge(judge, settings)


def _check_providers(opened: Sequence[tuple[Arm, Aeon]], settings: Settings) -> None:
    """Show the warnings of all arms, each once. Raises ConfigError for a cap on money without
    prices."""
    warn(*dict.fromkeys(text for _, aeon in opened for text in aeon.warnings))
    for arm, aeon in opened:
        with name_arm(arm):
            book = price_book(aeon.settings.provider)
            check_prices(book, settings.batch.max_cost, of="batch")


def _check_arms(overrides: Sequence[str]) -> None:
    """Raise ConfigError for an arm on the command line that is not a list."""
    for text in overrides:
        if not key_of(text).startswith("arms."):
            continue
        try:
            is_list = isinstance(parse(text).value(), list)
        except ConfigError:
            is_list = False
        if not is_list:
            raise ConfigError(
                f"{text}: an arm is a list of overrides, each a quoted text",
                hint="Quote the whole once more for the shell: "
                """'arms.eight=["mode=single", "execution.samples=8"]'""",
            )


def _check(words: Namespace, settings: Settings) -> None:
    if settings.resume is not None or settings.store.mode == "replay":
        problem = "a measurement resumes by itself, from its folder"
        raise ConfigError(f"{problem}: leave out resume and store.mode=replay")
    if settings.store.mode == "cache":
        raise ConfigError(
            "store=cache: arms and repeats share no answers, so that each has its full cost",
            hint="Leave it out: repeating the command resumes without paying again.",
        )
    if words.format == "inspect":
        from aeon.evaluation.inspect_log import require_inspect

        require_inspect()
    _check_shard(words)
    if words.bless == "true" and words.baseline is None:
        raise ConfigError("bless=true: which file?", hint="Name it with baseline=FILE.")


def _check_shard(words: Namespace) -> None:
    """Raise ConfigError for a shard together with an option that needs all rows."""
    if words.shard == "1/1":
        return
    if words.equal is not None:
        raise ConfigError(
            f"shard={words.shard}: equal=tokens needs the usage of all rows",
            hint="Leave one of them out.",
        )
    if words.judge == "true":
        raise ConfigError(
            f"shard={words.shard}: judge=true judges all answers in one place",
            hint="Leave judge out of the shards, merge their rows.jsonl, and judge then.",
        )


def _find_judged(words: Namespace, opened: Sequence[tuple[Arm, Aeon]]) -> str:
    """Return the arm that threshold and baseline apply to. Raises ConfigError for an unknown arm,
    and for a provider without a model unless that is allowed."""
    names = [arm.name for arm, _ in opened]
    if words.arm and words.arm not in names:
        raise ConfigError(f"arm={words.arm}: there is no such arm, but {', '.join(names)}")
    synthetic = [arm.name for arm, aeon in opened if aeon.synthetic]
    if synthetic and words.allow_simulated != "true":
        raise ConfigError(
            f"provider=simulated: for {', '.join(synthetic)} "
            "no model is called, so nothing is measured",
            hint="Choose a provider; allow_simulated=true is for trying this out.",
        )
    return words.arm or names[-1]


def _require_measure(dataset: Dataset, arms: Sequence[Aeon]) -> None:
    """Raise ConfigError where neither targets nor checks define which answers are right."""
    has_checks = all(aeon.settings.convergence.checks for aeon in arms)
    if has_checks or any(row.target or row.checks for row in dataset.rows()):
        return
    raise ConfigError(
        f"dataset={dataset.path}: no row has a target or checks, so nothing is measured",
        hint="A row's column target (or expected_output) is the expected answer; "
        "checks, in a column or as convergence.checks.NAME=..., look at the answer.",
    )


def _read_baseline(
    words: Namespace, judged: str, dataset: Dataset, decided_by: str
) -> Measurement | None:
    if words.baseline is None:
        return None
    path = words.baseline.expanduser()
    if words.bless == "true":
        require_replaceable(path)
        return None
    return read_baseline(path, judged, dataset, words.repeat, decided_by)


def _show(evaluation: _ArmRuns, measurement: Measurement) -> None:
    page = write_files(measurement, evaluation.folder)
    put(fit_rows(write_text(measurement, terminal_width()), hanging=0))
    say(f"Page: {relative_to_here(page)}")
    if evaluation.words.format == "inspect":
        from aeon.evaluation.inspect_log import write_logs  # with inspect_ai, which is slow to load

        lines = {line["id"]: line for line in evaluation.read_lines()}
        models = {arm.name: _name_model(aeon.settings) for arm, aeon in evaluation.opened}
        results = evaluation.folder / ROWS
        for log in write_logs(measurement, evaluation.dataset, lines, models, results):
            say(f"Inspect log: {relative_to_here(log)}")


def _name_model(settings: Settings) -> str:
    model = getattr(settings.provider, "model", None)
    return f"{settings.provider.kind}/{model}" if model else settings.provider.kind


def _finish(measurement: Measurement, words: Namespace, control: GroupControl) -> int:
    if control.is_interrupted:
        return INTERRUPTED
    if measurement.not_measured:
        if words.bless == "true":
            say(f"Not written, since not everything was measured: {words.baseline}")
        return NOT_MEASURED
    if words.bless == "true":
        bless(measurement, words.baseline.expanduser())
        say(f"Baseline: {words.baseline}")
    return BELOW if measurement.is_below else DONE
