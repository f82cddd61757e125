"""The command line in Hydra's form: free text quoted, standard input read, flags and overrides
combined."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from aeon.cli.syntax.commands import COMMANDS
from aeon.cli.syntax.registered import list_registered
from aeon.cli.terminal.questions import at_terminal, confirm
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.config import project_file, recording
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.literal import CONFIG_NAME, Composition, key_of, quote_override
from aeon.config.compose.problems import list_known_paths
from aeon.config.own_runs import UNATTENDED, UntrustedRun, read_trust
from aeon.config.trusted_folders import UntrustedFolder, read_trusted_project, remember
from aeon.domain.errors import ConfigError
from aeon.files.pinned import unpin_all
from aeon.files.text import decode_utf8


def read_composition(given: argparse.Namespace, *, several: bool = False) -> Composition:
    """Compose a command line: the overrides of the project file or of the run that `resume=DIR`
    names, then its own. `several` allows --multirun, which becomes `hydra.mode`. Raises
    TaskTextError for text that is not valid UTF-8, ConfigError for a bare word or a DIR without a
    run. Exits with status 0 after Hydra has printed the output of a flag."""
    _refuse_bare_word(given, several=several)
    if given.multirun and not several:
        raise ConfigError("this command takes one configuration, not several: leave out --multirun")
    overrides = [quote_override(word, _read_text) for word in given.overrides]
    folder = given.config_dir or given.config_path
    own = Path(folder).expanduser().resolve() if folder else None
    unpin_all()  # of an earlier command of this process
    of_project: list[str] = []
    if not given.no_project:
        of_project, own = _read_project(overrides, own)
    today = Composition(
        # The typed ones come last: the last override of a key counts.
        overrides=(*of_project, *overrides),
        config_dir=own,
        config_name=str(given.config_name or CONFIG_NAME),
        of_project=tuple(of_project),
    )
    composed = compose_trusted(recording.composition, today)
    if any((given.hydra_help, given.cfg, given.info)):
        _show(given, composed)
        sys.exit(DONE)
    mode = ["hydra.mode=MULTIRUN"] if given.multirun else []
    return composed.with_overrides((*composed.overrides, *mode))


def _refuse_bare_word(given: argparse.Namespace, *, several: bool) -> None:
    """Raise ConfigError for a word that is neither an override nor a command, with the most likely
    meaning."""
    words: Sequence[str] = getattr(given, "bare", ())
    if not words:
        return
    bare = words[0]
    typed = bare if several else f"{given.name} {bare}"
    known = [name for name in COMMANDS if several or name.startswith(f"{given.name} ")]
    if several:
        known += list_registered()
    near = get_close_matches(typed, known, n=1)
    meant = f"Did you mean `aeon {near[0]}`? " if near else ""
    begun = [text.removeprefix("task=") for text in given.overrides if text.startswith("task=")]
    text = " ".join((*begun, *words))
    quoting = f'If it is text, quote all of it, with no blanks around =, as in task="{text}"'
    raise ConfigError(
        f"{bare}: is neither an override (key=value or group=option) nor a command",
        hint=f"{meant}{quoting}",
    )


_READERS = {
    "arms": "`aeon eval`",
    "batch": "`aeon batch`",
    "mcp": "`aeon mcp`",
    "serve": "`aeon serve`",
    "sweep": "a sweep (-m)",
}
"""The groups that only some commands read, each with its reader."""


def compose_trusted(
    compose: Callable[[Composition], Composition], given: Composition, answer: str = ""
) -> Composition:
    """Return the result of `compose`; for a run that somebody else made, only once the person at
    the terminal trusts them: `trust` is then `answer`, or the hash of the content shown. Raises
    UntrustedRun where nobody can be asked, or when they refuse."""
    try:
        return compose(given)
    except UntrustedRun as error:
        is_unattended = read_trust(given.overrides)[1] in UNATTENDED or not at_terminal()
        if is_unattended or not confirm(f"{error.message}\nDo you trust who made it?"):
            raise
        return compose(
            given.with_overrides((*given.overrides, f"trust='{answer or error.digest}'"))
        )


def refuse_keys(overrides: Sequence[str], *groups: str) -> None:
    """Raise ConfigError for a key of these groups, which this command does not read."""
    for key in map(key_of, overrides):
        group, _, name = key.partition(".")
        if not name or group not in groups:
            continue
        from aeon.config.settings import Settings  # slow to load

        ways = [f"{other}.{name}" for other in ("limits", "batch", "sweep") if other != group]
        meant = " or ".join(way for way in ways if way in list_known_paths(Settings))
        hint = f"Did you mean {meant}?" if meant else "Leave it out."
        raise ConfigError(f"only {_READERS[group]} reads {key}", hint=hint)


def _read_project(given: list[str], own: Path | None) -> tuple[list[str], Path | None]:
    """Return the overrides of the project file, and the folder of configuration: the person's
    `own`, or the project's."""
    found = project_file.find_project(Path.cwd())
    if found is None:
        return [], own
    if project_file.is_of_recorded_run(given):
        say(f"Project {found}: ignored, since a run brings its own overrides")
        return [], own
    project = _ask_for_project(found, given, own)
    say(project_file.describe_project(project))
    return project_file.list_overrides(project, given), own or project.config_dir


def _ask_for_project(found: Path, given: list[str], own: Path | None) -> project_file.Project:
    """Return the project, once the person at the terminal trusts the content shown, if they have
    not yet."""
    try:
        return read_trusted_project(found, given, own)
    except UntrustedFolder as error:
        content = error.content
        assert content.project is not None
        whole = [*project_file.list_overrides(content.project, given), *given]
        if read_trust(whole)[1] in UNATTENDED or not at_terminal():
            raise
        from aeon.cli.job.trust import ask_for_trust, show_content  # only for those who are asked

        say("\n".join(show_content(content)))
        say(f"\n{error.message}.")
        if not ask_for_trust(content):
            raise
        remember(content)
    # Read again: it may have changed meanwhile.
    return read_trusted_project(found, given, own)


def _show(given: argparse.Namespace, composed: Composition) -> None:
    """Print Hydra's view of a composition."""
    plain = config_compose.without_sweeps(composed.overrides)
    whole = config_compose.compose(composed.with_overrides(plain))
    if whole.added:
        from aeon.config.load import settings_from  # slow to load

        # This names the nearest key, and which keys may be added; Hydra cannot.
        settings_from(whole)
    if composed.recorded is not None and given.cfg == "job":
        put(whole.to_yaml(given.package, resolve=bool(given.resolve)))
        return
    overrides = config_compose.add_unknown_keys(composed.overrides, whole.added)
    put(hydra_private.show(given, composed.with_overrides(overrides)))


def _read_text(key: str, argument: str) -> str:
    if key == "task" and argument == "-":
        if sys.stdin is None:
            raise ConfigError(
                "task=-: standard input is closed",
                hint='Pipe the task in, or give it as task="...".',
            )
        if sys.stdin.isatty():
            say("Reading the task from this terminal: type it, then Ctrl-D on a line of its own.")
        return decode_utf8(sys.stdin.buffer.read(), "standard input")
    try:
        # The bytes as they were typed: a message can name the first bad one.
        return decode_utf8(os.fsencode(argument), key)
    except UnicodeEncodeError:
        return argument  # with a lone surrogate, which `quote_override` refuses
