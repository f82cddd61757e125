"""Every sentence of a comparison, on the terminal and on its page; each is empty where it is not
true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aeon.domain.history import GOOD_ENDS
from aeon.report.compare.divergence import Divergence
from aeon.report.compare.effects import SHARES, Effect, collect_values
from aeon.report.compare.forms import format_figure
from aeon.report.compare.rows import SCORES, ComparedRun, Comparison, show
from aeon.report.scores import NOTICEABLE
from aeon.report.words import count_noun, list_names, one_line

_LEAST = {
    "cost": "cheapest",
    "tokens": "fewest tokens",
    "passes": "fewest passes",
    "seconds": "fastest",
}
_MOST_NAMES = 4
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Best:
    """The runs with the lowest value of a figure: in words, their names, and the value as text."""

    title: str
    names: tuple[str, ...]
    value: str


def describe_ends(runs: Sequence[ComparedRun]) -> str:
    """Count the runs that converged, of those that could; those that completed in core mode; those
    without a result."""
    judged = [run for run in runs if run.has_result and not run.is_core]
    core = [run for run in runs if run.has_result and run.is_core]
    return "; ".join(
        (*_count_converged(judged), *_count_completed(core), *_count_without_result(runs))
    )


def _count_converged(judged: Sequence[ComparedRun]) -> Iterator[str]:
    if judged:
        converged = sum(run.converged is True for run in judged)
        yield f"{converged} of {count_noun(len(judged), 'run')} converged"


def _count_completed(core: Sequence[ComparedRun]) -> Iterator[str]:
    if core:
        completed = sum(run.ended == "completed" for run in core)
        yield (
            f"{completed} of {count_noun(len(core), 'run')} in a mode that judges nothing completed"
        )


def _count_without_result(runs: Sequence[ComparedRun]) -> Iterator[str]:
    ends = Counter(run.ended for run in runs if not run.has_result)
    if ends:
        each = ", ".join(f"{number} {end}" for end, number in ends.items())
        yield f"{count_noun(ends.total(), 'run')} without a result ({each})"


def describe_fallbacks(runs: Sequence[ComparedRun]) -> str:
    """State that runs with a good end lacked a tool, a server or a review."""
    number = sum(run.ended in GOOD_ENDS and run.without > 0 for run in runs)
    if not number:
        return ""
    return f"{count_noun(number, 'run')} with a good end did without a tool, a server or a review."


def describe_parameters(comparison: Comparison) -> str:
    """State that no parameter differs, where the parameters of at least two runs are known."""
    known = [run for run in comparison.runs if run.parameters]
    if comparison.parameters:
        return ""
    if len(known) < 2:
        return "The settings of these runs are not known."
    if len(known) < len(comparison.runs):
        return f"No setting differs between the {len(known)} runs whose settings are known."
    return "No setting differs between these runs."


def find_best(runs: Sequence[ComparedRun]) -> list[Best]:
    """Find which of the runs with the best end (converged, else completed) took least; several in a
    tie. A figure that is unknown for one of them, or the same for all, has no best, nor do seconds
    where answers were reused."""
    converged = [run for run in runs if run.converged]
    good = converged or [run for run in runs if run.ended == "completed"]
    if len(good) < 2:
        return []
    titles = dict(_LEAST)
    if any(run.figures["saved"] for run in good):
        del titles["seconds"]
    return list(filter(None, (_best_of(name, title, good) for name, title in titles.items())))


def _best_of(figure: str, title: str, runs: Sequence[ComparedRun]) -> Best | None:
    known = {run.name: run.figures[figure] for run in runs}
    values = [value for value in known.values() if value is not None]
    if len(values) < len(known) or len(set(values)) == 1:
        return None
    least = min(values)
    names = tuple(name for name, value in known.items() if value == least)
    unit = " s" if figure == "seconds" else ""
    return Best(title, names, f"{format_figure(figure, least)}{unit}")


def describe_best(runs: Sequence[ComparedRun]) -> str:
    """State which runs took least, naming ties together."""
    best = find_best(runs)
    if not best:
        return ""
    end = "converged" if any(run.converged for run in runs) else "completed"
    each = (
        f"{one.title} {'run' if len(one.names) == 1 else 'runs'} "
        f"{list_names(one.names, _MOST_NAMES)} ({one.value})"
        for one in best
    )
    return f"Of those that {end}: {', '.join(each)}."


def describe_same(runs: Sequence[ComparedRun], figures: Sequence[str]) -> str:
    """Describe the figures that are known for every run that came to its end, and are the same."""
    ended = [run for run in runs if not run.error]
    if not ended:
        return ""
    same: list[str] = []
    unknown: list[str] = []
    for name in figures:
        values = collect_values(name, ended)
        if not values:
            unknown.append(name)
        elif len(values) == len(ended) > 1 and len(set(values)) == 1:
            same.append(name)
    return _list_after({"The same in every run": same, "Not known of any run": unknown})


def _list_after(named: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence for each non-empty list of names."""
    return " ".join(f"{text}: {', '.join(names)}." for text, names in named.items() if names)


def describe_saved(runs: Sequence[ComparedRun]) -> str:
    """State that seconds are not comparable where answers were reused."""
    if not any(run.figures["saved"] for run in runs):
        return ""
    return (
        "Some of these runs reused answers. Reused answers count in full (tokens, cost); "
        "only the time saved does not, so their seconds say little."
    )


def name_thresholds(runs: Sequence[ComparedRun]) -> str:
    """Describe the thresholds that are the same in every run; the others are among the
    parameters."""
    first = runs[0].thresholds if runs else {}
    same = [
        f"{name} {format_figure(name, value)}"
        for name, value in first.items()
        if all(run.thresholds.get(name) == value for run in runs)
    ]
    return f"Thresholds: {', '.join(same)}." if same else ""


def describe_effect(effect: Effect) -> str:
    """Describe what a parameter affects most: a score, the share of checks that passed or of runs
    that converged, or else tokens."""
    if all(len(runs) == 1 for _, runs in effect.groups):
        return ""
    spreads = {name: _range(effect.means(name)) for name in (*SHARES, *SCORES)}
    name = max(spreads, key=lambda one: spreads[one][1] - spreads[one][0])
    low, high = spreads[name]
    if round(high - low, 6) >= NOTICEABLE:
        if name in SHARES:
            return f"Moves {SHARES[name]} most, from {low:.0%} to {high:.0%}."
        return (
            f"Moves {name} most, from {format_figure(name, low)} to "
            f"{format_figure(name, high)} (means)."
        )
    low, high = _range(effect.means("tokens"))
    if high > low:
        tokens = f"from {format_figure('tokens', low)} to {format_figure('tokens', high)}"
        return f"{_describe_scores(effect)}; moves tokens {tokens} (means)."
    return ""


def _describe_scores(effect: Effect) -> str:
    """State that a parameter affects no score, as far as scores were measured on both sides;
    otherwise that it affects no checks."""
    measured = [name for name in SCORES if len(effect.means(name)) > 1]
    if not measured and len(effect.means("checks")) > 1:
        return f"Moves {SHARES['checks']} by less than {NOTICEABLE:.0%}"
    if not measured:
        return "Scores were not measured with several of its values"
    if len(measured) < len(SCORES):
        return f"Moves {list_names(measured, _MOST_NAMES)} by less than {NOTICEABLE:g}"
    return f"Moves no score by {NOTICEABLE:g}"


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values, default=0.0), max(values, default=0.0)


def describe_undrawn(comparison: Comparison, drawn: Sequence[Effect]) -> str:
    """Explain why a parameter is not drawn: it has too many values, or only one among the runs that
    began."""
    runs = [run for run in comparison.runs if run.figures["seconds"] is not None]
    if len(comparison.runs) < 3 or not runs:
        return ""
    shown = {key for effect in drawn for key in effect.keys}
    many: list[str] = []
    alone: list[str] = []
    for key in comparison.parameters:
        if key not in shown:
            (many if _count_values(key, runs) > 1 else alone).append(key)
    return _list_after(
        {
            "Not drawn, for they have too many values": many,
            "Not drawn, for they do not differ among the runs that began": alone,
        }
    )


def _count_values(key: str, runs: Sequence[ComparedRun]) -> int:
    return len({show(run.parameters.get(key)) for run in runs})


def describe_two(comparison: Comparison) -> str:
    """Describe two runs in a sentence: their differences, their ends, their checks, and the usage
    and scores of the second."""
    first, second = comparison.runs
    parts: list[str] = []
    parts += _in_what(comparison)
    parts += _ends(first, second)
    if first.has_result and second.has_result:
        parts += [_checks(first, second), _tokens(first, second), _scores(first, second)]
    return " ".join(part for part in parts if part)


def _in_what(comparison: Comparison) -> Iterator[str]:
    keys = comparison.parameters
    if not keys:
        yield describe_parameters(comparison)
    elif len(keys) == 1:
        first, second = (
            one_line(show(run.parameters.get(keys[0])), _LONGEST) or "not set"
            for run in comparison.runs
        )
        yield f"They differ in {keys[0]}: {first} and {second}."
    else:
        yield f"They differ in {count_noun(len(keys), 'setting')}: {list_names(keys, _MOST_NAMES)}."


def _ends(first: ComparedRun, second: ComparedRun) -> Iterator[str]:
    if first.ended == second.ended:
        yield f"Both {_verb(first.ended)}."
    else:
        yield f"Run {first.name} {_verb(first.ended)}, run {second.name} {_verb(second.ended)}."


def _verb(end: str) -> str:
    return end if end in (*GOOD_ENDS, "failed") else f"ended {end}"


def _checks(first: ComparedRun, second: ComparedRun) -> str:
    """Describe how many checks of each answer passed."""
    if not first.checks and not second.checks:
        return ""
    if first.checks == second.checks:
        return f"Both passed {first.checks} checks."
    if not first.checks:
        return f"Run {first.name} had no checks, run {second.name} passed {second.checks}."
    other = second.checks or "had none"
    return f"Run {first.name} passed {first.checks} checks, run {second.name} {other}."


def _tokens(first: ComparedRun, second: ComparedRun) -> str:
    before = first.figures["tokens"]
    after = second.figures["tokens"]
    if before is None or after is None:
        return ""
    if before == after:
        return f"Both took {before:,.0f} tokens."
    less, more = sorted((first, second), key=lambda run: run.figures["tokens"] or 0)
    low = min(before, after)
    high = max(before, after)
    share = f" ({(high - low) / high:.0%} fewer)" if (high - low) / high >= 0.01 else ""
    return f"Run {less.name} took {low:,.0f} tokens{share}, run {more.name} {high:,.0f}."


def _scores(first: ComparedRun, second: ComparedRun) -> str:
    """Describe the score that differs most, and which run has more."""
    changes = {}
    for name in SCORES:
        before = first.figures[name]
        after = second.figures[name]
        if before is not None and after is not None:
            changes[name] = after - before
    if not changes:
        return ""
    name = max(changes, key=lambda one: abs(changes[one]))
    change = changes[name]
    if not change:
        return "Their scores are the same." if len(changes) == len(SCORES) else ""
    if round(abs(change), 6) < NOTICEABLE:
        return f"No score differs by {NOTICEABLE:g}."
    better, other = (second, first) if change > 0 else (first, second)
    high = format_figure(name, better.figures[name])
    low = format_figure(name, other.figures[name])
    return f"Run {better.name} has the higher {name}: {high}, not {low}."


def describe_divergence(divergence: Divergence) -> str:
    """Describe where two runs diverge, or why that is unknown."""
    first, second = divergence.counts
    if not first or not second:
        return f"Where they diverge is not known: {_name_without_journal(first, second)}."
    if divergence.number is None:
        return f"They do not diverge: all {count_noun(first, 'event')} are the same, but for times."
    place = f"They diverge at event {divergence.number} (of {first} and {second})."
    if not divergence.asked:
        return place
    differing = [name for name, is_same in divergence.asked.items() if not is_same]
    if differing:
        return f"{place} They were asked differently: {', '.join(differing)}."
    return f"{place} Both were asked the same."


def _name_without_journal(first: int, second: int) -> str:
    if not first and not second:
        return "neither has a journal of its events"
    which = "second" if first else "first"
    return f"the {which} has no journal of its events"
