"""`aeon eval dataset=FILE out=DIR`: arms measured on the rows of a dataset."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.batch.batch import Batch
from aeon.batch.dataset import Arm, Dataset, Row
from aeon.batch.forecast import Forecast, add_forecasts, forecast_rows
from aeon.batch.half_price import remove_journal, with_journal
from aeon.batch.passing import passing_folder
from aeon.batch.results import read_places
from aeon.batch.run import RowRunner, open_aeon
from aeon.batch.runner import GroupControl, group_endpoints
from aeon.cli.commands.batch import (
    GivenRows,
    dataset_file,
    open_batch,
    open_given_dataset,
    open_runner,
    read_shard,
)
from aeon.cli.commands.batch_progress import run_attended
from aeon.cli.job.arguments import read_composition, refuse_keys
from aeon.cli.job.prepare import keep_private
from aeon.cli.terminal.status import BELOW, DONE, INTERRUPTED, NOT_MEASURED
from aeon.cli.terminal.streams import put, say, warn
from aeon.config.load import compose_settings
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.evaluation.arms import ArmRows, open_arms
from aeon.evaluation.baseline import bless, compare_with_baseline, read_baseline
from aeon.evaluation.equal import (
    MOST_ROUNDS,
    Equalizer,
    describe_equality,
    forecast_equality,
)
from aeon.evaluation.forms import write_text
from aeon.evaluation.models import Measurement
from aeon.evaluation.report import write_files
from aeon.evaluation.samples import ArmSamples
from aeon.evaluation.table import measure
from aeon.llm.prices import check_prices, price_book
from aeon.report.words import relative_to_here

ROWS, SAMPLES = "rows.jsonl", "samples.json"
"""The results of the rows, in the folder of a measurement, and with `equal=tokens` the samples."""


@dataclass(frozen=True, slots=True)
class _Arms:
    """The arms of a measurement, each with the Aeon that runs it; `judged` is the one that threshold
    and baseline are about."""

    opened: Sequence[tuple[Arm, Aeon]]
    judged: str

    @property
    def arms(self) -> list[Arm]:
        """The arms."""
        return [arm for arm, _ in self.opened]


def evaluate(words: Namespace) -> int:
    """Measure arms on a dataset. 0 when all was measured and the arm that is judged holds, 4 when it
    is below the threshold or worse than the baseline, 5 when something was not measured, 130 when
    interrupted. Raises ConfigError before anything is paid."""
    refuse_keys(words.overrides, "sweep", "a sweep (-m)")
    composition = read_composition(words)
    settings = compose_settings(composition)
    keep_private(settings)
    _check(words, settings)
    place = _make_folder(words.out) / ROWS
    composition = with_journal(composition, settings, place)
    control = GroupControl()
    with (
        nullcontext(Path()) if words.dataset != "-" else passing_folder() as passing,
        closing(group_endpoints(settings.batch, control)) as endpoints,
        open_aeon(composition, open_endpoints=endpoints.open) as aeon,
    ):
        warn(*aeon.warnings)
        check_prices(price_book(aeon.settings.provider), settings.batch.max_cost, of="batch")
        given = GivenRows(words.dataset, place, read_shard(words.shard))
        path = dataset_file(words.dataset, passing / "dataset.jsonl")
        dataset = open_given_dataset(path, given, aeon)
        runner = open_runner(aeon, composition, dataset, endpoints, place)
        arms = _open_arms(words, settings, runner)
        _require_measure(dataset)
        baseline = _read_baseline(words, arms, dataset)
        equality = _run_rows(words, arms, dataset, given, runner, control)
        measurement = _measure(words, arms, dataset, baseline, equality)
    _show(measurement, words.out.expanduser())
    if not control.stop_requested and not measurement.not_measured:
        remove_journal(place)
    return _finish(measurement, words, control)


def _run_rows(
    words: Namespace,
    arms: _Arms,
    dataset: Dataset,
    given: GivenRows,
    runner: RowRunner,
    control: GroupControl,
) -> str:
    """Have each arm answer the rows that it has not; with `equal=tokens` again, with other numbers
    of samples, until all have spent the same. Returns how far that was reached."""
    if words.equal is None:
        _run_once(words, arms, dataset, given, runner, control)
        return ""
    equalizer = _open_equalizer(words, arms, dataset)
    run_once = partial(_run_once, words, arms, dataset, given, runner, control, equalizer)
    run_once()
    for _ in range(MOST_ROUNDS):
        measurement = _measure(words, arms, dataset, None)
        if control.stop_requested or measurement.not_measured:
            break
        if not equalizer.plan(measurement):
            break
        run_once(before=measurement)
    measurement = _measure(words, arms, dataset, None)
    if not control.stop_requested:
        runner.running.drop_done(ArmRows.of(dataset, arms.arms, words.repeat).rows())
        runner.running.close()
    return describe_equality(measurement, equalizer.samples)


def _open_equalizer(words: Namespace, arms: _Arms, dataset: Dataset) -> Equalizer:
    answers = dataset.count * words.repeat
    samples = {arm.name: ArmSamples.of(aeon.settings, answers) for arm, aeon in arms.opened}
    return Equalizer(words.out.expanduser() / SAMPLES, samples)


def _run_once(
    words: Namespace,
    arms: _Arms,
    dataset: Dataset,
    given: GivenRows,
    runner: RowRunner,
    control: GroupControl,
    equalizer: Equalizer | None = None,
    before: Measurement | None = None,
) -> None:
    """Run the rows that are not done. After the measurement `before`, those that are to take other
    numbers of samples, too."""
    samples = equalizer.samples if equalizer else {}
    rows = ArmRows.of(dataset, arms.arms, words.repeat, samples)
    runner.of = rows.count
    settings = runner.aeon.settings
    batch = settings.batch.model_copy(update={"changed": "again"}) if before else settings.batch
    running = open_batch(given, runner, rows, control, batch, keeps_runs=equalizer is not None)
    with closing(running):
        if equalizer is not None:
            # Only now: until here the results are those of the samples before.
            equalizer.save()
        calls = lambda: runner.endpoints.meter.spent.calls  # noqa: E731
        if before is not None:
            forecast = forecast_equality(before, samples, running.count())
        else:
            forecast = _forecast(arms, dataset, running, is_equal=equalizer is not None)
        run_attended(running, settings, forecast, calls, lambda *_: None)


def _measure(
    words: Namespace,
    arms: _Arms,
    dataset: Dataset,
    baseline: Measurement | None,
    equality: str = "",
) -> Measurement:
    """What the answers come to, and against the baseline, if there is one."""
    lines = (line for _, line in read_places(words.out.expanduser() / ROWS))
    measurement = measure(dataset, arms.arms, words.repeat, lines, arms.judged, words.threshold)
    measurement = measurement.model_copy(update={"equality": equality})
    if baseline is None:
        return measurement
    compared = compare_with_baseline(measurement, baseline, words.baseline.name)
    return measurement.model_copy(update={"baseline": compared})


def _check(words: Namespace, settings: Settings) -> None:
    if settings.resume is not None or settings.store.mode == "replay":
        problem = "a measurement goes on by itself, from its folder"
        raise ConfigError(f"{problem}: leave resume and store.mode=replay out")
    if settings.store.mode == "cache":
        raise ConfigError(
            "store=cache: arms and repeats share no answers, so that the cost of each is its own",
            hint="Leave it out: the same command goes on without paying again.",
        )
    if words.bless == "true" and words.baseline is None:
        raise ConfigError("bless=true: which file?", hint="Name it with baseline=FILE.")


def _make_folder(folder: Path) -> Path:
    folder = folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"out={folder}: {error.strerror or error}", hint="Name a folder for the measurement."
        ) from None
    return folder


def _open_arms(words: Namespace, settings: Settings, runner: RowRunner) -> _Arms:
    opened = open_arms(settings.arms, runner)
    names = [arm.name for arm, _ in opened]
    if words.arm and words.arm not in names:
        raise ConfigError(f"arm={words.arm}: there is no such arm, but {', '.join(names)}")
    synthetic = [arm.name for arm, aeon in opened if aeon.synthetic]
    if synthetic and words.allow_simulated != "true":
        raise ConfigError(
            f"provider=simulated: of {', '.join(synthetic)} no model is called, so that nothing is measured",
            hint="Choose a provider; allow_simulated=true is for trying this out.",
        )
    return _Arms(opened, words.arm or names[-1])


def _require_measure(dataset: Dataset) -> None:
    """Raise ConfigError where nothing says which answers are right."""
    if any(row.target for row in dataset.rows()):
        return
    raise ConfigError(
        f"dataset={dataset.path}: no row has a target, so that nothing is measured",
        hint="A row's column target (or expected_output) is the answer that is expected.",
    )


def _read_baseline(words: Namespace, arms: _Arms, dataset: Dataset) -> Measurement | None:
    if words.baseline is None or words.bless == "true":
        return None
    return read_baseline(words.baseline.expanduser(), arms.judged, dataset, words.repeat)


def _forecast(arms: _Arms, dataset: Dataset, running: Batch, *, is_equal: bool) -> Forecast:
    left = _count_left(running)
    parts = {
        arm.name: forecast_rows(aeon, dataset, left[arm.name])
        for arm, aeon in arms.opened
        if left.get(arm.name)
    }
    total = add_forecasts(parts)
    if not is_equal or total.least_cost is None:
        return total
    # Each arm will spend as much as the dearest.
    dearest = max((part.least_cost or 0.0 for part in parts.values()), default=0.0)
    return total._replace(least_cost=len(parts) * dearest)


def _count_left(running: Batch) -> Mapping[str, int]:
    """How many answers of each arm are still to be given."""
    left: dict[str, int] = {}
    for row in running.rows():
        name = _name_arm(row)
        left[name] = left.get(name, 0) + 1
    return left


def _name_arm(row: Row) -> str:
    return row.arm.name if row.arm else ""


def _show(measurement: Measurement, folder: Path) -> None:
    page = write_files(measurement, folder)
    put(write_text(measurement))
    say(f"Page: {relative_to_here(page)}")


def _finish(measurement: Measurement, words: Namespace, control: GroupControl) -> int:
    if control.is_interrupted:
        return INTERRUPTED
    if measurement.not_measured:
        return NOT_MEASURED
    if words.bless == "true":
        bless(measurement, words.baseline.expanduser())
        say(f"Baseline: {words.baseline}")
    return BELOW if measurement.is_below else DONE
