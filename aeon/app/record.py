"""The record of a run: its origin before the first call (`run.json`), and the result of its
outcome."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from aeon.app import tools
from aeon.app.calibration import count_looks, find_deviations
from aeon.app.job import Job
from aeon.app.process import Process
from aeon.checks.selection import CheckSet
from aeon.config.compose.literal import Composition, key_of
from aeon.config.compose.recorded import RECORDED_APART, record
from aeon.config.origin import (
    FileOrigin,
    Origin,
    ParentOrigin,
    ProviderOrigin,
    RecordedFile,
    digest_of,
)
from aeon.config.settings import Settings, find_named_file
from aeon.domain.assessment import ConvergenceScores
from aeon.domain.checks import OuterCheck
from aeon.domain.graph import by_id, follow_replacements
from aeon.domain.history import (
    Advisory,
    AdvisoryKind,
    ExecutionPass,
    Outcome,
    RunState,
    TerminationReason,
)
from aeon.domain.outcome import latest_assessed
from aeon.domain.plan import Plan, PlanStep, StepState
from aeon.domain.request import InputFile, Usage, add_costs
from aeon.domain.result import (
    Degradation,
    Hashes,
    Overrun,
    ParentRun,
    ProviderReport,
    RunResult,
    Saved,
    Timings,
    TokenUsage,
    TTLReport,
    versions,
)
from aeon.domain.values import JsonMapping, JsonObject
from aeon.execution.settings import MOST_TOOL_ROUNDS
from aeon.files.secret_forms import mask_text
from aeon.llm.prices import PriceBook, price_book
from aeon.llm.settings import CustomProvider, EndpointSettings, ProviderSettings
from aeon.llm.stack import build as stack
from aeon.llm.stack.limits import LimitSettings
from aeon.observability.ledger import Ledger
from aeon.report.bought import find_bought, find_open_issues
from aeon.report.words import count_noun
from aeon.store.opening import describe_place, locate_shared_store, store_in
from aeon.store.session import Session
from aeon.tools.registry import ToolRegistry, name_missing_tool
from aeon.tools.settings import ToolSettings

_ASKED_BY = (
    "plan_file",
    "convergence.criteria_file",
    "memory.entries_file",
    "answer.schema",
    "provider.scenario",
)
_REVIEW = "Resume the run with `store.retry_unusable=all`: it asks for the review again."
_COMPARISON = "Resume the run with `store.retry_unusable=all`: it asks for the comparison again."
_REMEDIES_OF_ENDS = {
    "max_tool_rounds": "Allow more rounds, or describe more exactly what the step has to look up.",
    "budget": "Raise the budget: ttl.limit, or ttl.base in core mode.",
    "repeated": "The model asked for the same call again and again: describe more closely what the "
    "step is to look up, or take another model.",
}
# Stated by the result itself, or by their digests.
_NOT_IN_RESULT = {"task", "task_file", "inputs", "input_files", "input_as", "resume"}


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a run. `plan` is the user's own; `task_in_plan`: the plan file states the task.
    `files` are the inputs that are files for the model. `checks` are those of the dataset's `row`
    that the run is for, if any, as prepared from `row_checks`. `judged` is the answer that is only
    judged, `rival` another answer to compare this run's with."""

    task: str
    inputs: Mapping[str, str]
    context: JsonObject | None = None
    plan: Plan | None = None
    task_in_plan: bool = False
    checks: CheckSet | None = None
    row_checks: Mapping[str, OuterCheck] = field(default_factory=dict)
    row: JsonMapping | None = None
    judged: str | None = None
    rival: str | None = None
    files: Mapping[str, InputFile] = field(default_factory=dict)


@dataclass
class Identity:
    """A run with its work and everything it shares."""

    shared: Process
    work: Work
    run_id: str = field(default_factory=lambda: uuid4().hex[:12])


def _of_endpoint(provider: ProviderSettings, name: str) -> str | None:
    return getattr(provider, name) if isinstance(provider, EndpointSettings) else None


def make_origin(run: Identity, started: str, directory: Path) -> Origin:
    """Return the content of `run.json` in `directory`, for a run that is about to begin."""
    job = run.shared.job
    settings = job.settings
    parent = run.shared.parent
    provider = job.settings.provider
    composition = job.composition or Composition()
    recorded, missing = record(job.chosen)
    return Origin(
        run_id=run.run_id,
        directory=str(directory.absolute()),
        parent=ParentOrigin(path=str(parent.path), run_id=parent.origin.run_id) if parent else None,
        ancestors=(*parent.ancestors, *parent.gone) if parent else (),
        overrides=_list_typed(job),
        choices=_list_choices(job),
        settings=recorded,
        missing=missing,
        config_dir=str(composition.config_dir) if composition.config_dir else None,
        config_name=composition.config_name,
        task=run.work.task,
        task_in_plan=run.work.task_in_plan,
        inputs=dict(run.work.inputs),
        input_files={
            name: RecordedFile.model_validate(file.describe())
            for name, file in run.work.files.items()
        },
        context=run.work.context,
        checks=dict(run.work.row_checks),
        answer=run.work.judged,
        provider=ProviderOrigin(
            kind=provider.kind,
            model=provider.model,
            base_url=_of_endpoint(provider, "base_url"),
            api_key_env=_of_endpoint(provider, "api_key_env"),
            adapter=provider.adapter if isinstance(provider, CustomProvider) else None,
        ),
        synthetic=run.shared.synthetic,
        store_mode=settings.store.mode,
        working_directory=str(Path.cwd()),
        files=_list_named_files(settings),
        components=settings.components.describe(),
        hashes=run.shared.digests,
        versions=versions(),
        started=started,
    )


def _list_named_files(settings: Settings) -> dict[str, FileOrigin]:
    files = {}
    for key in _ASKED_BY:
        path = find_named_file(settings, key)
        digest = digest_of(path) if path else None
        if digest:
            files[key] = FileOrigin(path=str(path), sha256=digest)
    return files


def _list_typed(job: Job) -> tuple[str, ...] | None:
    """Return the typed overrides, after those of the run that this one resumes."""
    if job.composition is None:
        return None
    earlier = job.origin.overrides or () if job.origin else ()
    return _join(earlier, job.composition.overrides)


def _list_choices(job: Job) -> tuple[str, ...] | None:
    """Return the typed overrides without those of a project file."""
    earlier = job.origin.choices if job.origin else ()
    if job.composition is None or job.composition.of_project is None or earlier is None:
        return None
    typed = list(job.composition.overrides)
    for text in job.composition.of_project:
        if text in typed:
            typed.remove(text)
    return _join(earlier, typed)


def _join(earlier: Iterable[str], today: Iterable[str]) -> tuple[str, ...]:
    selected = _select_typed(today)
    given = set(map(key_of, selected))
    typed = (*(text for text in earlier if key_of(text) not in given), *selected)
    # Those that read the environment are composed again; the others are only shown.
    return tuple(text if "${oc.env:" in text else mask_text(text) for text in typed)


def _select_typed(overrides: Iterable[str]) -> tuple[str, ...]:
    """Select the overrides of settings that are recorded together: neither the task, nor how and
    where jobs run."""
    return tuple(
        text
        for text in overrides
        if re.split("[./]", key_of(text))[0] not in (*RECORDED_APART, "hydra")
    )


def make_result(
    run: Identity,
    outcome: Outcome,
    ledger: Ledger,
    session: Session,
    timings: Timings,
    of_multirun: Path | None,
) -> RunResult:
    """Return the result of a run that has ended; `of_multirun` is the folder of its multirun."""
    shared = run.shared
    state = outcome.state
    reason = outcome.termination_reason
    assessed = _find_assessed(outcome)
    result = RunResult(
        run_id=run.run_id,
        parent=_parent_run(run, session, of_multirun),
        synthetic=shared.synthetic,
        task=run.work.task,
        answer=outcome.answer,
        converged=outcome.converged,
        termination_reason=reason,
        overrun=find_overrun(reason, shared.settings.limits, ledger.usage().total, timings),
        error=outcome.error,
        scores=_find_scores(assessed),
        assessed_pass=assessed.pass_number if assessed else None,
        checks=outcome.checks,
        best_pass=outcome.best_pass,
        passes=outcome.history.overall_statistics.total_passes,
        ttl=_report_ttl(state),
        ttl_expiration=outcome.ttl_expiration,
        usage=ledger.usage(),
        repairs=ledger.repairs(),
        advisories=(*state.advisories, *_advise_on_calibration(run, outcome, ledger)),
        follow_up_questions=state.plan.questions if state.plan else (),
        refused_actions=state.refused,
        degraded=find_degraded(state, shared.settings.tools, shared.registry),
        steps_left=_steps_left(state.plan),
        unusable_steps=_unusable_steps(state.plan, session),
        unusable_calls=tuple(sorted(session.unusable_calls)),
        self_judged=not shared.synthetic and _is_self_judged(ledger.models()),
        timings=timings,
        versions=versions(),
        provider=_provider_report(shared, ledger),
        hashes=_hash_sources(run),
        configuration=shared.settings.model_dump(mode="json", exclude=_NOT_IN_RESULT),
        history=outcome.history,
    )
    return _describe_answer(result, assessed, ledger)


def _advise_on_calibration(run: Identity, outcome: Outcome, ledger: Ledger) -> Iterator[Advisory]:
    """Yield the advisory of a run that was not judged as its thresholds were calibrated."""
    assessed = latest_assessed(outcome.state.passes)
    if assessed is None:
        return
    judges = ledger.models().get("grader", ())
    looks = count_looks(outcome.state.passes, run.shared.settings.convergence)
    of_row = run.work.checks
    rubrics = run.shared.checks.rubrics if of_row is None else of_row.rubrics
    if found := list(find_deviations(run.shared, rubrics, judges, looks)):
        message = f"The thresholds promise nothing for this run: {'; '.join(found)}."
        yield Advisory(kind="not_calibrated", message=message, pass_number=assessed.pass_number)


def _find_assessed(outcome: Outcome) -> ExecutionPass | None:
    """Return the pass whose judgement applies to the answer: the one that the answer was chosen
    from, if it was judged, else the latest judged one."""
    passes = outcome.state.passes
    chosen = passes[outcome.answer_pass] if outcome.answer_pass is not None else None
    judgement = chosen.evaluation_results.convergence if chosen else None
    return chosen if judgement and judgement.evaluated else latest_assessed(passes)


def _describe_answer(
    result: RunResult, assessed: ExecutionPass | None, ledger: Ledger
) -> RunResult:
    """Add what was found in the answer, and what the passes bought."""
    final = result.history.final_convergence
    found = {
        "reason_codes": final.reason_codes if final else (),
        "explanation": final.explanation if final else "",
        "open_issues": find_open_issues(assessed),
        "bought": find_bought(result, ledger.usage_up_to),
    }
    return result.model_copy(update=found)


def _find_scores(assessed: ExecutionPass | None) -> ConvergenceScores | None:
    assessment = assessed.evaluation_results.convergence if assessed else None
    return assessment.scores if assessment else None


def _report_ttl(state: RunState) -> TTLReport:
    remaining = max(0, state.ttl_allocated - state.ttl_used)
    return TTLReport(allocated=state.ttl_allocated, used=state.ttl_used, remaining=remaining)


def _hash_sources(run: Identity) -> Hashes:
    inputs = {name: sha256(text) for name, text in sorted(run.work.inputs.items())}
    inputs |= {name: file.sha256 for name, file in run.work.files.items()}
    digests = run.shared.digests
    return Hashes(
        task=sha256(run.work.task),
        inputs=inputs,
        prompts=digests["prompts"],
        schemas=digests["schemas"],
        configuration=digests["configuration"],
    )


def find_overrun(
    reason: TerminationReason, limits: LimitSettings, spent: TokenUsage, timings: Timings
) -> Overrun | None:
    """Return by how much a cap was exceeded, first that which ended the run; None where none
    was."""
    figures = {
        "max_tokens": (limits.max_tokens, spent.total_tokens),
        "max_cost": (limits.max_cost, spent.cost),
        "max_seconds": (limits.max_seconds, round(timings.total_seconds, 1)),
    }
    for limit in sorted(figures, key=lambda name: name != reason):
        cap, used = figures[limit]
        if cap and used and used > cap:
            return Overrun(limit=limit, cap=cap, used=used)
    return None


def _steps_left(plan: Plan | None) -> dict[str, StepState]:
    steps = plan.steps if plan else ()
    done = ("complete", "replaced", "skipped")
    return {step.step_id: step.state for step in steps if step.state not in done}


def _unusable_steps(plan: Plan | None, session: Session) -> tuple[str, ...]:
    """Return the steps that failed because a model's answer could not be used."""
    failed = [step for step, state in _steps_left(plan).items() if state == "failed"]
    return tuple(step for step in failed if step in session.unusable_steps)


def _is_self_judged(models: Mapping[str, Sequence[str]]) -> bool:
    workers = models.get("worker", ())
    return any(model in workers for model in models.get("grader", ()))


def find_degraded(
    state: RunState, settings: ToolSettings, registry: ToolRegistry
) -> tuple[Degradation, ...]:
    """Return what a run that ended in this state had to do without; `registry` holds the tools of
    its process."""
    return (
        *_list_missing_tools(state, settings, registry),
        *_servers_down(registry),
        *_list_lost_reviews(state.advisories),
        *_list_lost_comparisons(state.passes),
        *_list_ended_steps(state),
    )


def _list_missing_tools(
    state: RunState, settings: ToolSettings, registry: ToolRegistry
) -> Iterator[Degradation]:
    """Yield the steps whose tool was missing, also those that a refinement left to the model, by
    taking the tool away or by another step in their place."""
    # Refinement may have taken the tool from the step, but the advisory still names it.
    missing = _list_advised_steps(state, "unknown_tool")
    fallbacks = _list_advised_steps(state, "fallback_step")
    steps = by_id(state.plan.steps) if state.plan else {}
    for step in steps.values():
        tool = name_missing_tool(missing.get(step.step_id, ""))
        last = steps.get(follow_replacements(steps, step.step_id))
        if tool is None or last is None:
            continue
        if outcome := _describe_outcome(last, is_fallback=last.step_id in fallbacks):
            yield _describe_missing_tool(step, tool, outcome, settings, registry)


def _list_advised_steps(state: RunState, kind: AdvisoryKind) -> dict[str | None, str]:
    return {one.step_id: one.message for one in state.advisories if one.kind == kind}


def _describe_outcome(step: PlanStep, *, is_fallback: bool) -> str:
    """Describe how a step ended whose tool was missing; empty while it is open."""
    by_model = is_fallback or (step.tool is None and not step.is_for_person)
    if by_model and step.status == "complete":
        return "the model did the step"
    if by_model and step.blocked:
        return "the model could not do the step"
    return "the step failed" if step.status == "failed" else ""


def _describe_missing_tool(
    step: PlanStep, tool: str, outcome: str, settings: ToolSettings, registry: ToolRegistry
) -> Degradation:
    overrides = tools.how_to_register(tool, settings, registry)
    return Degradation(
        kind="tool_missing",
        step=step.step_id,
        message=f"{registry.describe_missing(tool)}: {outcome}",
        remedy=tools.describe_remedy(tool, overrides, registry),
        overrides=overrides,
    )


def _servers_down(registry: ToolRegistry) -> Iterator[Degradation]:
    for name in registry.servers_down:
        yield Degradation(
            kind="server_down",
            message=tools.describe_server_down(name, registry),
            remedy=tools.server_remedy(name),
        )


def _list_lost_reviews(advisories: Sequence[Advisory]) -> Iterator[Degradation]:
    for one in advisories:
        if one.kind == "evaluation_unavailable":
            yield Degradation(
                kind="review_lost",
                message=f"Pass {one.pass_number} lacks {_name_lost(one.message)}",
                remedy=_REVIEW,
            )


def _list_lost_comparisons(passes: Sequence[ExecutionPass]) -> Iterator[Degradation]:
    """Yield the comparisons of answers that failed; one that could not be paid has no error."""
    for one in passes:
        compared = one.evaluation_results.comparison
        if compared and compared.outcome == "unknown" and compared.explanations:
            yield Degradation(
                kind="comparison_lost",
                message=f"Pass {one.pass_number} lacks a comparison of answers: "
                f"{' '.join(compared.explanations)}",
                remedy=_COMPARISON,
            )


def _list_ended_steps(state: RunState) -> Iterator[Degradation]:
    """Yield the steps that were ended while the model still asked for tool calls."""
    for step in state.plan.steps if state.plan else ():
        result = state.results.get(step.step_id)
        used = result.tool_use if result is not None else None
        if used is None or step.replaced_by is not None or used.ended_by not in _REMEDIES_OF_ENDS:
            continue
        rounds = len(used.rounds)
        more = (f"execution.max_tool_rounds={min(2 * rounds, MOST_TOOL_ROUNDS)}",)
        yield Degradation(
            kind="tools_ended",
            step=step.step_id,
            message=f"It was finished after {count_noun(rounds, 'round')} of tool calls",
            remedy=_REMEDIES_OF_ENDS[used.ended_by],
            overrides=more if used.ended_by == "max_tool_rounds" else (),
        )


def _name_lost(message: str) -> str:
    """Name the lost review or assessment, from the advisory's message: the name of the call and its
    error."""
    call, _, error = message.partition(": ")
    return f"{'an assessment' if call == 'convergence' else 'a review'}: {error}"


def _provider_report(shared: Process, ledger: Ledger) -> ProviderReport:
    provider = shared.settings.provider
    return ProviderReport(
        kind=provider.kind,
        base_url=_of_endpoint(provider, "base_url"),
        models=ledger.models(),
        endpoints=ledger.endpoints(),
        findings=stack.findings(shared.adapter),
    )


def _parent_run(run: Identity, session: Session, of_multirun: Path | None) -> ParentRun | None:
    """Return where a run's reused answers came from and what they saved; None for a run that reused
    none."""
    store = run.shared.settings.store
    parent = run.shared.parent
    run_id = None
    if parent is not None:
        path = str(parent.path)
        run_id = parent.origin.run_id
    elif store.mode in ("cache", "replay"):
        path = describe_place(store.path or locate_shared_store(store))
    elif of_multirun is not None and store.mode == "record" and store.share_in_multirun:
        path = str(store_in(of_multirun, store.own_backend))
    else:
        return None
    saved = _measure_saved(session, price_book(run.shared.settings.provider))
    return ParentRun(path=path, run_id=run_id, saved=saved, differing=session.differing)


def _measure_saved(session: Session, prices: PriceBook) -> Saved:
    usage = sum(session.saved_usage.values(), Usage())
    costs = [
        prices.cost(of_model, answered=model) for model, of_model in session.saved_usage.items()
    ]
    return Saved(
        model_calls=session.saved["model"],
        tool_calls=session.saved["tool"],
        person_answers=session.saved["person"],
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cost=add_costs(costs) if costs else None,
    )


def sha256(text: str) -> str:
    """Return the SHA-256, hex, of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()
