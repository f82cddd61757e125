"""`aeon batch dataset=FILE out=FILE`: each row of a dataset is a task. `merge` and `record` read what it wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.batch.batch import Batch
from aeon.batch.dataset import Common, open_dataset
from aeon.batch.forecast import forecast_rows
from aeon.batch.half_price import remove_journal, with_journal
from aeon.batch.identity import identify
from aeon.batch.merge import merge
from aeon.batch.passing import passing_folder
from aeon.batch.records import Records, Running, unpack_record
from aeon.batch.results import Results
from aeon.batch.run import Backend, BatchControl, RowRunner, Threads, capped_endpoints, open_aeon
from aeon.cli.commands.batch_progress import run_attended, show_end
from aeon.cli.job.arguments import parse, refuse_keys
from aeon.cli.job.prepare import keep_private
from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE, NOT_CONVERGED
from aeon.cli.terminal.streams import put, say, warn
from aeon.config.load import compose_settings, read_inputs, read_task
from aeon.config.settings import BatchSettings, Settings
from aeon.domain.errors import ConfigError
from aeon.llm.prices import check_prices, price_book
from aeon.report.words import relative_to_here


def batch(arguments: Sequence[str]) -> int:
    """Run a dataset. 0 when every row converged or is complete, 1 when one failed or cannot be run, 3 when one did
    not converge, 130 when interrupted. Raises ConfigError before anything is paid."""
    if arguments and (other := {"merge": _merge, "record": _unpack}.get(arguments[0])):
        return other(arguments[1:])
    words = {
        name: [a.partition("=")[2] for a in arguments if a.startswith(f"{name}=")] for name in _OWN
    }
    refuse_keys(arguments, "sweep", "a sweep (-m)")
    composition = parse([a for a in arguments if a.partition("=")[0] not in _OWN])
    settings = compose_settings(composition)
    keep_private(settings)
    if settings.resume is not None or settings.store.mode == "replay":
        raise ConfigError(
            "a batch goes on by itself, from its out file: leave resume and store.mode=replay out"
        )
    out = _results_file(_one(words, "out"))
    shard = _shard(_one(words, "shard") if words["shard"] else "1/1")
    given = _one(words, "dataset")
    # What has its files needs no other place.
    with nullcontext(Path()) if out and given != "-" else passing_folder() as passing:
        place = out or passing / "out"
        path = _dataset_file(given, passing / "dataset.jsonl")
        composition = with_journal(composition, settings, place)
        control = BatchControl()
        endpoints = capped_endpoints(settings.batch, control)
        with closing(endpoints), open_aeon(composition, open_endpoints=endpoints.open) as aeon:
            warn(*aeon.warnings)
            check_prices(price_book(aeon.settings.provider), settings.batch.max_cost, of="batch")
            try:
                dataset = open_dataset(path, settings.batch.columns, _common(aeon, settings))
            except ConfigError as error:  # a copy of standard input has a name that says nothing
                raise ConfigError(
                    error.message.replace(str(path), words["dataset"][0]), hint=error.hint
                ) from None
            configuration = identify(aeon)
            results = Results(out, configuration, dataset, settings.batch.changed, put)
            _check_shard(shard, results)
            under_way = place.with_name(f"{place.name}.running")
            folder = Running(under_way, trusts_all=settings.trust is True)
            records = Records(place) if out else None
            warn(*folder.warnings)
            folder.drop_done(row for row in dataset.rows() if results.done[row.number])
            runner = RowRunner(aeon, composition, dataset.count, configuration, folder, endpoints)
            backend = _backend(runner, settings.batch)
            with closing(
                Batch(backend, settings.batch, dataset, results, records, shard, control)
            ) as running:
                calls, kind = lambda: endpoints.meter.spent.calls, settings.progress.kind
                status = run_attended(
                    running, forecast_rows(aeon, dataset, running.count()), kind, calls
                )
    if status in (DONE, NOT_CONVERGED) and not control.stop_requested:
        remove_journal(place)
    return status


def _backend(runner: RowRunner, settings: BatchSettings) -> Backend:
    if settings.backend == "ray":
        from aeon.batch.ray.cluster import Cluster

        return Cluster(runner, settings)
    if (folder := runner.running.folder).with_suffix(".answers").exists():
        from aeon.batch.ray.answers import (
            Answers,
        )  # what a cluster has left is put where this goes on from

        answers = Answers(folder, runner.aeon.settings.store.own_backend)
        answers.open()
        answers.close()
    return Threads(runner, settings.parallel)


_OWN = ("dataset", "out", "shard")


def _one(words: dict[str, list[str]], name: str) -> str:
    if len(words[name]) != 1 or not words[name][0]:
        problem = "stands twice" if len(words[name]) > 1 else "is missing"
        raise ConfigError(
            f"{name}= {problem}", hint="`aeon batch dataset=tasks.jsonl out=results.jsonl`"
        )
    return words[name][0]


def _shard(text: str) -> tuple[int, int]:
    first, _, every = text.partition("/")
    if not (first.isdecimal() and every.isdecimal() and 1 <= int(first) <= int(every)):
        raise ConfigError(f"shard={text}: must be i/n with i from 1 to n, as in shard=1/4")
    return int(first), int(every)


def _check_shard(shard: tuple[int, int], results: Results) -> None:
    first, every = shard
    if any((number - first) % every for number, is_done in enumerate(results.done) if is_done):
        results.close()
        hint = "Each shard has results of its own: name another file with out=."
        raise ConfigError(f"shard={first}/{every}: out= has rows of another shard", hint=hint)


def _results_file(text: str) -> Path | None:
    """The file of the results; None for standard output."""
    if text == "-":
        return None
    out = Path(text).expanduser()
    if out.suffix.lower() not in ("", ".jsonl", ".ndjson"):
        lines = out.with_suffix(".jsonl")
        hint = f"Give out={lines}; then `aeon batch merge out={out.with_suffix('.csv')} {lines}` makes a table of it."
        raise ConfigError(f"out={text}: results are written as JSON Lines, line by line", hint=hint)
    if Path("/dev") in out.absolute().parents or (out.exists() and not out.is_file()):
        raise ConfigError(f"out={text}: is no regular file", hint="out=- is standard output.")
    return out


def _dataset_file(text: str, copy: Path) -> Path:
    """The file of a dataset; standard input is copied first, since it is read twice. Raises ConfigError."""
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


def _common(aeon: Aeon, settings: Settings) -> Common:
    """What the command line gives to all rows."""
    if settings.task is not None or settings.task_file is not None:
        return Common(read_task(settings) or "", read_inputs(settings))
    return Common(aeon.workflow.task if aeon.workflow else "", read_inputs(settings))


def _merge(arguments: Sequence[str]) -> int:
    outs = [text.removeprefix("out=") for text in arguments if text.startswith("out=")]
    paths = [Path(text).expanduser() for text in arguments if not text.startswith("out=")]
    if len(outs) != 1 or not outs[0] or not paths:
        hint = "`aeon batch merge out=all.jsonl part-*.jsonl`"
        raise ConfigError("aeon batch merge takes one out= and the results of a batch", hint=hint)
    out = Path(outs[0]).expanduser()
    if out.exists():
        raise ConfigError(
            f"out={out}: is there already", hint="Remove it, or name another file with out=."
        )
    show_end(merge(paths, out), out)
    return DONE


def _unpack(arguments: Sequence[str]) -> int:
    if len(arguments) != 3:
        hint = "`aeon batch record results.jsonl ID DIR`"
        raise ConfigError(
            "aeon batch record takes a file of results, an id and a new folder", hint=hint
        )
    directory = Path(arguments[2]).expanduser()
    unpack_record(Path(arguments[0]).expanduser(), arguments[1], directory)
    from aeon.report.page.build import write_report  # slow to load

    put(str(relative_to_here(write_report(directory).absolute())))
    return DONE
