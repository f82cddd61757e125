"""`aeon cassette export RUN OUT.aeon` and `aeon cassette show FILE.aeon`: recordings of runs as portable files."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config import origin as origins
from aeon.config import recorded as config_recorded
from aeon.config.load import compose_settings, environment
from aeon.config.origin import Composition
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.store.cassette import Cassette, CassetteSource, read, write
from aeon.store.cassette_export import Scrubber, make_cassette, secret_names
from aeon.store.interface import AnswerSource
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
        with _readable():
            cassette = read(given.file)
        print("\n".join(_describe(given.file, cassette)))
        return DONE
    return _export(given)


@contextmanager
def _readable() -> Iterator[None]:
    """A file that was named and cannot be read is a mistake of usage."""
    try:
        yield
    except StoreFailed as error:
        raise ConfigError(error.message, hint=error.hint) from error


def _export(given: argparse.Namespace) -> int:
    out: Path = given.out
    if out.suffix != CASSETTE_SUFFIX:
        raise ConfigError(
            f"{out}: the name of a cassette ends with {CASSETTE_SUFFIX}", hint=f"Say {out}{CASSETTE_SUFFIX}"
        )
    if out.exists() and not given.force:
        raise ConfigError(f"{out} is there already", hint="Choose another name, or say --force to replace it.")
    with _readable():
        source = open_source(given.run)
    with closing(source):
        made = _record(source, given)
    write(made.cassette, out, force=given.force)
    answered_by = one_line(made.cassette.provenance.answered_by)
    print(f"{out}: {count_noun(len(made.cassette.answers), 'answer')}, answered by {answered_by}")
    for line in _remarks(made, out):
        say(line)
    return DONE


@dataclass(frozen=True, slots=True)
class _Made:
    """A cassette; the names of secrets too short to search for, and of the overrides that it must not hold."""

    cassette: Cassette
    too_short: tuple[str, ...]
    left_out: tuple[str, ...]


def _record(source: AnswerSource, given: argparse.Namespace) -> _Made:
    earlier = source.cassette if isinstance(source, CassetteSource) else None
    origin = earlier.origin if earlier else _origin(given.run)
    environ = environment()
    scrubber = Scrubber(secret_names([origin, *_configurations(given.run)], environ), environ)
    overrides = config_recorded.make_portable(origin.get("overrides") or (), scrubber.has_secret)
    before = earlier.provenance if earlier else None
    made = make_cassette(
        source.entries(),
        {**origin, "overrides": list(overrides.kept)} if origin.get("overrides") else origin,
        scrubber=scrubber,
        home=Path.home(),
        answered_by=given.answered_by or (before.answered_by if before else None),
        note=(before.note if before else "") if given.note is None else given.note,
        aeon=version("aeon-engine"),
        replaced=before.secrets_replaced if before else {},
    )
    return _Made(made, scrubber.too_short, overrides.left_out)


def _remarks(made: _Made, out: Path) -> Iterator[str]:
    """Notes and warnings for the user about a cassette that was made."""
    for name, number in made.cassette.provenance.secrets_replaced.items():
        yield f"The value of {name} stood in it {number} times and was replaced by [value of {name}]."
    for name in made.too_short:
        yield f"Warning: the value of {name} is too short to search for; make sure that it is not in {out}."
    for key in made.left_out:
        yield (
            f"Warning: the override {one_line(key)} holds a secret or an address and was left out; "
            "a replay must be given it again."
        )
    origin = made.cassette.origin
    if not origin:
        yield "Warning: how the run was started is not known; a replay must be given task and overrides."
    try:
        taken, held = config_recorded.select_overrides(origin.get("overrides") or (), None)
        compose_settings(Composition(overrides=taken))
    except ConfigError as error:
        yield f"Warning: what was recorded of the configuration cannot be composed again: {one_line(str(error))}"
        return
    folder = ["--config-dir"] if origin.get("config_dir") else []
    if names := [*folder, *held]:
        yield f"A replay must be given these, they are not taken from {out}: {one_line(', '.join(names))}."


def _origin(run: Path) -> Mapping[str, Any]:
    """The recorded start of a run, as JSON values; empty when there is none."""
    directory = run if run.is_dir() else run.parent
    if not (directory / origins.FILE).is_file():
        return {}
    return origins.read(directory, "RUN").model_dump(mode="json")


def _configurations(run: Path) -> list[Any]:
    """The configurations that lie beside a store: of a run that is finished, and of one that Hydra has begun."""
    directory = run if run.is_dir() else run.parent
    found: list[Any] = []
    with suppress(OSError, ValueError):
        found.append(json.loads((directory / "result.json").read_bytes()).get("configuration"))
    with suppress(OSError, yaml.YAMLError):
        found.append(yaml.safe_load((directory / ".hydra" / "config.yaml").read_bytes()))
    return found


def _describe(path: Path, cassette: Cassette) -> list[str]:
    of = cassette.provenance
    calls = Counter(entry.request.path.call for entry in cassette.answers)
    passes = max((entry.request.path.pass_number for entry in cassette.answers), default=0)
    rows = [
        ("answered by", one_line(of.answered_by)),
        ("models", ", ".join(map(one_line, of.models))),
        ("from, to", f"{of.first}, {of.last}"),
        ("usage", of.usage),
        ("note", one_line(of.note)),
        ("replaced", ", ".join(f"{name} ({number})" for name, number in of.secrets_replaced.items())),
        ("task", one_line(str(cassette.origin.get("task", "")), 300)),
        ("overrides", one_line(" ".join(map(str, cassette.origin.get("overrides") or ())), 300)),
        ("answers", f"{len(cassette.answers)}: {', '.join(f'{number} {call}' for call, number in calls.items())}"),
        ("passes", str(passes)),
        ("size", f"{path.stat().st_size:,} bytes"),
    ]
    more = len(cassette.answers) - _MOST_ROWS
    return [
        str(path),
        *(f"  {name:<12} {text}" for name, text in rows if text),
        "",
        *map(_line, cassette.answers[:_MOST_ROWS]),
        *([f"  and {more} more"] if more > 0 else []),
    ]


def _line(entry: Entry) -> str:
    path, answer = entry.request.path, entry.answer
    where = f"  pass {path.pass_number}  {path.phase:<12} {one_line(path.call):<20} {one_line(path.step_id or ''):<24}"
    if entry.request.kind != "model":
        return f"{where} {entry.request.kind}"
    usage = answer.get("usage") or {}
    text = answer.get("text")
    size = f"{len(text):,} characters" if isinstance(text, str) else f"{answer.get('error', 'no text')}"
    return f"{where} {size}, {usage.get('input_tokens', 0):,} + {usage.get('output_tokens', 0):,} tokens".rstrip()
