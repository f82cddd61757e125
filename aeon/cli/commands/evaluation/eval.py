"""`aeon eval dataset=FILE out=DIR`: arms measured on the rows of a dataset."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
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
from aeon.evaluation.forms import write_text
from aeon.evaluation.models import Measurement
from aeon.evaluation.report import write_files
from aeon.evaluation.table import measure
from aeon.llm.prices import check_prices, price_book
from aeon.report.words import relative_to_here

ROWS = "rows.jsonl"
"""The results of the rows, in the folder of a measurement."""


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
        _run_rows(words, arms, dataset, given, runner, control)
        evaluation = _measure(words, arms, dataset, baseline)
    _show(evaluation, words.out.expanduser())
    if not control.stop_requested and not evaluation.not_measured:
        remove_journal(place)
    return _finish(evaluation, words, control)


def _run_rows(
    words: Namespace,
    arms: _Arms,
    dataset: Dataset,
    given: GivenRows,
    runner: RowRunner,
    control: GroupControl,
) -> None:
    """Have each arm answer the rows that it has not."""
    assert given.out is not None
    rows = ArmRows.of(dataset, arms.arms, words.repeat)
    runner.of = rows.count
    with closing(open_batch(given, runner, rows, control, given.out)) as running:
        calls = lambda: runner.endpoints.meter.spent.calls  # noqa: E731
        forecast = _forecast(arms, dataset, running)
        run_attended(running, runner.aeon.settings, forecast, calls, lambda *_: None)


def _measure(
    words: Namespace, arms: _Arms, dataset: Dataset, baseline: Measurement | None
) -> Measurement:
    """What the answers come to, and against the baseline, if there is one."""
    lines = (line for _, line in read_places(words.out.expanduser() / ROWS))
    evaluation = measure(dataset, arms.arms, words.repeat, lines, arms.judged, words.threshold)
    if baseline is None:
        return evaluation
    compared = compare_with_baseline(evaluation, baseline, words.baseline.name)
    return evaluation.model_copy(update={"baseline": compared})


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


def _forecast(arms: _Arms, dataset: Dataset, running: Batch) -> Forecast:
    left = _count_left(running)
    parts = {
        arm.name: forecast_rows(aeon, dataset, left[arm.name])
        for arm, aeon in arms.opened
        if left.get(arm.name)
    }
    return add_forecasts(parts)


def _count_left(running: Batch) -> Mapping[str, int]:
    """How many answers of each arm are still to be given."""
    left: dict[str, int] = {}
    for row in running.rows():
        name = _name_arm(row)
        left[name] = left.get(name, 0) + 1
    return left


def _name_arm(row: Row) -> str:
    return row.arm.name if row.arm else ""


def _show(evaluation: Measurement, folder: Path) -> None:
    page = write_files(evaluation, folder)
    put(write_text(evaluation))
    say(f"Page: {relative_to_here(page)}")


def _finish(evaluation: Measurement, words: Namespace, control: GroupControl) -> int:
    if control.is_interrupted:
        return INTERRUPTED
    if evaluation.not_measured:
        return NOT_MEASURED
    if words.bless == "true":
        bless(evaluation, words.baseline.expanduser())
        say(f"Baseline: {words.baseline}")
    return BELOW if evaluation.is_below else DONE
