"""`aeon trust [DIR]`: shows every file of a folder that would take effect, asks, and remembers the
answer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from aeon.cli.job.trust import ask_for_trust, show_content
from aeon.cli.terminal.questions import at_terminal
from aeon.cli.terminal.status import DONE, FAILED
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.width import fit_rows
from aeon.config.folder_content import read_content
from aeon.config.trusted_folders import (
    VARIABLE,
    forget,
    is_trusted,
    list_trusted,
    read_given_hashes,
    remember,
)
from aeon.domain.errors import ConfigError
from aeon.report.words import one_line


def trust(given: Namespace) -> int:
    """Show a folder and remember that the person trusts its present content. 1 when they do not.
    Raises ConfigError, with the hash, where nobody can be asked, and ArtefactError when it cannot
    be remembered."""
    folder = given.dir.expanduser().resolve()
    if given.list:
        put("\n".join(_list()) or "No folder is trusted. `aeon trust DIR` shows one and asks.")
        return DONE
    if given.forget:
        forget(folder)
        put(f"{folder}: forgotten; nothing of it takes effect.")
        return DONE
    content = read_content(folder)
    put("\n".join(show_content(content)))
    # A hash in the environment is the answer that is remembered below.
    if content.digest not in read_given_hashes():
        if is_trusted(content):
            put("\nYou trust its present content.")
            return DONE
        if not at_terminal():
            raise ConfigError(
                f"{content.named}: there is no terminal to ask whether you trust it",
                hint=f"{VARIABLE}={content.digest} in the environment "
                "trusts exactly the content shown here.",
            )
        if not ask_for_trust(content):
            say("Not trusted: nothing of it takes effect.")
            return FAILED
    remember(content)
    put("\nTrusted with this content; when anything in it changes, you are asked again.")
    return DONE


def _list() -> Iterator[str]:
    for path, digest in sorted(list_trusted().items()):
        try:
            state = "as it is" if read_content(Path(path)).digest == digest else "changed since"
        except ConfigError:
            state = "gone, or cannot be read"
        yield fit_rows(f"{one_line(path)}  {digest[:12]}  {state}", 4)
