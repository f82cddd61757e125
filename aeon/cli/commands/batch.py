"""`aeon batch dataset=FILE out=FILE`: each row of a dataset is a task. `merge` and `record` read
the results."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.batch.batch import Batch
from aeon.batch.dataset import Common, Dataset, open_dataset
from aeon.batch.endpoints import SharedEndpoints
from aeon.batch.forecast import forecast_rows
from aeon.batch.half_price import remove_journal, with_journal
from aeon.batch.identity import identify
from aeon.batch.merge import merge
from aeon.batch.passing import make_passing_folder
from aeon.batch.records import Records, Running, unpack_record
from aeon.batch.results import Results
from aeon.batch.run import Backend, RowRunner, ThreadBackend, open_aeon
from aeon.batch.runner import GroupControl, group_endpoints
from aeon.batch.summary import Line, is_final
from aeon.cli.commands.batch_progress import run_attended, show_rows
from aeon.cli.job.prepare import read_settings
from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE, NOT_CONVERGED
from aeon.cli.terminal.streams import put, say, warn
from aeon.config.compose.literal import Composition
from aeon.config.settings import BatchSettings, Settings
from aeon.domain.errors import ConfigError
from aeon.llm.prices import check_prices, price_book
from aeon.report.words import relative_to_here


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The dataset, results file and shard named on a batch's command line. `out` is None for
    standard output."""

    dataset: str
    out: Path | None
    shard: tuple[int, int]


def batch(words: Namespace) -> int:
    """Run a dataset. 0 when every row converged or is complete, 1 when one failed or cannot be run,
    3 when one did not converge, 130 when interrupted. Raises ConfigError before any paid call."""
    composition, settings = read_settings(words, "sweep", "arms")
    if settings.answer.baseline:
        raise ConfigError(
            "answer.baseline=true is for runs and multiruns: no row of a batch reports a baseline",
            hint="`aeon eval` measures configurations against one direct call.",
        )
    if settings.resume is not None or settings.store.mode == "replay":
        problem = "a batch resumes by itself, from its out file"
        raise ConfigError(f"{problem}: leave out resume and store.mode=replay")
    given = GivenRows(words.dataset, _results_file(words.out), read_shard(words.shard))
    has_files = given.out is not None and given.dataset != "-"
    control = GroupControl()
    # A batch with files of its own needs no other place.
    with nullcontext(Path()) if has_files else make_passing_folder() as passing:
        place = given.out or passing / "out"
        path = dataset_file(given.dataset, passing / "dataset.jsonl")
        composition = with_journal(composition, settings, place)
        with (
            closing(group_endpoints(settings.batch, control)) as endpoints,
            open_aeon(composition, open_endpoints=endpoints.open) as aeon,
        ):
            warn(*aeon.warnings)
            check_prices(price_book(aeon.settings.provider), settings.batch.max_cost, of="batch")
            dataset = open_given_dataset(path, given, aeon)
            runner = open_runner(aeon, composition, dataset, endpoints, place)
            batch_settings = aeon.settings.batch
            with closing(open_batch(given, runner, dataset, control, batch_settings)) as running:
                forecast = forecast_rows(aeon, dataset, *running.count())
                status = run_attended(running, aeon.settings, forecast, endpoints)
    # Rows that are run again need it, or they would pay again for a batch of the provider.
    if status in (DONE, NOT_CONVERGED) and not control.stop_requested:
        remove_journal(place)
    return status


def open_given_dataset(path: Path, given: GivenRows, aeon: Aeon) -> Dataset:
    """Open the dataset at `path`, with the task and inputs of the command line as defaults of its
    rows. Raises ConfigError."""
    try:
        return open_dataset(
            path,
            aeon.settings.batch.columns,
            _common(aeon),
            lambda count: say(f"{given.dataset}: {count:,} rows read so far ..."),
        )
    except ConfigError as error:  # the name of a copy of standard input means nothing
        message = error.message.replace(str(path), given.dataset)
        raise ConfigError(message, hint=error.hint) from None


def open_runner(
    aeon: Aeon, composition: Composition, dataset: Dataset, endpoints: SharedEndpoints, place: Path
) -> RowRunner:
    """Return the runner of the rows, which works in a folder next to `place`."""
    folder = place.with_name(f"{place.name}.running")
    running = Running(folder, trusts_all=aeon.settings.trust is True)
    return RowRunner(aeon, composition, dataset.count, identify(aeon), running, endpoints)


def open_batch(
    given: GivenRows,
    runner: RowRunner,
    dataset: Dataset,
    control: GroupControl,
    settings: BatchSettings,
    *,
    keeps_runs: bool = False,
    keeps_others: bool = False,
    is_done: Callable[[Line], bool] = is_final,
) -> Batch:
    """Return the rows with the configured backend, ready to run. `is_done` checks by a result line
    whether its row is finished; `keeps_others` keeps the lines of rows that the dataset lacks.
    Raises ConfigError."""
    _check_interaction(runner.aeon.settings, given.out)
    results = Results(
        given.out,
        runner.configuration,
        dataset,
        settings.changed,
        put,
        is_done,
        keeps_others=keeps_others,
    )
    _check_shard(given.shard, results)
    warn(*runner.running.warnings)
    if not keeps_runs:
        runner.running.drop_done(row for row in dataset.rows() if results.done[row.number])
    return Batch(
        _backend(runner, settings),
        settings,
        dataset,
        results,
        Records(given.out) if given.out else None,
        given.shard,
        control,
        keeps_runs=keeps_runs,
    )


def _check_interaction(settings: Settings, out: Path | None) -> None:
    """Raise ConfigError where rows that wait for a person could not be resumed."""
    if settings.interaction.kind != "defer":
        return
    if out is None:
        raise ConfigError(
            "interaction=defer: out=- cannot store rows that wait", hint="Name a file with out=."
        )
    if settings.batch.backend == "ray":
        raise ConfigError(
            "interaction=defer: rows on a cluster cannot wait for a person",
            hint="Use batch.backend=local, or interaction=none.",
        )


def _backend(runner: RowRunner, settings: BatchSettings) -> Backend:
    if settings.backend == "ray":
        from aeon.batch.ray.cluster import Cluster

        return Cluster(runner, settings)
    if (folder := runner.running.folder).with_suffix(".answers").exists():
        from aeon.batch.ray.answers import Answers

        # What a cluster left behind is moved to where rows of this machine resume from.
        answers = Answers(folder, runner.aeon.settings.store.own_backend)
        answers.open()
        answers.close()
    return ThreadBackend(runner, settings.parallel)


def read_shard(text: str) -> tuple[int, int]:
    """Return the numbers i and n of `shard=i/n`. Raises ConfigError."""
    first, _, every = text.partition("/")
    if not (first.isdecimal() and every.isdecimal() and 1 <= int(first) <= int(every)):
        raise ConfigError(f"shard={text}: must be i/n with i from 1 to n, as in shard=1/4")
    return int(first), int(every)


def _check_shard(shard: tuple[int, int], results: Results) -> None:
    first, every = shard
    if any((number - first) % every for number, is_done in enumerate(results.done) if is_done):
        results.close()
        hint = "Each shard has its own results: name another file with out=."
        raise ConfigError(f"shard={first}/{every}: out= has rows of another shard", hint=hint)


def _results_file(text: str) -> Path | None:
    """Return the file of the results; None for standard output. Raises ConfigError."""
    if text == "-":
        return None
    out = Path(text).expanduser()
    if out.suffix.lower() not in ("", ".jsonl", ".ndjson"):
        lines = out.with_suffix(".jsonl")
        hint = (
            f"Give out={lines}; then `aeon batch merge "
            f"out={out.with_suffix('.csv')} {lines}` makes a table of it."
        )
        raise ConfigError(f"out={text}: results are written as JSON Lines, line by line", hint=hint)
    if Path("/dev") in out.absolute().parents or (out.exists() and not out.is_file()):
        raise ConfigError(f"out={text}: is not a regular file", hint="out=- is standard output.")
    return out


def dataset_file(text: str, copy: Path) -> Path:
    """Return the file of a dataset; standard input is copied to `copy` first, since it is read
    twice. Raises ConfigError."""
    if text != "-":
        return Path(text).expanduser()
    if at_terminal():
        say("dataset=-: type JSON Lines, an object a line; Ctrl-D on a line of its own ends them.")
    try:
        with copy.open("wb") as file:
            file.writelines(sys.stdin.buffer)  # by lines: at a terminal one Ctrl-D is then enough
    except OSError as error:
        raise ConfigError(
            f"dataset=-: cannot be copied to {copy}: {error.strerror or error}"
        ) from None
    return copy


def _common(aeon: Aeon) -> Common:
    """Return the task and inputs that the command line gives all rows."""
    task = aeon.job.task
    if task is None:
        task = aeon.workflow.task if aeon.workflow else ""
    return Common(task, aeon.job.inputs)


def merge_results(given: Namespace) -> int:
    """Merge the results of shards. Raises ConfigError for missing or duplicate rows, and when the
    output file exists."""
    out: Path = given.out.expanduser()
    if out.exists():
        raise ConfigError(
            f"out={out}: exists already", hint="Remove it, or name another file with out=."
        )
    show_rows(merge([path.expanduser() for path in given.results], out), out)
    return DONE


def unpack_row(given: Namespace) -> int:
    """Write the record of a row into a folder, with its page. Raises ConfigError for a row without
    one."""
    directory: Path = given.dir.expanduser()
    unpack_record(given.results.expanduser(), given.id, directory)
    from aeon.cli.commands.inspect import make_page  # slow to load

    put(str(relative_to_here(make_page(directory).absolute())))
    return DONE
