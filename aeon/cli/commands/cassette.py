"""`aeon cassette export RUN OUT.aeon` and `aeon cassette show FILE.aeon`: recordings of runs as portable files."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.config import origin as origins
from aeon.config import recompose
from aeon.config.environment import environment
from aeon.config.origin import is_own_run
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import OwnObject
from aeon.files.fast_yaml import read_yaml
from aeon.files.text import load_json
from aeon.report.words import count_noun, one_line
from aeon.store.cassette import CassetteSource, read, write
from aeon.store.cassette_export import Scrubber, make_cassette, secret_names
from aeon.store.interface import AnswerSource
from aeon.store.opening import is_packaged, open_source
from aeon.store.settings import CASSETTE_SUFFIX, SQLITE, read_store_settings


def cassette(arguments: Sequence[str]) -> int:
    """Export a recording, or show one. Raises ConfigError for bad usage and for what cannot be read, StoreFailed for
    what cannot be written."""
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
    try:
        if given.command == "show":
            put("\n".join(_describe(given.file)))
            return DONE
        configurations = (each for each in _read_beside(given.run)[1] if isinstance(each, Mapping))
        kinds = (read_store_settings(each).own_backend for each in configurations)
        backend = next((kind for kind in kinds if not is_packaged(kind)), SQLITE)
        _require_known_backend(given.run, backend)
        source = open_source(given.run, backend)
    except StoreFailed as error:
        raise ConfigError(error.message, hint=error.hint) from error
    _export(source, given.run, given.out, given)
    return DONE


def _require_known_backend(run: Path, backend: OwnObject) -> None:
    """Raise ConfigError for a store whose kind would be imported because a stranger's folder names it."""
    if not is_packaged(backend) and not is_own_run(run if run.is_dir() else run.parent):
        raise ConfigError(
            f"{run}: its store is of the kind {one_line(backend.factory)}, which would be imported, "
            "and it is not known as a run of yours",
            hint="Export it where it was made.",
        )


def _export(source: AnswerSource, run: Path, out: Path, given: argparse.Namespace) -> None:
    if out.suffix != CASSETTE_SUFFIX:
        raise ConfigError(f"{out}: the name of a cassette ends with {CASSETTE_SUFFIX}")
    if out.exists() and not given.force:
        raise ConfigError(
            f"{out} is there already", hint="Choose another name, or say --force to replace it."
        )
    with closing(source):
        earlier = source.cassette if isinstance(source, CassetteSource) else None
        entries = list(source.entries())
    before = earlier.provenance if earlier else None
    in_force = environment()
    # What a `.env` has that is not in force may be a secret all the same.
    environ = {**in_force.withheld, **in_force}
    origin, configurations = (earlier.origin, []) if earlier else _read_beside(run)
    scrubber = Scrubber(secret_names([origin, *configurations], environ), environ)
    overrides, left_out = recompose.make_portable(
        origin.get("overrides") or (), scrubber.has_secret
    )
    made = make_cassette(
        entries,
        {**origin, "overrides": overrides} if origin.get("overrides") else origin,
        scrubber=scrubber,
        home=Path.home(),
        answered_by=given.answered_by or (before.answered_by if before else None),
        note=(before.note if before else "") if given.note is None else given.note,
        aeon=version("aeon-engine"),
        replaced=before.secrets_replaced if before else {},
    )
    write(made, out)
    put(
        f"{out}: {count_noun(len(made.answers), 'answer')}, answered by {one_line(made.provenance.answered_by)}"
    )
    for name, number in made.provenance.secrets_replaced.items():
        say(
            f"The value of {name} stood in it {number} times and was replaced by [value of {name}]."
        )
    for name in scrubber.too_short:
        say(
            f"Warning: the value of {name} is too short to search for; make sure that it is not in {out}."
        )
    held = recompose.select_overrides(made.origin.get("overrides") or (), None)[1]
    needed = [*(["--config-dir"] if made.origin.get("config_dir") else []), *held, *left_out]
    needed += [] if made.origin else ["task", "overrides"]
    if needed:
        say(
            f"A replay must be given these, they are not in {out} or not taken from it: {one_line(', '.join(needed))}."
        )


def _read_beside(run: Path) -> tuple[Mapping[str, Any], list[Any]]:
    directory, configurations = run if run.is_dir() else run.parent, list[Any]()
    with suppress(OSError, ValueError):
        configurations.append(
            load_json((directory / "result.json").read_bytes()).get("configuration")
        )
    with suppress(OSError, ValueError):
        configurations.append(read_yaml(directory / ".hydra" / "config.yaml"))
    has_origin = (directory / origins.FILE).is_file()
    return origins.read(directory, "RUN").model_dump(
        mode="json"
    ) if has_origin else {}, configurations


def _describe(path: Path) -> Iterator[str]:
    recorded = read(path)
    of, answers = recorded.provenance, recorded.answers
    calls = Counter(entry.request.path.call for entry in answers)
    facts = {
        "answered by": of.answered_by,
        "models": ", ".join(of.models),
        "from, to": f"{of.first}, {of.last}",
        "usage": of.usage,
        "note": of.note,
        "replaced": ", ".join(f"{name} ({number})" for name, number in of.secrets_replaced.items()),
        "task": str(recorded.origin.get("task", "")),
        "overrides": " ".join(map(str, recorded.origin.get("overrides") or ())),
        "answers": f"{len(answers)}: {', '.join(f'{number} {call}' for call, number in calls.items())}",
        "passes": str(max((entry.request.path.pass_number for entry in answers), default=0)),
    }
    yield str(path)
    yield from (f"  {name:<12} {one_line(text, 300)}" for name, text in facts.items() if text)
    yield ""
    for entry in answers:
        at, answer = entry.request.path, entry.answer
        usage, text = answer.get("usage") or {}, answer.get("text")
        size = (
            f"{len(text):,} characters"
            if isinstance(text, str)
            else f"{answer.get('error', 'no text')}"
        )
        size += f", {usage.get('input_tokens', 0):,} + {usage.get('output_tokens', 0):,} tokens"
        what = size if entry.request.kind == "model" else entry.request.kind
        yield f"  pass {at.pass_number}  {at.phase:<12} {one_line(at.call):<20} {one_line(at.step_id or ''):<24} {what}"
