"""`aeon verify [overrides]`: five small tasks in both modes on the configured provider, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from aeon.app import verify
from aeon.app.verify import LEGEND, MODES, TASKS, Verified
from aeon.cli.job.arguments import parse
from aeon.cli.job.show import show
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.status import DONE, FAILED, NOT_CONVERGED
from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.streams import answer_alone_on_stdout, put
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config.load import environment
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult

_ROW = "  {mode:<9} {phases:<26} {valid:>7} {repairs:>7} {calls:>6} {tokens:>8} {cost:>9}  {ended}"
_COLUMNS = ("mode", "phases", "valid", "repairs", "calls", "tokens", "cost", "ended")
_HEAD = _ROW.format(**{name: name for name in _COLUMNS})
_PLANLESS = ("mode=", "task=", "task_file=", "plan_file=", "resume=")


def main(arguments: Sequence[str]) -> int:
    """Run and report on standard output. Raises ConfigError for what is wrong before any call."""
    given = parse(arguments)
    if given.shows:
        return show(given)
    unusable = next((o for o in given.overrides if o.startswith(_PLANLESS)), None)
    if given.flags.multirun or unusable:
        what = unusable.split("=")[0] if unusable else "--multirun"
        raise ConfigError(f"aeon verify runs tasks of its own, in both modes: leave {what} out")
    with answer_alone_on_stdout():
        return _verify({mode: given.settings(f"mode={mode}") for mode in MODES})


def _verify(settings: dict[verify.Mode, Settings]) -> int:
    done: list[Verified] = []
    for run in verify.run_tasks(settings, environment()):
        if not done:
            if run.result.synthetic:
                say("SIMULATED: no model is called; every figure below is made up, and so is how each run ends.")
            put(_HEAD)
        if run.mode == MODES[0]:
            put(run.task)
        put("\n".join(_lines(run)))
        done.append(run)
    put(f"\n{LEGEND}\n{_totals(done)}")
    if not all(run.works for run in done):
        return FAILED
    return DONE if len(done) == len(TASKS) * len(MODES) else NOT_CONVERGED


def _lines(run: Verified) -> list[str]:
    result, usage, scores = run.result, run.result.usage.total, run.result.scores
    figures = [f"{scores[f'{name}_score']:.2f}" for name in SCORES] if scores else []
    row = _ROW.format(
        mode=run.mode,
        phases=run.phases,
        valid=f"{run.answers - run.repaired}/{run.answers}",
        repairs=run.repaired,
        calls=usage.requests,
        tokens=usage.total_tokens,
        cost=_cost(result),
        ended=" ".join((result.termination_reason, *figures)),
    )
    lines = [row.rstrip()]
    if not run.in_order:
        lines.append("            The phases are not in the order that this mode prescribes.")
    if result.error is not None:
        lines += [f"            {one_line(text)}" for text in (result.error.message, result.error.hint) if text]
    return lines


def _cost(result: RunResult) -> str:
    cost = result.usage.total.cost
    if cost is not None:
        return f"{cost:.4f}"
    return "unpriced" if result.usage.unpriced else "unknown"


def _unknown_cost(done: Sequence[Verified]) -> str:
    """Why the cost of the runs is not known."""
    unpriced = sorted({model for run in done for model in run.result.usage.unpriced})
    unreported = sorted({model for run in done for model in run.result.usage.unreported})
    why = [f"there is no price of {', '.join(unpriced)}"] if unpriced else []
    why += [f"the server did not say what answers of {', '.join(unreported)} used"] if unreported else []
    return "; ".join(why)


def _totals(done: Sequence[Verified]) -> str:
    """All of them together; a cost only where every run has one."""
    costs = [run.result.usage.total.cost for run in done]
    known = [cost for cost in costs if cost is not None]
    money = f"cost {sum(known):.4f}" if len(known) == len(costs) else f"cost unknown: {_unknown_cost(done)}"
    answers, repaired = sum(run.answers for run in done), sum(run.repaired for run in done)
    tokens = sum(run.result.usage.total.total_tokens for run in done)
    working, planned = sum(run.works for run in done), len(TASKS) * len(MODES)
    missing = planned - len(done)
    is_priced = not done or done[-1].result.usage.total.cost is not None
    why = "limits.max_cost is used up" if is_priced else "what is left of limits.max_cost cannot be known"
    return (
        f"{working} of {count_noun(len(done), 'run')} kept the order and came to an end (converged or not);"
        f" {answers - repaired} of {count_noun(answers, 'answer')} valid at once; {tokens} tokens, {money}."
        + (f"\n{count_noun(missing, 'run')} not made: {why}." if missing else "")
    )
