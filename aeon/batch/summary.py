"""The summary of a batch: how its rows ended, what they used, and which of them need a look."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote

from aeon.domain.assessment import SCORE_CODES
from aeon.domain.history import GOOD_ENDS
from aeon.domain.values import JsonMapping, JsonObject
from aeon.observability.artefacts import replace_file
from aeon.report.ending import LACKS
from aeon.report.html import render_page
from aeon.report.words import (
    command_of,
    count_noun,
    one_line,
    relative_to_here,
    round_down,
    shorten,
)

Line = JsonObject
WAITING = "waiting"
"""The end of a row that waits for a person: it resumes once they have answered."""
FAILED_ENDS = ("failed", "interrupted", "invalid", "no result", "not started")
REPEATED_ENDS = (*FAILED_ENDS, WAITING)
"""The ends of rows and jobs that are run again when their batch or sweep is resumed."""
_MOST_WAITING = 5
SCORES = tuple(f"{name}_score" for name in SCORE_CODES)
FIGURES = (*SCORES, "passes", "calls", "input_tokens", "output_tokens", "cost", "seconds")
QUANTILES = {"least": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "most": 1.0}
MOST_SHOWN = 200
_SHOWN = (
    "id",
    "row",
    "ended",
    "scores",
    "passes",
    "calls",
    "cost",
    "seconds",
    "record",
    "degraded",
)
_LONGEST_IN_ROW = 400
_LONGEST_TEXT = 4_000
_MOST_ERRORS = 200
_MOST_ROWS_OF_ERROR = 5
_VARYING = re.compile(r"^line \d+: |\d+(\.\d+)?")


def is_final(line: JsonMapping) -> bool:
    """Check whether the row or job of a line is done: it ended well, or another start would reuse
    the same answers."""
    ended = line["ended"]
    return ended in GOOD_ENDS or not (ended in REPEATED_ENDS or line.get("unusable_calls"))


@dataclass
class ErrorGroup:
    """Errors that are equal except for their numbers: the first of them, their count, and the first
    rows."""

    message: str
    count: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, row: int) -> None:
        """Add one more row."""
        self.count += 1
        if len(self.rows) < _MOST_ROWS_OF_ERROR:
            self.rows.append(row)


class Summary:
    """Adds up lines as they come; under 100 bytes a row, except for `MOST_SHOWN` rows. `of` counts
    the whole dataset."""

    def __init__(self, of: int) -> None:
        self.of = of
        self.ends = Counter[str]()
        self.simulated = 0
        self.unpriced = 0
        self.waiting: list[str] = []
        """The folders of the first rows that wait for a person."""
        self.with_steps_left = self.degraded = self.unusable = 0
        self._errors: dict[str, ErrorGroup] = {}
        self._values = {name: array("d") for name in FIGURES}
        self._shown: list[tuple[tuple[int, float, int], Line]] = []

    def add(self, line: Line) -> None:
        """Add one line."""
        self.ends[line["ended"]] += 1
        self.simulated += bool(line.get("synthetic"))
        if line["ended"] == WAITING and len(self.waiting) < _MOST_WAITING:
            self.waiting.append(line["folder"])
        self.unpriced += line.get("cost", 0.0) is None
        self.with_steps_left += line["ended"] == "converged" and bool(line.get("steps_left"))
        self.degraded += bool(line.get("degraded"))
        self.unusable += line["ended"] not in REPEATED_ENDS and not is_final(line)
        error = (line.get("error") or {}).get("message", "")
        if error:
            self._add_error(line["row"], error)
        self._show(line, self._add_figures(line), error)

    def _add_figures(self, line: Line) -> float:
        """Add the figures of a line; return its least score, 1 where it has none."""
        found = {**line, **(line.get("scores") or {})}
        for name, values in self._values.items():
            if found.get(name) is not None:
                values.append(found[name])
        return min((found[name] for name in SCORES if found.get(name) is not None), default=1.0)

    def _show(self, line: Line, least: float, error: str) -> None:
        """Add a line as a candidate to be shown; `least` is its least score."""
        shown: Line = {name: line.get(name) for name in _SHOWN}
        shown["answer"] = shorten((line.get("answer") or "").strip(), _LONGEST_TEXT)
        shown["error"] = shorten(error, _LONGEST_TEXT)
        shown["summary"] = one_line(error or shown["answer"], _LONGEST_IN_ROW)
        self._shown.append(((_rank(line, error), least, line["row"]), shown))
        if len(self._shown) > 2 * MOST_SHOWN:
            self.list_shown()

    def _add_error(self, row: int, message: str) -> None:
        key = _VARYING.sub("#", message)
        if key not in self._errors and len(self._errors) >= _MOST_ERRORS:
            key = ""
        shown = one_line(message, 400) if key else "other errors"
        self._errors.setdefault(key, ErrorGroup(shown)).add(row)

    def errors(self) -> list[ErrorGroup]:
        """Return the errors, equal ones grouped, the most frequent first."""
        return sorted(self._errors.values(), key=lambda group: -group.count)

    @property
    def count(self) -> int:
        """The number of rows that have ended."""
        return self.ends.total()

    @property
    def ran(self) -> int:
        """The number of rows whose usage predicts that of others."""
        return self.count - self.failed

    @property
    def failed(self) -> int:
        """The number of rows that failed or cannot be run."""
        return sum(self.ends[end] for end in FAILED_ENDS)

    @property
    def cost(self) -> float | None:
        """The cost of all rows; None when that of one is unknown."""
        return None if self.unpriced else self.total("cost")

    def total(self, name: str) -> float:
        """Return the sum of a figure."""
        return sum(self._values[name])

    def figures(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each figure that a row has, by name: its quantiles, in the order of `QUANTILES`,
        and its sum, as texts."""
        for name, values in self._values.items():
            if values:
                ordered = sorted(values)
                found = [ordered[round(share * (len(ordered) - 1))] for share in QUANTILES.values()]
                total = "" if name in SCORES else _format(name, sum(ordered))
                yield name.replace("_", " "), [*(_format(name, value) for value in found), total]

    def list_shown(self) -> list[Line]:
        """Return the rows to show, at most `MOST_SHOWN`: failed ones first, then those with the
        least scores."""
        self._shown = sorted(self._shown, key=itemgetter(0))[:MOST_SHOWN]
        return [line for _, line in self._shown]

    def __str__(self) -> str:
        ends = {end: f"{count:,} {end}" for end, count in self.ends.most_common()}
        if self.with_steps_left:
            ends["converged"] += f", {self.with_steps_left:,} with steps left"
        lines = [f"{self.count:,} of {self.of:,} rows: {', '.join(ends.values()) or 'none'}."]
        figures = list(self.figures())
        table = [("", [*QUANTILES, "total"]), *figures] if figures else []
        lines += [
            f"{name:<20}" + "".join(f" {value:>10}" for value in values) for name, values in table
        ]
        notes = {
            "simulated: no model was called": self.simulated,
            "of unknown cost: no price": self.unpriced,
            "had answers that could not be used: "
            "repeat the command to request them again": self.unusable,
            "lacked something that was configured (`degraded`)": self.degraded,
        }
        lines += [f"{count_noun(count, 'row')} {note}." for note, count in notes.items() if count]
        return "\n".join(line.rstrip() for line in lines)


def _rank(line: Line, error: str) -> int:
    """Return the place of a row among those shown: failed, not converged, converged."""
    if line["ended"] in REPEATED_ENDS or error:
        return 0
    return 2 if line["ended"] in GOOD_ENDS else 1


def describe_good_ends(summary: Summary) -> str:
    """Count the rows that converged, and those that completed in core or single mode; where each
    row failed, count those."""
    counted = [f"{summary.ends[end]:,} {end}" for end in GOOD_ENDS if summary.ends[end]]
    if len(counted) == 2:
        return f"{counted[0]} and {counted[1]}, of {count_noun(summary.of, 'row')}"
    if summary.count and summary.failed == summary.count:
        return f"{summary.failed:,} of {count_noun(summary.of, 'row')} failed"
    # A row that ran out of TTL or money does not say which of the two it could have been.
    good = counted[0] if counted else f"0 {' or '.join(GOOD_ENDS)}"
    number, _, end = good.partition(" ")
    return f"{number} of {count_noun(summary.of, 'row')} {end}"


def _kind_of(end: str) -> str:
    """Return the style of an end on the page."""
    if end in FAILED_ENDS:
        return "bad"
    return "good" if end in GOOD_ENDS else "open"


def _format(name: str, value: float) -> str:
    if name in SCORES:
        return f"{round_down(value):.2f}"
    if name == "cost":
        return f"{value:,.4f}"
    if name == "seconds" and value < 100:
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def write_page(summary: Summary, out: Path) -> Path:
    """Write `OUT.html`, a page that opens without network, next to the results, and return its
    path. Raises ArtefactError."""
    data = render_page(
        "batch",
        {},
        file=out.name,
        link=quote(out.name),
        summary=summary,
        headline=describe_good_ends(summary),
        kinds={end: _kind_of(end) for end in summary.ends},
        quantiles=list(QUANTILES),
        rows=summary.list_shown(),
        errors=summary.errors(),
        lacks=LACKS,
        count_noun=count_noun,
        command=lambda row: command_of(
            ("batch", "record", str(relative_to_here(out)), row["id"], f"row-{row['row']}")
        ),
    )
    page = out.with_name(f"{out.name}.html")
    replace_file(page, data)
    return page
