"""`aeon compare RUN RUN ...`: runs beside each other, as a table, a page and CSV."""

from __future__ import annotations

import shutil
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say, stdout
from aeon.domain.errors import ConfigError
from aeon.report.compare import sentences
from aeon.report.compare.divergence import Divergence, Line, find_divergence
from aeon.report.compare.effects import effects
from aeon.report.compare.forms import csv_text, format_change, format_figure, json_text
from aeon.report.compare.rows import FIGURES, SCORES, Comparison, Run, compare_runs, show
from aeon.report.words import count_noun, escape_controls, list_names, one_line, relative_to_here

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_SHOWN = ("passes", "tokens", "cost", "seconds")
_LONGEST, _ANY_WIDTH = 200, 10_000
_MOST_LINES = 20


def compare(arguments: Sequence[str]) -> int:
    """Print the runs beside each other and write `compare.html` and `compare.csv`; with `output=json` or `output=csv`
    print that and write nothing. Raises ConfigError for what holds no two runs, ArtefactError for what cannot be
    written."""
    options = {
        key: value
        for key, _, value in (text.partition("=") for text in arguments)
        if key in ("output", "out")
    }
    paths = [
        Path(text)
        for text in arguments
        if text.partition("=")[0] not in options and text != "--open"
    ]
    _check(paths, options)
    comparison = compare_runs(paths)
    if len(comparison.runs) < 2:
        raise ConfigError(
            f"{' '.join(map(str, paths))}: {count_noun(len(comparison.runs), 'run')} found, two are needed",
            hint="`aeon compare RUN RUN`, or a folder with runs under it, such as a multirun's",
        )
    divergence = find_divergence(comparison)
    if options.get("output", "table") != "table":
        put(
            csv_text(comparison)
            if options["output"] == "csv"
            else json_text(comparison, divergence)
        )
        return DONE
    put(_table_text(comparison, divergence))
    from aeon.report.compare.page import write_comparison  # slow to load

    folder = Path(options.get("out", paths[0] if len(paths) == 1 else ""))
    page = write_comparison(comparison, folder, divergence)
    say(str(relative_to_here(page)))
    if "--open" in arguments and not webbrowser.open(page.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {page.absolute().as_uri()}")
    return DONE


def _check(paths: Sequence[Path], options: dict[str, str]) -> None:
    if not paths:
        raise ConfigError("which runs?", hint="`aeon compare RUN RUN`, or `aeon compare MULTIRUN`")
    if options.get("output", "table") not in ("table", "json", "csv"):
        raise ConfigError(f"output={options['output']}: there are table, json, csv")
    for path in paths:
        if not path.is_dir():
            hint = (
                "There are the options out=DIR, output=json|csv and --open."
                if str(path).startswith("-")
                else ""
            )
            raise ConfigError(
                f"{path}: there is no such folder",
                hint=hint or "Runs are under outputs/ and multirun/.",
            )


def _table_text(comparison: Comparison, divergence: Divergence | None) -> str:
    """The table for standard output: as wide as the terminal, or of its natural width in a pipe."""
    from rich.console import Console  # slow to load

    is_terminal = _is_terminal()
    width = shutil.get_terminal_size().columns if is_terminal else _ANY_WIDTH
    console = Console(width=width, force_terminal=is_terminal, highlight=False)
    with console.capture() as captured:
        for part in _pair(comparison, divergence) if divergence else _several(comparison, console):
            console.print(part, soft_wrap=not is_terminal)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _is_terminal() -> bool:
    stream = stdout()
    return stream is not None and stream.isatty()


def _several(comparison: Comparison, console: Console) -> Iterator[RenderableType]:
    """A line for each run; where that is too wide, its name and parameters stand above its figures."""
    from rich.text import Text

    runs, table = comparison.runs, _rows(comparison.runs, comparison.parameters)
    if (
        console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
        <= console.width
    ):
        yield table
    else:
        with console.capture() as captured:
            console.print(_rows(runs, None))
        head, *lines = captured.get().splitlines()
        yield Text.from_ansi(head)
        for run, line in zip(runs, lines, strict=True):
            swept = (f"{key}={_value(run, key)}" for key in comparison.parameters)
            yield Text("  ".join((one_line(run.name), *swept)), style="bold")
            yield Text.from_ansi(line)
    yield _text("")
    yield _text(f"{sentences.describe_ends(runs)}. Scores: {', '.join(SCORES)}.")
    notes = (
        sentences.describe_best(runs),
        sentences.describe_fallbacks(runs),
        sentences.describe_saved(runs),
        sentences.describe_parameters(comparison),
    )
    yield from (_text(note) for note in notes if note)
    yield from _causes(runs)
    yield from _effects(comparison)


def _rows(runs: Sequence[Run], parameters: Sequence[str] | None) -> Table:
    """The runs with these parameters, or without their names and parameters."""
    named = parameters is not None
    table = _new_table(
        *(("run", *parameters) if parameters is not None else ()), "ended by", "scores"
    )
    for name in _SHOWN:
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        first = (
            [one_line(run.name), *(_value(run, key) for key in parameters or ())] if named else []
        )
        scores = " ".join(format_figure(name, run.figures[name]) for name in SCORES)
        cells = [
            *first,
            run.ended.replace("_", " "),
            scores,
            *(format_figure(name, run.figures[name]) for name in _SHOWN),
        ]
        table.add_row(*map(_text, cells), style=None if run.is_good else "yellow")
    return table


def _new_table(*heads: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, head in enumerate(heads):
        table.add_column(_text(head), overflow="fold", no_wrap=place == 0)
    return table


def _text(text: str) -> Text:
    """Text that is no markup, and steers nothing."""
    from rich.text import Text

    return Text(escape_controls(text))


def _value(run: Run, key: str) -> str:
    return one_line(show(run.parameters.get(key)), _LONGEST) or "-"


def _causes(runs: Sequence[Run]) -> Iterator[RenderableType]:
    """Why runs did not come to a good end, equal causes together."""
    causes = {run.name: _cause(run) for run in runs}
    for cause in dict.fromkeys(filter(None, causes.values())):
        names = [name for name, one in causes.items() if one == cause]
        yield _text(f"{list_names(names)}: {cause}")


def _cause(run: Run) -> str:
    return one_line(" ".join(filter(None, (run.cause or run.error, run.hint))), 2 * _LONGEST)


def _effects(comparison: Comparison) -> Iterator[RenderableType]:
    """What each parameter changes, the largest effect first."""
    if len(comparison.runs) < 3:
        return
    for effect in effects(comparison):
        if said := sentences.describe_effect(effect):
            yield _text(f"{', '.join(effect.keys)}: {said[0].lower()}{said[1:]}")


def _pair(comparison: Comparison, divergence: Divergence) -> Iterator[RenderableType]:
    """Two runs: a sentence, a line for each parameter and figure, then where they diverge."""
    first, second = comparison.runs
    yield _text(f"{sentences.describe_two(comparison)}\n")
    table = _new_table("", one_line(first.name), one_line(second.name), "change")
    for key in comparison.parameters:
        table.add_row(*map(_text, (key, _value(first, key), _value(second, key))))
    table.add_row("ended by", *(_text(run.ended.replace("_", " ")) for run in comparison.runs))
    for name in FIGURES:
        cells = (format_figure(name, run.figures[name]) for run in comparison.runs)
        table.add_row(name, *cells, format_change(name, first, second))
    yield table
    yield from _causes(comparison.runs)
    yield _text(f"\n{sentences.describe_divergence(divergence)}")
    if divergence.fields:
        fields = _new_table("", one_line(first.name), one_line(second.name))
        for row in (("event", *divergence.places), *divergence.fields):
            fields.add_row(*(_text(one_line(cell, _LONGEST)) for cell in row))
        yield fields
    for title, lines in divergence.differences.items():
        yield _text(f"\n{title}{'' if lines else ': the same'}")
        yield from _difference(lines)


def _difference(lines: Sequence[Line]) -> Iterator[RenderableType]:
    from rich.text import Text

    for line in lines[:_MOST_LINES]:
        text = one_line("".join(part for _, part in line.parts), _LONGEST)
        indent = "    " if line.parts and line.parts[0][1].startswith("    ") else ""
        yield Text(
            f"{line.mark} {indent}{text}", style={"-": "red", "+": "green"}.get(line.mark, "dim")
        )
    if len(lines) > _MOST_LINES:
        yield _text(f"... {count_noun(len(lines) - _MOST_LINES, 'line')} more on the page")
