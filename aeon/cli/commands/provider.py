"""Checks of the configured provider: `aeon doctor` calls it as each role, `aeon verify` runs small
tasks on it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from aeon.app import process, rehearsal
from aeon.app.job import resolve_job
from aeon.app.trials import doctor as examination
from aeon.app.trials.doctor import RoleCheck
from aeon.app.trials.verify import LEGEND, MODES, TASKS, Verified, run_tasks
from aeon.cli.job.arguments import read_composition
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.status import DONE, FAILED, NOT_CONVERGED
from aeon.cli.terminal.streams import put, say, warn
from aeon.cli.terminal.width import fit_rows
from aeon.config.environment import environment
from aeon.config.load import compose_settings
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.values import show_address
from aeon.llm.settings import CustomProvider, EndpointSettings, SimulatedProvider
from aeon.llm.stack import build as stack
from aeon.report.ending import why_cost_is_unknown
from aeon.report.words import count_noun, one_line

_PLANLESS = ("mode=", "task=", "task_file=", "plan_file=", "resume=")
_CHECK = "{:<9} {:<6} {:>7} {:>8}  {}"
_RUN = "  {:<9} {:<26} {:>7} {:>7} {:>6} {:>8} {:>9}  {:<6}  {}"
_HEADS = ["mode", "phases", "valid", "repairs", "calls", "tokens", "cost", "answer", "ended by"]
_HAS = {True: "yes", False: "no", None: "unknown"}
_RIGHT = {True: "right", False: "wrong", None: "-"}


def doctor(given: Namespace) -> int:
    """Call each role and each fallback once, and report what to change. Raises ConfigError for a
    configuration that cannot be used."""
    settings = compose_settings(read_composition(given))
    environ = environment(settings)
    shared = process.build_process(resolve_job(settings, environ), environ)
    try:
        rehearsal.check(shared)
        provider = _describe_provider(shared.settings, environ)
        put(fit_rows(f"{provider}\nPrompts and schemas: in order.", 2))
        warn(*shared.warnings)
        put("\n" + _CHECK.format("role", "works", "seconds", "tokens", "model"))
        checks = []
        # Printed one by one: a slow server may take a minute for each.
        for check in examination.check_roles(shared):
            checks.append(check)
            put(_describe_check(check))
        for name, apis in examination.find_apis(shared).items():
            put(f"\n{_describe_apis(name, apis)}")
        if found := stack.findings(shared.adapter, only_new=True):
            put(_indent("\nFound out:", "  ", found))
    finally:
        process.close_process(shared)
    if failed := [_name_check(check) for check in checks if not check.works]:
        put(f"\nCannot be used: {one_line(', '.join(failed))}.")
        return FAILED
    fallbacks = " Every fallback works." if any(check.fallback for check in checks) else ""
    put(f"\nEvery role works.{fallbacks}")
    return DONE


def _describe_apis(endpoint: str, apis: Mapping[str, bool | None]) -> str:
    has = ", ".join(f"{name} {_HAS[has]}" for name, has in apis.items())
    return f"Interfaces of {one_line(endpoint)} (provider.api): {has}."


def _describe_check(check: RoleCheck) -> str:
    model = check.asked
    if check.answered and check.answered != check.asked:
        model = f"{check.answered} (asked: {check.asked})"
    works = "yes" if check.works else "NO"
    tokens = check.usage.total_tokens if check.usage else "unknown"
    row = _CHECK.format(check.role, works, f"{check.seconds:.2f}", tokens, one_line(model))
    above = f"{one_line(_name_check(check))}:\n" if check.fallback else ""
    return _indent(above + row, " " * 10, (check.problem, check.hint))


def _name_check(check: RoleCheck) -> str:
    return f"fallback {check.fallback}" if check.fallback else check.role


def _describe_provider(settings: Settings, environ: Mapping[str, str]) -> str:
    provider = settings.provider
    if isinstance(provider, SimulatedProvider):
        return (
            "Provider: simulated. No model is called, whatever is "
            "reported below: this checks the program itself."
        )
    if isinstance(provider, CustomProvider):
        return f"Provider: {provider.kind}, {provider.adapter}"
    address = getattr(provider, "base_url", None)
    text = f"Provider: {getattr(provider, 'name', provider.kind)}"
    text += f" at {show_address(address)}" if address else ""
    if isinstance(provider, EndpointSettings):
        # A key is sent even if it is not needed.
        is_sent = bool(environ.get(provider.api_key_env, "").strip())
        has_key = is_sent or provider.needs_key(environ)
        text += f"\nKey: {f'in {provider.api_key_env}' if has_key else 'none needed'}"
    return text


def _indent(first: str, indent: str, texts: Iterable[str]) -> str:
    lines = (first, *(f"{indent}{one_line(text)}" for text in texts if text))
    return fit_rows("\n".join(lines), len(indent))


def verify(given: Namespace) -> int:
    """Run five small tasks in both modes, as a table, and check the answers that a program can
    check. Raises ConfigError for a bad configuration before any call."""
    composition = read_composition(given)
    _refuse_tasks(composition.overrides)
    settings = {
        mode: compose_settings(composition.with_overrides((*composition.overrides, f"mode={mode}")))
        for mode in MODES
    }
    done: list[Verified] = []
    for run in run_tasks(settings, environment(settings[MODES[0]])):
        if not done:
            if run.result.synthetic:
                problem = "no model is called; every figure and every outcome below is made up."
                say(f"SIMULATED: {problem}")
            put(fit_rows(_RUN.format(*_HEADS), 12))
        if run.mode == MODES[0]:
            put(fit_rows(run.task, 4))
        put(_describe_run(run))
        done.append(run)
    put(fit_rows(f"\n{LEGEND}\n{_describe_all(done)}", 2))
    return _find_status(done)


def _refuse_tasks(overrides: Sequence[str]) -> None:
    for text in overrides:
        if text.startswith(_PLANLESS):
            problem = "aeon verify runs its own tasks, in both modes"
            raise ConfigError(f"{problem}: leave out {text.partition('=')[0]}")


def _find_status(done: Sequence[Verified]) -> int:
    if not all(run.works for run in done):
        return FAILED
    is_wrong = any(run.is_right is False for run in done)
    return NOT_CONVERGED if is_wrong or len(done) < len(TASKS) * len(MODES) else DONE


def _describe_run(run: Verified) -> str:
    result = run.result
    usage = run.result.usage.total
    scores = run.result.scores
    given = [scores[f"{name}_score"] for name in SCORES] if scores else []
    figures = [f"{score:.2f}" for score in given if score is not None]
    unknown = "unpriced" if result.usage.unpriced else "unknown"
    cost = unknown if usage.cost is None else f"{usage.cost:.4f}"
    valid = f"{run.answers - run.repaired}/{run.answers}"
    ended = " ".join((result.termination_reason, *figures))
    figures_of_run = (run.repaired, usage.requests, usage.total_tokens, cost)
    row = _RUN.format(run.mode, run.phases, valid, *figures_of_run, _RIGHT[run.is_right], ended)
    notes = [] if run.in_order else ["The phases are not in the order that this mode prescribes."]
    notes += [result.error.message, result.error.hint] if result.error else []
    return _indent(row.rstrip(), " " * 12, notes)


def _describe_answers(done: Sequence[Verified]) -> str:
    """Report how many of the answers that a program can check are right."""
    checked = [run.is_right for run in done if run.is_right is not None]
    if not checked:
        return "\nNo answer was checked."
    wrong = checked.count(False)
    said = f"\n{checked.count(True)} of {count_noun(len(checked), 'checked answer')} right"
    return f"{said}, {wrong} wrong." if wrong else f"{said}."


def _describe_all(done: Sequence[Verified]) -> str:
    answers = sum(run.answers for run in done)
    valid = answers - sum(run.repaired for run in done)
    missing = len(TASKS) * len(MODES) - len(done)
    text = (
        f"{sum(run.works for run in done)} of {count_noun(len(done), 'run')} kept the "
        f"order and came to an end (converged or not); {valid} of {count_noun(answers, 'answer')} "
        f"valid at once; {_describe_usage(done)}.{_describe_answers(done)}"
    )
    if missing:
        text += (
            f"\n{count_noun(missing, 'run')} not made: "
            "limits.max_cost is used up, or the cost is unknown."
        )
    return text


def _describe_usage(done: Sequence[Verified]) -> str:
    usages = [run.result.usage for run in done]
    tokens = sum(usage.total.total_tokens for usage in usages)
    costs = [usage.total.cost for usage in usages if usage.total.cost is not None]
    if len(costs) < len(usages):
        return f"{tokens} tokens, cost unknown: {why_cost_is_unknown(usages)}"
    return f"{tokens} tokens, cost {sum(costs):.4f}"
