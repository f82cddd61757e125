"""`aeon verify [overrides]`: five small tasks in both modes on the configured provider, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from aeon.app.verify import LEGEND, MODES, TASKS, Verified, run_tasks
from aeon.cli.job.arguments import parse
from aeon.cli.job.ending import why_cost_is_unknown
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.status import DONE, FAILED, NOT_CONVERGED
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config.load import compose_settings, environment
from aeon.domain.errors import ConfigError

_ROW = "  {:<9} {:<26} {:>7} {:>7} {:>6} {:>8} {:>9}  {}"
_HEAD = _ROW.format("mode", "phases", "valid", "repairs", "calls", "tokens", "cost", "ended")
_PLANLESS = ("mode=", "task=", "task_file=", "plan_file=", "resume=")


def main(arguments: Sequence[str]) -> int:
    """Run and report on standard output. Raises ConfigError for what is wrong before any call."""
    given = parse(arguments)
    if unusable := next((text for text in given.overrides if text.startswith(_PLANLESS)), None):
        raise ConfigError(f"aeon verify runs tasks of its own, in both modes: leave {unusable.split('=')[0]} out")
    settings = {
        mode: compose_settings(given.model_copy(update={"overrides": (*given.overrides, f"mode={mode}")}))
        for mode in MODES
    }
    done: list[Verified] = []
    for run in run_tasks(settings, environment()):
        if not done:
            if run.result.synthetic:
                say("SIMULATED: no model is called; every figure below is made up, and so is how each run ends.")
            put(_HEAD)
        if run.mode == MODES[0]:
            put(run.task)
        put(_describe(run))
        done.append(run)
    put(f"\n{LEGEND}\n{_totals(done)}")
    if not all(run.works for run in done):
        return FAILED
    return DONE if len(done) == len(TASKS) * len(MODES) else NOT_CONVERGED


def _describe(run: Verified) -> str:
    result, usage, scores = run.result, run.result.usage.total, run.result.scores
    figures = [f"{scores[f'{name}_score']:.2f}" for name in SCORES] if scores else []
    unknown = "unpriced" if result.usage.unpriced else "unknown"
    cost = unknown if usage.cost is None else f"{usage.cost:.4f}"
    valid, ended = f"{run.answers - run.repaired}/{run.answers}", " ".join((result.termination_reason, *figures))
    row = _ROW.format(run.mode, run.phases, valid, run.repaired, usage.requests, usage.total_tokens, cost, ended)
    notes = [] if run.in_order else ["The phases are not in the order that this mode prescribes."]
    notes += [result.error.message, result.error.hint] if result.error else []
    return "\n".join((row.rstrip(), *(f"            {one_line(note)}" for note in notes if note)))


def _totals(done: Sequence[Verified]) -> str:
    """All of them together; a cost only where every run has one."""
    usages = [run.result.usage for run in done]
    costs = [usage.total.cost for usage in usages if usage.total.cost is not None]
    is_priced = len(costs) == len(usages)
    money = f"cost {sum(costs):.4f}" if is_priced else f"cost unknown: {why_cost_is_unknown(usages)}"
    answers, repaired = sum(run.answers for run in done), sum(run.repaired for run in done)
    missing = len(TASKS) * len(MODES) - len(done)
    why = "limits.max_cost is used up" if is_priced else "what is left of limits.max_cost cannot be known"
    return (
        f"{sum(run.works for run in done)} of {count_noun(len(done), 'run')} kept the order and came to an end"
        f" (converged or not); {answers - repaired} of {count_noun(answers, 'answer')} valid at once;"
        f" {sum(usage.total.total_tokens for usage in usages)} tokens, {money}."
        + (f"\n{count_noun(missing, 'run')} not made: {why}." if missing else "")
    )
