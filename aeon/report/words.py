"""Text for people, on a terminal or a page: on one line, commands to type, numbers, durations,
signs."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aeon.domain.plan import PlanStep

STATES = {
    "complete": "✓",
    "running": "●",
    "blocked": "■",
    "failed": "✗",
    "invalid": "✗",
    "pending": "·",
    "replaced": "↷",
    "skipped": "⊘",
}
"""The signs of a terminal, by state of a step."""
CALLS = {
    "task_profile": "profile",
    "semantic_validation": "review",
    "convergence": "judge",
    "direct": "direct answer",
    "tool_arguments": "tool arguments",
}
"""The words for calls, where they are not their names."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The sign of what is going on, turn by turn."""
_ASCII = str.maketrans(f"◆⊘✓●■✗·↷━─┃→←…│├┤╰╯┼┴↻×{SPINNER}", "*0+o#x.-#-|><~|++`'+^@x|/-\\|/-\\|/")
_MOST_NAMES = 8
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MOST_LEVELS = 18
"""Levels of an answer in Markdown, two for a list in a list; what is deeper the parser leaves
out."""
MOST_RENDERED = 200_000
"""Characters of an answer that is rendered as Markdown; a longer one is shown as it is written."""


def escape_controls(text: str, *, json: bool = False) -> str:
    """Escape characters that could control a terminal, or show a text in another order than it has:
    C0 and C1 controls except tabs and line breaks, and those for the direction of writing. With
    `json` as JSON has them."""

    def escape(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\u{code:04x}" if json or code > 0xFF else f"\\x{code:02x}"

    return _STEERING.sub(escape, text)


def encode_for_xml(text: str) -> str:
    """Return a text without the characters that XML cannot have."""
    shown = escape_controls(text)
    return shown.encode("utf-8", "backslashreplace").decode().replace("\uffff", "\\uffff")


def one_line(text: str, limit: int | None = None) -> str:
    """Return text on one line without control characters, so that no text can control a terminal;
    at most `limit` characters."""
    line = text if text.isprintable() else "".join(ch if ch.isprintable() else " " for ch in text)
    line = " ".join(line.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def program() -> str:
    """Return how to type this program here: `python -m aeon`, or with the path of this Python where
    another, or none, is on the PATH."""
    own = Path(sys.executable)
    python = shutil.which("python")
    if python and Path(python).absolute().parent == own.parent:
        return "python -m aeon"
    if is_script_here():
        return "aeon"
    return f"{shlex.quote(str(relative_to_here(own)))} -m aeon"


def as_typed_here(text: str) -> str:
    """Replace each command between backticks, `` `aeon docs` ``, by the form that can be typed
    here."""
    if "`aeon " not in text or is_script_here():
        return text
    return text.replace("`aeon ", f"`{program()} ")


def is_script_here() -> bool:
    """Check whether `aeon`, typed here, is this program."""
    script = shutil.which("aeon")
    return script is not None and Path(script).resolve().parent == Path(sys.executable).parent


def shorten(text: str, limit: int = 2_000) -> str:
    """Return at most `limit` characters of a text, with a mark where it was cut."""
    return text if len(text) <= limit else f"{text[:limit].rstrip()} …"


def command_of(arguments: Sequence[str]) -> str:
    """Return the command line of a run with these arguments, on one line, as it can be typed
    here."""
    return " ".join((program(), *map(quote_override, arguments)))


def answer_command(directory: Path) -> str:
    """Return the command that answers the questions of the run in a directory."""
    return command_of(("answer", str(relative_to_here(directory))))


def quote_override(argument: str) -> str:
    """Quote an argument's value for a shell; unprintable characters are escaped for bash and
    zsh."""
    key, equals, value = argument.partition("=")
    if not equals or shlex.quote(key) != key:
        key = ""
        equals = ""
        value = argument
    if not value:
        return f"{key}{equals}"
    if value.isprintable():
        return f"{key}{equals}{shlex.quote(value)}"
    escaped = json.dumps(value, ensure_ascii=False)[1:-1].replace("'", r"\'")
    return f"{key}{equals}$'{escaped}'"


def relative_to_here(path: Path) -> Path:
    """Return a path as it can be typed here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def round_down(score: float) -> float:
    """Round down to two decimals, so that a score never seems to reach a threshold."""
    return math.floor(score * 100 + 1e-9) / 100


def format_threshold(threshold: float) -> str:
    """Format a threshold with two decimals, or with all it has: 0.999 is not 1.00."""
    return max(f"{threshold:.2f}", f"{threshold:g}", key=len)


def count_noun(number: int, noun: str) -> str:
    """`1 repair`, `2 repairs`."""
    plural = (
        noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    )
    return f"{number:,} {noun if number == 1 else plural}"


def format_clock(elapsed: timedelta) -> str:
    """Format a duration as `00:14`, `1:02:03`."""
    minutes, seconds = divmod(max(0, int(elapsed.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def format_seconds(seconds: float) -> str:
    """Format a short duration with about three figures: `0.4s`, `12s`, `1m04s`, `2h05m`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    minutes, whole = divmod(round(seconds), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest:02}m" if hours else f"{minutes}m{whole:02}s" if minutes else f"{whole}s"


def format_took(seconds: float) -> str:
    """Format a duration for a page: `3.2 ms`, `32 ms`, `1.4 s`, `1,204 s`."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.{int(0 < seconds < 0.00995)}f} ms"
    return f"{seconds:,.{int(seconds < 99.95)}f} s"


def list_names(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(one_line(name) for name in names[:most]) + more


def label_worker(step: PlanStep) -> str:
    """`[read_file] ` for a step with a tool, `[person] ` for one that a person does."""
    worker = "person" if step.is_for_person else step.tool
    return f"[{one_line(worker)}] " if worker else ""


def is_utf(encoding: str) -> bool:
    """Check whether an encoding can represent every character."""
    return encoding.lower().replace("-", "").startswith("utf")


def to_ascii(text: str) -> str:
    """Replace each sign by an ASCII character, so that the width stays the same; other characters
    stay."""
    return text.translate(_ASCII)
