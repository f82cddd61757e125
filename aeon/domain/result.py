"""The result of a run, which is also the content of `result.json`."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from textwrap import shorten
from typing import Any, Literal

from pydantic import Field

from aeon.domain.assessment import (
    SCORE_CODES,
    ComparedWithEarlier,
    ConvergenceScores,
    TTLExpirationResponse,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import Advisory, BestPass, ExecutionHistory, RunError, TerminationReason
from aeon.domain.plan import FollowUpQuestion, OpenQuestion, StepState
from aeon.domain.refinement import RefusedAction, RepairRecord
from aeon.domain.report import Severity
from aeon.domain.request import Usage, add_costs
from aeon.domain.values import Address, Frame, JsonObject, Value, as_frame

DISTRIBUTIONS = ("aeon-engine", "hydra-core", "jinja2", "jsonschema", "pydantic")
_SHOWN = 70
SIMULATED_LINE = "[SIMULATED: no model was called]"


class TokenUsage(Value):
    """Tokens and requests; `cost` is in the currency of the prices (US dollars unless configured),
    None if unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None

    @classmethod
    def add_up(cls, spent: Iterable[tuple[Usage, float | None]]) -> TokenUsage:
        """Add up usages and their costs; the cost is None if one of them is unknown."""
        total = Usage()
        costs = []
        for usage, cost in spent:
            total += usage
            costs.append(cost)
        return cls(**total.by_name(), total_tokens=total.total_tokens, cost=add_costs(costs))


class UsageReport(Value):
    """Usage of a run; `unpriced` and `unreported` are the models whose cost or whose total usage is
    unknown."""

    total: TokenUsage = TokenUsage()
    by_call: dict[str, TokenUsage] = Field(default_factory=dict)
    by_role: dict[str, TokenUsage] = Field(default_factory=dict)
    by_model: dict[str, TokenUsage] = Field(default_factory=dict)
    by_pass: dict[int, TokenUsage] = Field(default_factory=dict)
    unpriced: tuple[str, ...] = ()
    unreported: tuple[str, ...] = ()


class TTLReport(Value):
    """The budget in LLM cycles: allocated and used."""

    allocated: int
    used: int
    remaining: int


class Timings(Value):
    """Start and end of a run (ISO 8601, UTC), and its seconds in total, by call name and by
    phase."""

    start_time: str
    end_time: str
    total_seconds: float
    seconds_by_call: dict[str, float] = Field(default_factory=dict)
    seconds_by_phase: dict[str, float] = Field(default_factory=dict)


class ProviderReport(Value):
    """The models that answered, and the number of requests per endpoint; `findings` are the
    deficiencies of its servers."""

    kind: str
    base_url: Address | None = None
    models: dict[str, list[str]] = Field(default_factory=dict)
    endpoints: dict[str, int] = Field(default_factory=dict)
    findings: tuple[str, ...] = ()


class Hashes(Value):
    """SHA-256 (hex) of the inputs of a run."""

    task: str
    inputs: dict[str, str]
    prompts: str
    schemas: str
    configuration: str


class Saved(Value):
    """Requests answered from earlier answers; `cost` is None if unknown."""

    model_calls: int = 0
    tool_calls: int = 0
    person_answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None


class ParentRun(Value):
    """The source of a run's stored answers: another run's directory, a store or a cassette
    (`path`). `differing` counts the answers of a replay whose request differs from the recorded one
    (`store.match=order`)."""

    path: str
    run_id: str | None = None
    saved: Saved = Saved()
    differing: int = 0


DegradationKind = Literal[
    "tool_missing", "server_down", "review_lost", "comparison_lost", "tools_ended"
]


class Degradation(Value):
    """Something that a run did without. `tool_missing`: the tool of `step` was not registered, so
    the model did the step, or it failed; `server_down`: an MCP server did not start; `review_lost`:
    no review, or no assessment, was available; `comparison_lost`: a comparison of two answers
    failed; `tools_ended`: `step` was finished while the model still requested tool calls. `remedy`
    says what to do, `overrides` are the overrides to type, if any."""

    kind: DegradationKind
    step: str | None = None
    message: str
    remedy: str
    overrides: tuple[str, ...] = ()


class Overrun(Value):
    """How far the last calls exceeded a cap: tokens, seconds, or cost. `limit` is its key under
    `limits`; an older result leaves it empty, as only the cap that ended the run was reported."""

    limit: str = ""
    cap: float
    used: float


class OpenIssue(Value):
    """A known fault of the answer: found by its `review`, with a severity, or by the `judge`, whose
    faults are LOW; None for one that prevents convergence."""

    source: Literal["review", "judge"]
    kind: str
    severity: Severity | None = None
    description: str
    step_id: str | None = None


class AnswerPoint(Value):
    """The answer after a pass: its checks (as `2 of 3`) and scores, and the tokens, cost and
    seconds up to the end of its evaluation."""

    pass_number: int
    checks: str | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


class PassesBought(Value):
    """The effect of a run's passes: its `first` complete answer and the `last`, which it returns;
    the number of passes after the first, and the share of all tokens, in [0, 1], that came after
    its evaluation; the share of words that `changed`; how often a later answer was compared with an
    earlier one, by outcome; the judged pass after which no judged pass gained anything, and the
    last judged pass."""

    first: AnswerPoint
    last: AnswerPoint
    later_passes: int
    later_share: float
    changed: float
    comparisons: dict[ComparedWithEarlier, int] = Field(default_factory=dict)
    last_gain: int | None = None
    last_judged: int | None = None


class BaselineReport(Value):
    """One direct call for the task by the worker of a run. `outcome` compares the run's answer with
    its `answer`, `explanations` say why, also why it is `unknown`; `times` is the ratio of the
    run's tokens to its tokens (None if one is unknown). Tokens and cost are those of the direct
    call alone, which are not part of the run's; `folder` is its own folder in the run's
    directory."""

    outcome: ComparedWithEarlier
    explanations: tuple[str, ...] = ()
    answer: str
    checks: tuple[CheckOutcome, ...] = ()
    tokens: int
    cost: float | None = None
    times: float | None = None
    folder: str | None = None


class RunResult(Value):
    """The result of a run: `history` goes to `history.json`, everything else to `result.json`.

    `scores` are those of `assessed_pass`: the pass that the answer is from, or, if no model
    assessed it, the latest that one did; `reason_codes` and `explanation` come from the evaluation
    of the answer. `degraded` is what the run did without,
    `steps_left` the state of each step that is not complete, by id. `unusable_steps` failed because
    a model's answer was unusable, `unusable_calls` are the names of all calls with such answers:
    when a run that did not end well is resumed, these are requested again. `overrun` is None unless
    a cap was exceeded, whatever ended the run. `self_judged`: a model that did the work also
    judged it. `checks` are the outcomes of the checks on this answer. `open_issues` are the known
    faults still in the answer; `waits_for` are the questions that a person must answer before the
    run can continue; `bought` is None if no pass had a complete answer, `baseline` if no direct
    call was made for comparison.
    """

    format: Literal["aeon.domain.result/1"] = "aeon.domain.result/1"
    run_id: str
    parent: ParentRun | None = None
    synthetic: bool
    task: str
    open_issues: tuple[OpenIssue, ...] = ()
    answer: str
    converged: bool
    termination_reason: TerminationReason
    overrun: Overrun | None = None
    error: RunError | None = None
    scores: ConvergenceScores | None = None
    assessed_pass: int | None = None
    checks: tuple[CheckOutcome, ...] = ()
    reason_codes: tuple[str, ...] = ()
    explanation: str = ""
    best_pass: BestPass | None = None
    passes: int = 0
    ttl: TTLReport
    ttl_expiration: TTLExpirationResponse | None = None
    usage: UsageReport
    repairs: tuple[RepairRecord, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    follow_up_questions: tuple[FollowUpQuestion, ...] = ()
    waits_for: tuple[OpenQuestion, ...] = ()
    refused_actions: tuple[RefusedAction, ...] = ()
    degraded: tuple[Degradation, ...] = ()
    steps_left: dict[str, StepState] = Field(default_factory=dict)
    unusable_steps: tuple[str, ...] = ()
    unusable_calls: tuple[str, ...] = ()
    self_judged: bool = False
    bought: PassesBought | None = None
    baseline: BaselineReport | None = None
    timings: Timings
    versions: dict[str, str]
    provider: ProviderReport
    hashes: Hashes
    configuration: JsonObject = Field(default_factory=dict)
    history: ExecutionHistory

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield what `repr` and `print` show: how the run ended, and the beginning of its
        answer."""
        yield "run_id", self.run_id
        yield "termination_reason", self.termination_reason
        yield "passes", self.passes
        yield "requests", self.usage.total.requests
        if self.error is not None:
            yield "error", shorten(self.error.message, _SHOWN, placeholder="...")
        yield "answer", shorten(self.answer, _SHOWN, placeholder="...")

    def to_frame(self) -> Frame:
        """Return a pandas frame with one row, the run in figures, to combine with those of other
        runs. `history.to_frame()` has its passes and steps. Raises ConfigError without pandas."""
        names = {"run_id", "synthetic", "task", "termination_reason", "converged", "passes"}
        scores = self.scores or ConvergenceScores()
        row = self.model_dump(include=names) | {
            name: scores[f"{name}_score"] for name in SCORE_CODES
        }
        row |= {
            "ttl_used": self.ttl.used,
            **self.usage.total.model_dump(),
            "seconds": self.timings.total_seconds,
        }
        return as_frame([row])

    def _repr_html_(self) -> str:
        total = self.usage.total
        ttl = self.ttl
        seconds = self.timings.total_seconds
        cost = "unknown" if total.cost is None else f"{total.cost:.4f}"
        spent = (
            f"{self.passes} passes, TTL {ttl.used} of {ttl.allocated}, {total.requests} requests, "
        )
        spent += f"{total.total_tokens:,} tokens, cost {cost}, {seconds:.1f} s"
        ended = f"{self.termination_reason}: {shorten(self.task, 3 * _SHOWN, placeholder='...')}"
        error = f"{self.error.message} {self.error.hint}" if self.error else ""
        lines = (SIMULATED_LINE if self.synthetic else "", ended, error, spent)
        text = "".join(f"<p><bdi>{escape(line)}</bdi></p>" for line in lines if line)
        answer = (
            "<pre dir='auto' style='white-space: pre-wrap; text-align: "
            f"start'>{escape(self.answer)}</pre>"
        )
        details = f"<details><summary>answer</summary>{answer}</details>"
        return f"{text}{self.history._repr_html_()}{details}"

    @property
    def exit_status(self) -> int:
        """The exit status: 0 converged (core mode: every step complete), 1 failed, 3 finished
        without convergence, 6 waiting for a person, 130 interrupted."""
        if self.converged or self.termination_reason == "completed":
            return 0
        return {"failed": 1, "waiting": 6, "interrupted": 130}.get(self.termination_reason, 3)


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of Python, Aeon and its dependencies."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
