"""One direct call with the task of a run, to compare the run's answer with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from aeon.app.parent import Parent
from aeon.app.process import Process
from aeon.config.settings import Settings
from aeon.domain.assessment import AnswerComparison
from aeon.domain.errors import ConfigError
from aeon.domain.request import ReasoningMode
from aeon.domain.result import BaselineReport, RunResult, TokenUsage, UsageReport
from aeon.execution.settings import ExecutionSettings
from aeon.llm.roles import apply_mode
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.settings import MemorySettings
from aeon.observability.artefacts import BASELINE
from aeon.store.settings import StoreSettings
from aeon.tools.registry import ToolRegistry

_DIRECT_CYCLES = 3  # the call, and a comparison in both orders


def lower_caps(limits: LimitSettings, spent: TokenUsage) -> LimitSettings | None:
    """Return what is left of a run's caps for its baseline, or None where nothing is left."""
    used = {
        "max_llm_calls": spent.requests,
        "max_tokens": spent.total_tokens,
        "max_cost": spent.cost or 0.0,
    }
    left = {name: cap - used[name] for name in used if (cap := getattr(limits, name)) is not None}
    if any(value <= 0 for value in left.values()):
        return None
    return limits.model_copy(update=left)


def has_whole_answer(result: RunResult) -> bool:
    """Check whether a run reached an answer that can be compared."""
    return any(one.answer_complete for one in result.history.passes)


def find_direct_store(store: StoreSettings) -> StoreSettings | None:
    """Return the store of the direct call: that of its run, or in a replay the one recorded with
    the run. None for a recording without a direct call."""
    if store.mode != "replay" or store.path is None:
        return store
    place = Path(store.path) / BASELINE
    return store.model_copy(update={"path": place}) if place.is_dir() else None


def make_direct_process(
    shared: Process, limits: LimitSettings, result: RunResult, parent: Parent | None = None
) -> Process:
    """Return the shared parts of a run, changed for one direct call by its worker and a comparison
    by its grader, both with the effort that the profile of the run of this `result` gave them.
    Calls that `parent` made are not repeated, except where their answers could not be used."""
    settings = shared.settings
    store = find_direct_store(settings.store) or settings.store
    # Samples, tools and a shared memory are what the call is compared with: it has none.
    execution = ExecutionSettings(max_parallel=settings.execution.max_parallel)
    memory = MemorySettings(
        entries=settings.memory.entries, max_characters=settings.memory.max_characters
    )
    changes = {
        "roles": apply_mode(settings.roles, settings.reasoning, _find_mode(result)),
        "mode": settings.mode.model_copy(update={"kind": "single"}),
        "ttl": settings.ttl.model_copy(update={"base": _DIRECT_CYCLES}),
        # A direct call is one pass, whatever the run was allowed.
        "limits": limits.model_copy(update={"max_passes": None}),
        "answer": settings.answer.model_copy(update={"baseline": False, "judge": False}),
        "execution": execution,
        "memory": memory,
        "plan_file": None,
        "store": store.model_copy(update={"retry_unusable": "all"}),
    }
    job = replace(
        shared.job,
        chosen=shared.job.chosen.model_copy(update=changes),
        settings=settings.model_copy(update=changes),
    )
    return replace(shared, job=job, parent=parent, registry=ToolRegistry(), workflow=None)


def _find_mode(result: RunResult) -> ReasoningMode | None:
    """Return the reasoning mode of a run's last pass; None where it has no profile."""
    depths = (one.adaptive_depth for one in reversed(result.history.passes))
    return next((depth.reasoning_mode for depth in depths if depth), None)


def find_free_folder(directory: Path) -> Path:
    """Return the first folder for a direct call that does not exist yet."""
    folder = directory / BASELINE
    number = 2
    while folder.exists():
        folder = directory / f"{BASELINE}-{number}"
        number += 1
    return folder


def report_baseline(result: RunResult, direct: RunResult, place: Path | None) -> BaselineReport:
    """Compare a run's answer with that of one direct call, and report what each used."""
    results = direct.history.passes[-1].evaluation_results
    compared = results.comparison or AnswerComparison(outcome="unknown")
    explanations = compared.explanations
    if compared.outcome == "unknown" and not explanations:
        explanations = (_explain_lack(direct),)
    spent = direct.usage.by_call.get("direct")
    tokens = spent.total_tokens if spent else 0
    return BaselineReport(
        outcome=compared.outcome,
        explanations=explanations,
        answer=direct.answer,
        checks=direct.checks,
        tokens=tokens,
        cost=spent.cost if spent else None,
        times=_divide_tokens(result.usage, direct.usage, tokens),
        folder=place.name if place else None,
    )


def _divide_tokens(usage: UsageReport, of_direct: UsageReport, tokens: int) -> float | None:
    """Return the ratio of a run's tokens to the `tokens` of its direct call; None where one is
    unknown."""
    run_tokens = usage.total.total_tokens
    if usage.unreported or of_direct.unreported or not tokens:
        return None
    return run_tokens / tokens if run_tokens else None


def _explain_lack(direct: RunResult) -> str:
    """Describe why the answer of a direct call was not compared."""
    if direct.error:
        return direct.error.message
    if direct.exit_status == 0:
        return "the caps of the run left too few calls for a comparison"
    return f"the direct call ended {direct.termination_reason}"


def require_answer(result: RunResult, settings: Settings) -> None:
    """Raise ConfigError for a run that has nothing to compare with a direct call."""
    if not has_whole_answer(result):
        raise ConfigError(
            "this run has no whole answer to compare", hint="Run it to its end first."
        )
    if settings.mode.kind == "single":
        raise ConfigError("this run is one direct call itself: there is nothing to compare it with")
