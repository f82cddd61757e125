"""Runs side by side as a table: those of `aeon compare`, and the jobs of a multirun at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aeon.report.compare import sentences
from aeon.report.compare.divergence import Divergence, Line
from aeon.report.compare.effects import effects
from aeon.report.compare.forms import format_change, format_figure
from aeon.report.compare.rows import FIGURES, SCORES, ComparedRun, Comparison, show
from aeon.report.words import count_noun, escape_controls, list_names, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_SHOWN = ("passes", "tokens", "cost", "seconds")
_LONGEST = 200
_ANY_WIDTH = 10_000
_MOST_LINES = 20


def draw_comparison(
    comparison: Comparison, divergence: Divergence | None = None, width: int | None = None
) -> str:
    """Draw runs side by side, `width` columns wide on a terminal, else at full width. `divergence`
    is for two runs."""
    from rich.console import Console  # slow to load

    is_terminal = width is not None
    console = Console(width=width or _ANY_WIDTH, force_terminal=is_terminal, highlight=False)
    with console.capture() as captured:
        for part in _pair(comparison, divergence) if divergence else _several(comparison, console):
            console.print(part, soft_wrap=not is_terminal)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _several(comparison: Comparison, console: Console) -> Iterator[RenderableType]:
    """Yield a line for each run; where that is too wide, its name and parameters above its
    figures."""
    from rich.console import Console
    from rich.text import Text

    runs = comparison.runs
    table = _rows(comparison.runs, comparison.parameters)
    if (
        console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
        <= console.width
    ):
        yield table
    else:
        # Each line is folded when it is printed: a table folds cells, into lines of no run.
        wide = Console(width=_ANY_WIDTH, force_terminal=console.is_terminal, highlight=False)
        with wide.capture() as captured:
            wide.print(_rows(runs, None))
        head, *lines = captured.get().splitlines()
        yield Text.from_ansi(head)
        for run, line in zip(runs, lines, strict=True):
            swept = (f"{key}={_value(run, key)}" for key in comparison.parameters)
            yield Text("  ".join((one_line(run.name), *swept)), style="bold")
            yield Text.from_ansi(line)
    yield _text("")
    yield _text(f"{sentences.describe_ends(runs)}. Scores: {', '.join(SCORES)}.")
    notes = (
        sentences.name_thresholds(runs),
        sentences.describe_best(runs),
        sentences.describe_fallbacks(runs),
        sentences.describe_saved(runs),
        sentences.describe_parameters(comparison),
    )
    yield from (_text(note) for note in notes if note)
    yield from _causes(runs)
    yield from _effects(comparison)


def _rows(runs: Sequence[ComparedRun], parameters: Sequence[str] | None) -> Table:
    """Return the runs with these parameters, or without their names and parameters."""
    names = ("run", *parameters) if parameters is not None else ()
    checks = ["checks"] if any(run.checks for run in runs) else []
    table = _new_table(*names, "ended by", *checks, "scores")
    for name in _SHOWN:
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        cells = [*_name_cells(run, names), run.ended, *_count_cells(run, checks)]
        table.add_row(*map(_text, cells), style=None if run.is_good else "yellow")
    return table


def _name_cells(run: ComparedRun, names: Sequence[str]) -> list[str]:
    parameters = [_value(run, key) for key in names[1:]]
    return [one_line(run.name), *parameters] if names else []


def _count_cells(run: ComparedRun, checks: Sequence[str]) -> list[str]:
    """Return the checks of a run where the table has them, then its scores and figures."""
    scores = " ".join(format_figure(name, run.figures[name]) for name in SCORES)
    figures = (format_figure(name, run.figures[name]) for name in _SHOWN)
    return [*(run.checks or "-" for _ in checks), scores, *figures]


def _new_table(*heads: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, head in enumerate(heads):
        table.add_column(_text(head), overflow="fold", no_wrap=place == 0)
    return table


def _text(text: str) -> Text:
    """Return text without markup or control characters."""
    from rich.text import Text

    return Text(escape_controls(text))


def _value(run: ComparedRun, key: str) -> str:
    return one_line(show(run.parameters.get(key)), _LONGEST) or "-"


def _causes(runs: Sequence[ComparedRun]) -> Iterator[RenderableType]:
    """Yield why runs ended badly, equal causes together."""
    causes = {run.name: _cause(run) for run in runs}
    for cause in dict.fromkeys(filter(None, causes.values())):
        names = [name for name, one in causes.items() if one == cause]
        yield _text(f"{list_names(names)}: {cause}")


def _cause(run: ComparedRun) -> str:
    parts = ((run.cause or run.error).rstrip("."), run.hint)
    return one_line(". ".join(filter(None, parts)), 2 * _LONGEST)


def _effects(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the effect of each parameter, the largest first."""
    if len(comparison.runs) < 3:
        return
    for effect in effects(comparison):
        if said := sentences.describe_effect(effect):
            yield _text(f"{', '.join(effect.keys)}: {said[0].lower()}{said[1:]}")


def _pair(comparison: Comparison, divergence: Divergence) -> Iterator[RenderableType]:
    """Yield two runs: a sentence, a line for each parameter and figure, then where they diverge."""
    first, second = comparison.runs
    yield _text(f"{sentences.describe_two(comparison)}\n")
    yield _compare_figures(comparison)
    yield from map(_text, filter(None, [sentences.name_thresholds(comparison.runs)]))
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


def _compare_figures(comparison: Comparison) -> Table:
    """Return a line for each parameter and figure of two runs."""
    first, second = comparison.runs
    table = _new_table("", one_line(first.name), one_line(second.name), "change")
    for key in comparison.parameters:
        table.add_row(*map(_text, (key, _value(first, key), _value(second, key))))
    table.add_row("ended by", *(_text(run.ended) for run in comparison.runs))
    if any(run.checks for run in comparison.runs):
        table.add_row("checks passed", *(run.checks or "-" for run in comparison.runs))
    for name in FIGURES:
        cells = (format_figure(name, run.figures[name]) for run in comparison.runs)
        table.add_row(name, *cells, format_change(name, first, second))
    return table


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
