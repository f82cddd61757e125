"""`aeon cassette export RUN OUT.aeon` and `aeon cassette show FILE.aeon`: recordings of runs as portable files."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config import origin as origins
from aeon.config import recorded as config_recorded
from aeon.config.load import compose_settings, environment
from aeon.config.origin import Composition
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.store.cassette import CassetteSource, read, write
from aeon.store.cassette_export import Scrubber, make_cassette, secret_names
from aeon.store.models import Entry
from aeon.store.opening import open_source
from aeon.store.settings import CASSETTE_SUFFIX

_MOST_ROWS = 200


def main(arguments: Sequence[str]) -> int:
    """Export a recording, or show one; the exit status.

    Raises ConfigError for bad usage and for what cannot be read, StoreFailed for what cannot be written.
    """
    parser = argparse.ArgumentParser(prog="aeon cassette", add_help=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="export | show")
    export = commands.add_parser("export", add_help=False)
    export.add_argument("run", type=Path, metavar="RUN")
    export.add_argument("out", type=Path, metavar="OUT.aeon")
    export.add_argument("--answered-by", metavar="TEXT")
    export.add_argument("--note", metavar="TEXT")
    export.add_argument("--force", action="store_true")
    show = commands.add_parser("show", add_help=False)
    show.add_argument("file", type=Path, metavar="FILE.aeon")
    given = parser.parse_args(list(arguments))
    if given.command == "show":
        _show(given.file)
    else:
        _export(given.run, given.out, given)
    return DONE


@contextmanager
def _readable() -> Iterator[None]:
    """A file that was named and cannot be read is a mistake of usage."""
    try:
        yield
    except StoreFailed as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _export(run: Path, out: Path, given: argparse.Namespace) -> None:
    """Write the cassette, and say on standard error what it does not hold."""
    if out.suffix != CASSETTE_SUFFIX:
        raise ConfigError(f"{out}: the name of a cassette ends with {CASSETTE_SUFFIX}")
    if out.exists() and not given.force:
        raise ConfigError(f"{out} is there already", hint="Choose another name, or say --force to replace it.")
    with _readable(), closing(open_source(run)) as source:
        earlier = source.cassette if isinstance(source, CassetteSource) else None
        entries = list(source.entries())
    origin, configurations = (earlier.origin, []) if earlier else _read_beside(run)
    before = earlier.provenance if earlier else None
    environ = environment()
    scrubber = Scrubber(secret_names([origin, *configurations], environ), environ)
    overrides = config_recorded.make_portable(origin.get("overrides") or (), scrubber.has_secret)
    cassette = make_cassette(
        entries,
        {**origin, "overrides": list(overrides.kept)} if origin.get("overrides") else origin,
        scrubber=scrubber,
        home=Path.home(),
        answered_by=given.answered_by or (before.answered_by if before else None),
        note=(before.note if before else "") if given.note is None else given.note,
        aeon=version("aeon-engine"),
        replaced=before.secrets_replaced if before else {},
    )
    write(cassette, out, force=given.force)
    answered_by = one_line(cassette.provenance.answered_by)
    put(f"{out}: {count_noun(len(cassette.answers), 'answer')}, answered by {answered_by}")
    for name, number in cassette.provenance.secrets_replaced.items():
        say(f"The value of {name} stood in it {number} times and was replaced by [value of {name}].")
    for name in scrubber.too_short:
        say(f"Warning: the value of {name} is too short to search for; make sure that it is not in {out}.")
    for key in overrides.left_out:
        say(
            f"Warning: the override {one_line(key)} holds a secret or an address and was left out; "
            "a replay must be given it again."
        )
    if needed := _what_a_replay_needs(cassette.origin, out):
        say(needed)


def _read_beside(run: Path) -> tuple[Mapping[str, Any], list[Any]]:
    """What lies beside a store: the recorded start of the run as JSON values, empty when there is none, and the
    configurations of one that is finished and of one that Hydra has begun."""
    directory, configurations = run if run.is_dir() else run.parent, list[Any]()
    with suppress(OSError, ValueError):
        configurations.append(json.loads((directory / "result.json").read_bytes()).get("configuration"))
    with suppress(OSError, yaml.YAMLError):
        configurations.append(yaml.safe_load((directory / ".hydra" / "config.yaml").read_bytes()))
    if not (directory / origins.FILE).is_file():
        return {}, configurations
    return origins.read(directory, "RUN").model_dump(mode="json"), configurations


def _what_a_replay_needs(origin: Mapping[str, Any], out: Path) -> str:
    if not origin:
        return "Warning: how the run was started is not known; a replay must be given task and overrides."
    try:
        taken, held = config_recorded.select_overrides(origin.get("overrides") or (), None)
        compose_settings(Composition(overrides=taken))
    except ConfigError as error:
        return f"Warning: what was recorded of the configuration cannot be composed again: {one_line(str(error))}"
    names = [*(["--config-dir"] if origin.get("config_dir") else []), *held]
    return (
        f"A replay must be given these, they are not taken from {out}: {one_line(', '.join(names))}." if names else ""
    )


def _show(path: Path) -> None:
    """Print the provenance of a cassette, and a line for each answer."""
    with _readable():
        cassette = read(path)
    of, answers = cassette.provenance, cassette.answers
    calls = Counter(entry.request.path.call for entry in answers)
    facts = {
        "answered by": of.answered_by,
        "models": ", ".join(of.models),
        "from, to": f"{of.first}, {of.last}",
        "usage": of.usage,
        "note": of.note,
        "replaced": ", ".join(f"{name} ({number})" for name, number in of.secrets_replaced.items()),
        "task": str(cassette.origin.get("task", "")),
        "overrides": " ".join(map(str, cassette.origin.get("overrides") or ())),
        "answers": f"{len(answers)}: {', '.join(f'{number} {call}' for call, number in calls.items())}",
        "passes": str(max((entry.request.path.pass_number for entry in answers), default=0)),
        "size": f"{path.stat().st_size:,} bytes",
    }
    lines = [str(path), *(f"  {name:<12} {one_line(text, 300)}" for name, text in facts.items() if text), ""]
    lines += map(_describe_answer, answers[:_MOST_ROWS])
    lines += [f"  and {len(answers) - _MOST_ROWS} more"] if len(answers) > _MOST_ROWS else []
    put("\n".join(lines))


def _describe_answer(entry: Entry) -> str:
    path, answer = entry.request.path, entry.answer
    where = f"  pass {path.pass_number}  {path.phase:<12} {one_line(path.call):<20} {one_line(path.step_id or ''):<24}"
    if entry.request.kind != "model":
        return f"{where} {entry.request.kind}"
    usage, text = answer.get("usage") or {}, answer.get("text")
    size = f"{len(text):,} characters" if isinstance(text, str) else f"{answer.get('error', 'no text')}"
    return f"{where} {size}, {usage.get('input_tokens', 0):,} + {usage.get('output_tokens', 0):,} tokens"
