"""Scenario files, which script the simulated provider's answers, failures and latency.

A request goes through the rules of its call from top to bottom, then through those of "*"; the
first rule that matches and is not used up answers. Without one, the simulated answer is returned.
docs/scenarios.md explains the format.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    model_validator,
)

from aeon.domain import errors
from aeon.domain.errors import AnswerError, ConfigError, LLMError, ProviderError
from aeon.domain.request import CallName, LLMRequest, Usage
from aeon.domain.values import Value
from aeon.files.explain import explain
from aeon.files.located_yaml import LocatedYaml
from aeon.llm.roles import Count

CallOrAny = Literal[CallName, "*"]
_ProviderFailure = Literal[
    "connection", "timeout", "server", "rate_limit", "auth", "request", "not_an_api"
]
FailureKind = Literal[_ProviderFailure, "truncated", "refused", "filtered", "empty"]
_ERRORS: Mapping[str | int | None, type[ProviderError | AnswerError]] = {
    "connection": errors.ConnectionFailed,
    "timeout": errors.ConnectionFailed,
    "not_an_api": errors.NotAnAPI,
    "truncated": errors.Truncated,
    "refused": errors.Refused,
    "filtered": errors.Filtered,
    "empty": errors.EmptyAnswer,
    401: errors.AuthenticationFailed,
    403: errors.AuthenticationFailed,
    408: errors.ServerFailed,
    409: errors.ServerFailed,
    429: errors.RateLimited,
}
SEEDS = Path(__file__).parent / "seeds"
"""The scenarios of the seeds, each named by the seed's last digits and its character."""
_STATUSES = {"server": 500, "rate_limit": 429, "auth": 401, "request": 400}


def _spell_out(value: object) -> Any:
    """Expand the short forms `fail: timeout` and `fail: 503` to `{kind: timeout}` and `{status:
    503}`."""
    if isinstance(value, str):
        return {"kind": value}
    return {"status": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _to_list(value: object) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    tuple[Text, ...], Field(min_length=1), BeforeValidator(_to_list, Text | list[Text])
]
Numbers = Annotated[
    tuple[NonNegativeInt, ...],
    Field(min_length=1),
    BeforeValidator(_to_list, NonNegativeInt | list[NonNegativeInt]),
]
Status = Annotated[int, Field(ge=400, le=599)]


class Failure(Value):
    """A failure of the provider: its `kind`, or the HTTP `status` of the server. `retry_after`
    (seconds) needs a rate limit; `message` replaces the usual text."""

    kind: FailureKind | None = None
    status: Status | None = None
    retry_after: NonNegativeFloat | None = None
    message: str | None = None

    @model_validator(mode="after")
    def _is_one_failure(self) -> Failure:
        if (self.kind is None) == (self.status is None):
            raise ValueError("needs either `kind` or `status`")
        if self.retry_after is not None and self.kind != "rate_limit" and self.status != 429:
            raise ValueError("`retry_after` needs kind rate_limit or status 429")
        return self

    def error(self, usage: Usage | None = None, model: str = "") -> LLMError:
        """Return the error that an adapter raises for it; `usage` and `model` are those of an
        answer without content."""
        status = _STATUSES.get(self.kind or "", self.status)
        message = self.message or f"simulated by the scenario: {self.kind or f'status {status}'}"
        other = errors.ServerFailed if (status or 0) >= 500 else errors.RequestRefused
        kind = _ERRORS.get(status or self.kind, other)
        if issubclass(kind, AnswerError):
            return kind(message, usage=usage, model=model)
        return kind(message, status=status, retry_after=self.retry_after)


ShortFailure = Annotated[Failure, BeforeValidator(_spell_out, Failure | FailureKind | Status)]


class When(Value):
    """The requests that a rule matches: all given conditions must hold; of a list one value is
    enough, of `contains` all. `step_id`: the step of the call. `pass_number`: 0 while the plan is
    made. `phase`: the phase's name. `attempt`: 0 for the call itself, 1 and 2 for its repairs.
    `is_last_step`: the step is the last of its plan. `contains`: a text anywhere in the prompts."""

    step_id: Texts | None = None
    pass_number: Numbers | None = None
    phase: Texts | None = None
    attempt: Numbers | None = None
    is_last_step: bool | None = None
    contains: Texts | None = None

    def fits(self, request: LLMRequest) -> bool:
        """Whether a request matches."""
        for name in ("step_id", "pass_number", "phase", "attempt"):
            allowed = getattr(self, name)
            if allowed is not None and getattr(request.site, name) not in allowed:
                return False
        step = request.variables.get("step") or {}
        is_last = step.get("step_index") == step.get("total_steps")
        if self.is_last_step not in (None, is_last):
            return False
        return all(any(text in m.content for m in request.messages) for text in self.contains or ())


class Rule(Value):
    """One way to answer: an `answer` (JSON; missing parts are added), a raw `text`, a failure, or
    `simulated: true`. `times` limits its uses, counted per step if there is a `when`. Without it, a
    rule with `when` and the last rule of a list are unlimited, any other is used once.
    `latency_seconds` replaces the general one."""

    when: When | None = None
    times: Count | None = None
    answer: JsonValue = None
    text: str | None = None
    fail: ShortFailure | None = None
    simulated: Literal[True] | None = None
    latency_seconds: NonNegativeFloat | None = None

    @model_validator(mode="after")
    def _does_one_thing(self) -> Rule:
        given = [
            name
            for name in ("answer", "text", "fail", "simulated")
            if name in self.model_fields_set
        ]
        if len(given) > 1:
            raise ValueError(
                f"has {' and '.join(given)}; a rule does one of answer, text, fail, simulated"
            )
        if not given and self.latency_seconds is None:
            raise ValueError(
                "does nothing: give it one of answer, text, fail, simulated, or latency_seconds"
            )
        return self


Rules = Annotated[
    tuple[Rule, ...], Field(min_length=1), BeforeValidator(_to_list, Rule | list[Rule])
]


class Behaviour(Value):
    """The behaviour of a simulated model if no rule scripts its answer.

    `reviews_plan`: validation finds an issue in a fresh plan. `blocked_times`: how often the second
    step returns BLOCKED, and `on_blocked` what refinement then proposes. `malformed`: some answers
    need a repair. `refuses_addition`: validation rates a proposed addition CRITICAL.
    `revises_output`: an executed step is replaced. `never_enough`: scores stay low while the plan
    grows.
    """

    reviews_plan: bool = False
    blocked_times: NonNegativeInt = 0
    on_blocked: Literal["MODIFY", "SUBPLAN_CREATE", "nothing"] = "MODIFY"
    malformed: bool = False
    refuses_addition: bool = False
    revises_output: bool = False
    never_enough: bool = False


class Scenario(Value):
    """A scenario file: rules by call, or under "*". `seed` and `latency_seconds` override those of
    the provider, `behaviour` that of the seed."""

    seed: NonNegativeInt | None = None
    latency_seconds: NonNegativeFloat | None = None
    description: str = ""
    behaviour: Behaviour | None = None
    calls: dict[CallOrAny, Rules] = Field(default_factory=dict)


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario file. Raises ConfigError with file, line, mistake and what is
    allowed."""
    document = LocatedYaml(path)
    hint = "See `aeon docs scenarios`."
    if not isinstance(document.value, dict):
        allowed = ", ".join(Scenario.model_fields)
        raise ConfigError(f"{path}:1: a scenario is a mapping with any of: {allowed}", hint=hint)
    try:
        return Scenario.model_validate(document.value)
    except pydantic.ValidationError as error:
        mistakes = explain(error, document.value, Scenario)
        found = {(mistake.position(document).line, mistake.sentence()) for mistake in mistakes}
        raise ConfigError(
            "\n".join(f"{path}:{line}: {text}" for line, text in sorted(found)), hint=hint
        ) from error


def load_seed(seed: int) -> Scenario:
    """Return the packaged scenario of a seed: by its last two digits if they have their own, else
    by the last one."""
    by_digits = {path.name.partition("-")[0]: path for path in SEEDS.glob("*.yaml")}
    return load_scenario(by_digits.get(str(seed % 50)) or by_digits[str(seed % 10)])


class Script:
    """A scenario in use; thread-safe. Uses of a rule with `when` are counted per step id, so that
    concurrent steps do not take each other's."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._used: Counter[tuple[str, int, str | None]] = Counter()
        self._lock = threading.Lock()

    def take(self, request: LLMRequest) -> Rule | None:
        """Return the rule for a request and count its use; None if the simulated answer applies."""
        names: tuple[CallOrAny, ...] = (request.call, "*")
        with self._lock:
            for name in names:
                rules = self._scenario.calls.get(name, ())
                for index, rule in enumerate(rules):
                    step_id = None if rule.when is None else request.site.step_id
                    uses_left = self._uses_left(rule, rules, (name, index, step_id))
                    if uses_left and (rule.when is None or rule.when.fits(request)):
                        self._used[name, index, step_id] += 1
                        return rule
        return None

    def _uses_left(self, rule: Rule, rules: Rules, use: tuple[str, int, str | None]) -> bool:
        if rule.times is None and (rule.when is not None or rule is rules[-1]):
            return True
        return self._used[use] < (rule.times or 1)
