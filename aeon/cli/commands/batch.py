"""`aeon batch dataset=FILE out=FILE`: each row of a dataset is a task. `merge` and `record` read what it wrote."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from shutil import copyfileobj

from aeon.batch.batch import Batch, identify
from aeon.batch.dataset import open_dataset
from aeon.batch.half_price import remove_journal, telling, with_journal
from aeon.batch.records import Records, Running, unpack_record
from aeon.batch.results import AGAIN, Results, merge
from aeon.batch.run import Backend, RowRunner, Threads, capped_endpoints, open_aeon
from aeon.cli.job.arguments import parse
from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE, FAILED, INTERRUPTED, NOT_CONVERGED, handle_interrupts
from aeon.cli.terminal.streams import put, say, stderr, warn
from aeon.config.load import compose_settings
from aeon.config.settings import BatchSettings
from aeon.domain.errors import ConfigError
from aeon.files.text import encode_json
from aeon.kernel.control import RunControl
from aeon.observability.artefacts import replace_file
from aeon.report.words import count_noun

_FIRST_ROWS = 8
_EVERY_SECONDS = {True: 0.2, False: 10.0}


def batch(arguments: Sequence[str]) -> int:
    """Run a dataset. 0 when every row converged or is complete, 1 when one failed or cannot be run, 3 when one did
    not converge, 130 when interrupted. Raises ConfigError before anything is paid."""
    if arguments[:1] == ["merge"]:
        return _merge(arguments[1:])
    if arguments[:1] == ["record"]:
        return _unpack(arguments[1:])
    words = {name: [a.partition("=")[2] for a in arguments if a.startswith(f"{name}=")] for name in _OWN}
    composition = parse([a for a in arguments if a.partition("=")[0] not in _OWN])
    settings = compose_settings(composition)
    if settings.resume is not None or settings.store.mode == "replay":
        raise ConfigError("a batch goes on by itself, from its out file: leave resume and store.mode=replay out")
    out = None if _one(words, "out") == "-" else Path(_one(words, "out")).expanduser()
    shard = _shard((words["shard"] or ["1/1"])[0])
    path = _dataset_file(_one(words, "dataset"), out)
    dataset = open_dataset(path, settings.batch.columns, settings.task or "")
    place = out or Path(f"{path.name}.batch")
    composition = with_journal(composition, settings, place)
    control = RunControl()
    endpoints = capped_endpoints(settings.batch, control)
    with closing(endpoints), open_aeon(composition, open_endpoints=endpoints.open) as aeon:
        warn(*aeon.warnings)
        configuration = identify(aeon, dataset)
        results = Results(out, configuration, lambda line: put(line.decode().rstrip("\n")))
        folder = Running(place.with_name(f"{place.name}.running"))
        runner = RowRunner(aeon, composition, dataset.count, configuration, folder, endpoints.open)
        backend = _backend(runner, settings.batch)
        running = Batch(backend, settings.batch, dataset, results, Records(place), shard, control)
        with closing(results), closing(running):
            status = _run(running, settings.batch)
    if status in (DONE, NOT_CONVERGED):
        remove_journal(place)
    return status


def _backend(runner: RowRunner, settings: BatchSettings) -> Backend:
    if settings.backend == "ray":
        from aeon.batch.ray.cluster import Cluster

        return Cluster(runner, settings)
    if (folder := runner.running.folder).with_suffix(".answers").exists():
        from aeon.batch.ray.answers import Answers  # what a cluster has left is put where this goes on from

        answers = Answers(folder)
        answers.open()
        answers.close()
    return Threads(runner, settings.parallel)


_OWN = ("dataset", "out", "shard")


def _one(words: dict[str, list[str]], name: str) -> str:
    if len(words[name]) != 1 or not words[name][0]:
        raise ConfigError(f"aeon batch takes one {name}=", hint="aeon batch dataset=tasks.jsonl out=results.jsonl")
    return words[name][0]


def _shard(text: str) -> tuple[int, int]:
    first, _, every = text.partition("/")
    if not (first.isdecimal() and every.isdecimal() and 1 <= int(first) <= int(every)):
        raise ConfigError(f"shard={text}: must be i/n with i from 1 to n, as in shard=1/4")
    return int(first), int(every)


def _dataset_file(text: str, out: Path | None) -> Path:
    """The file of a dataset; standard input is copied beside the results first, since it is read twice."""
    if text != "-":
        return Path(text).expanduser()
    copy = Path(f"{out}.dataset.jsonl" if out else "batch.dataset.jsonl")
    try:
        with copy.open("wb") as file:
            copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise ConfigError(f"{copy}: cannot be written: {error.strerror or error}") from None
    return copy


def _run(running: Batch, settings: BatchSettings) -> int:
    results, total = running.results, running.count()
    if results.done:
        say(f"{count_noun(len(results.done), 'row')} done before; {total} to go.")
    shown = _Progress(results, total)
    lines = running.lines()

    def tell(text: str) -> None:
        shown.clear()
        say(text)

    stopping = handle_interrupts(
        running.control, lambda: "Stopping: rows under way end first.", lambda: "Ended at once."
    )
    with telling(tell), stopping:
        for number, line in enumerate(lines, start=1):
            if line["ended"] == "invalid":
                shown.clear()
                say(f"row {line['row']}, {line['error']['message']}")
            shown.update(number)
            if number == min(_FIRST_ROWS, total) and not _is_affordable(results, settings, number, total, shown.clear):
                running.control.request_stop()
    shown.clear()
    say("\n".join(_summary(results, running.control.stop_requested)))
    if running.control.stop_requested:
        return INTERRUPTED
    if any(results.ends[end] for end in AGAIN):
        return FAILED
    return DONE if not set(results.ends) - {"converged", "completed"} else NOT_CONVERGED


def _is_affordable(
    results: Results, settings: BatchSettings, ended: int, total: int, clear: Callable[[], None]
) -> bool:
    """Whether the batch may cost what its first rows say, or a person says that it may."""
    most, cost = settings.confirm_above_cost, results.cost
    if most is None or (cost is not None and cost / ended * total <= most):
        return True
    clear()
    whole = "an unknown sum" if cost is None else f"about {cost / ended * total:.2f}"
    if not at_terminal():
        say(f"The first {ended} rows say that the batch will cost {whole}: more than batch.confirm_above_cost={most}.")
        return False
    say(f"The batch will cost {whole}. Go on? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _summary(results: Results, is_stopped: bool) -> list[str]:
    ends = ", ".join(f"{end} {count}" for end, count in sorted(results.ends.items()))
    cost = "unknown" if results.cost is None else f"{results.cost:.4f}"
    lines = [f"{count_noun(results.ends.total(), 'row')}: {ends or 'none'}. Cost {cost}."]
    if is_stopped and results.path is not None:
        lines.append("The same command goes on where this one stopped.")
    return lines


class _Progress:
    """A line that tells how far a batch is: on a terminal drawn over itself, else a new one now and then."""

    def __init__(self, results: Results, total: int) -> None:
        self._results, self._total, self._began = results, total, time.monotonic()
        self._live, self._shown = stderr().isatty(), 0.0

    def update(self, ended: int) -> None:
        """Show that so many rows have ended since the start."""
        now = time.monotonic()
        if now - self._shown < _EVERY_SECONDS[self._live] and ended < self._total:
            return
        self._shown, seconds = now, max(now - self._began, 1e-9)
        left = timedelta(seconds=round(seconds / ended * (self._total - ended)))
        failed = sum(self._results.ends[end] for end in AGAIN)
        cost = "" if self._results.cost is None else f", cost {self._results.cost:.4f}"
        text = f"{ended}/{self._total} rows, {failed} failed, {ended / seconds * 60:.0f} a minute{cost}, {left} left"
        if self._live:
            stderr().write(f"\r\x1b[K{text}")
            stderr().flush()
        else:
            say(text)

    def clear(self) -> None:
        """Make room for other lines."""
        if self._live:
            stderr().write("\r\x1b[K")
            stderr().flush()


def _merge(arguments: Sequence[str]) -> int:
    outs = [text.removeprefix("out=") for text in arguments if text.startswith("out=")]
    paths = [Path(text).expanduser() for text in arguments if not text.startswith("out=")]
    if len(outs) != 1 or not paths:
        hint = "aeon batch merge out=all.jsonl part-*.jsonl"
        raise ConfigError("aeon batch merge takes out= and the shards", hint=hint)
    lines = merge(paths)
    replace_file(Path(outs[0]).expanduser(), b"".join(encode_json(line) + b"\n" for line in lines))
    say(f"{count_noun(len(lines), 'row')} of {count_noun(len(paths), 'file')} in {outs[0]}.")
    return DONE


def _unpack(arguments: Sequence[str]) -> int:
    if len(arguments) != 3:
        raise ConfigError("aeon batch record takes a results file, an id and a new folder")
    unpack_record(Path(arguments[0]).expanduser(), arguments[1], Path(arguments[2]).expanduser())
    say(f"aeon inspect {arguments[2]} shows it.")
    return DONE
