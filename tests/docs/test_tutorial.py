"""The tutorial, and the page of causes, held to the program: each command is run, each shown line is printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon import report
from tests.cli.conftest import RunAeon, aeon

__all__ = ["aeon"]

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(
    r"(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
SAVED = re.compile(r"[Ss]ave this as `([\w./-]+)`:$")


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, with the lines shown below it."""
    for part in re.split(r"^\$ ", text.replace("\\\n    ", ""), flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, shown


def has_lines(printed: list[str], shown: list[str]) -> bool:
    """Whether the lines are printed in that order; `...` stands for whatever else there is, in a line or between."""
    at, skips = 0, False
    for line in shown:
        if line == "...":
            skips = True
            continue
        pattern = re.escape(line).replace(r"\.\.\.", ".*")
        found = next((n for n in range(at, len(printed)) if re.fullmatch(pattern, printed[n])), -1)
        if found < at or (found > at and not skips):
            return False
        at, skips = found + 1, False
    return True


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("aeon.cli.commands.trust.at_terminal", lambda: True)
    monkeypatch.setattr("aeon.cli.job.trust.confirm", lambda _: True)
    ran = 0
    for block in BLOCK.finditer((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if saved := SAVED.search(block["before"]):
            path = tmp_path / saved[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
        for command, shown in commands(block["text"]) if block["language"] == "console" else ():
            words = shlex.split(command.removeprefix("python -m "))
            assert words[0] == "aeon"
            ended = aeon(*words[1:])
            assert ended.status == (
                3 if any("Finished without" in line for line in shown) else 0
            ), (command, ended)
            assert has_lines([*ended.out.splitlines(), *ended.err.splitlines()], shown), (
                command,
                ended.out,
                ended.err,
            )
            ran += 1
    assert ran >= 14


def test_what_the_page_of_causes_quotes_is_what_the_page_of_a_run_says() -> None:
    quoted = re.findall(
        r'\*You see\* "([^"]+)"', text := (DOCS / "not-converged.md").read_text(encoding="utf-8")
    )
    files = [
        path for end in ("py", "j2") for path in Path(report.__file__).parent.rglob(f"*.{end}")
    ]
    said = "".join(path.read_text(encoding="utf-8") for path in files)
    assert len(quoted) >= 10
    assert [words for words in quoted if words not in said] == []
    assert text.count("*You see*") == text.count("*Change*") == text.count("\n## ")
