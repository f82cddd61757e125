"""Results from outside the model, by tools and by checks of an answer; and the settings of
checks."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from aeon.domain.values import JsonObject, StartsCode, Unneeded, Value

ToolErrorKind = Literal[
    "unknown", "invalid_arguments", "refused", "timeout", "raised", "not_json", "invalid_output"
]


class ToolResult(Value):
    """One call of a tool (Sprint 1, FR-022, FR-054, FR-055). `output` is the JSON value it
    returned, `text` the same for a prompt; if it was too long, both are the cut text, `cut` is the
    number of characters left out and `kept` the limit, the tool's own if `own_limit`. `approved`: a
    person was asked and allowed the call. `replayed`: the result of an earlier call; `repeated`: an
    earlier call was under way when its run was cut off. Neither of these two is in an artefact."""

    tool: str
    arguments: JsonObject
    output: Any = None
    text: str = ""
    error: str | None = None
    error_kind: ToolErrorKind | None = None
    seconds: float = 0.0
    cut: int = 0
    kept: int = 0
    own_limit: bool = False
    approved: bool = False
    replayed: bool = Field(default=False, exclude=True)
    repeated: bool = Field(default=False, exclude=True)


class CheckBase(Value):
    """Fields of all checks: whether the run converges only if it passes, and its weight when
    answers are compared."""

    type: str
    required: bool = True
    weight: float = Field(default=1.0, ge=0)


class ComparingCheck(CheckBase):
    """Compares an answer with `value`, and starts nothing. `threshold`: the most edits for
    `levenshtein`, the largest difference for `similar-number`."""

    type: Literal[
        "equals",
        "not-equals",
        "contains",
        "not-contains",
        "icontains",
        "not-icontains",
        "contains-all",
        "not-contains-all",
        "contains-any",
        "not-contains-any",
        "starts-with",
        "not-starts-with",
        "regex",
        "not-regex",
        "is-json",
        "not-is-json",
        "word-count",
        "not-word-count",
        "levenshtein",
        "not-levenshtein",
        "similar-number",
        "not-similar-number",
    ]
    value: JsonValue = None
    threshold: float | None = Field(default=None, ge=0)


class RubricCheck(CheckBase):
    """Asks the judge, as for a criterion, whether the statement `value` holds."""

    type: Literal["llm-rubric", "not-llm-rubric"]
    value: str = Field(min_length=1)


class PythonCheck(CheckBase):
    """Calls the function `value`, `module:function`, with the answer and a CheckContext. A returned
    number passes if it is at least `threshold`, or without one above 0. Without a value, as in a
    cassette, it can only be replayed."""

    type: Literal["python", "not-python"]
    value: Unneeded[StartsCode[str]] = ""
    threshold: float | None = None
    timeout_seconds: float = Field(default=60, gt=0, le=86_400)


class CommandCheck(CheckBase):
    """Runs the program `value` in a scratch folder with copies of `files` and the answer as `file`;
    exit status 0 passes. With `extract`, the file contains only the answer's first code block.
    Without a value, as in a cassette, it can only be replayed."""

    type: Literal["command", "not-command"]
    value: Unneeded[StartsCode[tuple[str, ...]]] = ()
    files: Unneeded[StartsCode[tuple[Path, ...]]] = ()
    file: str = Field(default="answer.md", pattern=r"^[^/\\\x00]+$")
    extract: Literal["code"] | None = None
    timeout_seconds: float = Field(default=60, gt=0, le=86_400)
    max_output_characters: int = Field(default=4_000, ge=200)

    @field_validator("value", "files", mode="before")
    @classmethod
    def _as_words(cls, given: object) -> object:
        if isinstance(given, str):
            return (given,)
        if not isinstance(given, list):
            return given
        # YAML numbers need no quotes; `true` is an int to Python, and no word.
        return [str(word) if type(word) in (int, float) else word for word in given]


class ToolCheck(CheckBase):
    """Calls the registered tool `value` with the answer as its argument `argument`, and interprets
    the result like that of a function. Without a value, as in a cassette, it can only be replayed.
    """

    type: Literal["tool", "not-tool"]
    value: Unneeded[StartsCode[str]] = ""
    argument: str = "answer"
    threshold: float | None = None


def _list_types(*models: type[CheckBase]) -> list[str]:
    return [name for model in models for name in get_args(model.model_fields["type"].annotation)]


_STARTING_NOTHING = _list_types(ComparingCheck, RubricCheck)
_STARTING_CODE = _list_types(PythonCheck, CommandCheck, ToolCheck)


def _require_type(given: object, known: Sequence[str]) -> Any:
    if isinstance(given, CheckBase) or not isinstance(given, dict):
        return given
    kind = given.get("type")
    if kind in known:
        return given
    if kind is None:
        raise ValueError("a check needs a `type`, such as contains")
    if kind in _STARTING_CODE:
        raise ValueError(
            f"a check of type {kind} starts code: put it into the configuration, as "
            "convergence.checks.NAME, and name it here by {}"
        )
    near = get_close_matches(str(kind), known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    plain = [name for name in known if not name.startswith("not-")]
    raise ValueError(
        f"there is no type {str(kind)!r} of check; {meant}there are {', '.join(plain)}, and not- "
        "before each"
    )


def _require_any_type(given: object) -> Any:
    return _require_type(given, [*_STARTING_NOTHING, *_STARTING_CODE])


def _require_outer_type(given: object) -> Any:
    return given if given == {} else _require_type(given, _STARTING_NOTHING)


CheckSettings = Annotated[
    ComparingCheck | RubricCheck | PythonCheck | CommandCheck | ToolCheck,
    Field(discriminator="type"),
    BeforeValidator(_require_any_type),
]
"""`convergence.checks.NAME`."""


def is_negated(settings: CheckBase) -> bool:
    """Whether a check passes if its condition is false."""
    return settings.type.startswith("not-")


class NamedCheck(Value):
    """`{}` in a plan file or a dataset row: the configured check of this name."""


OuterCheck = Annotated[
    Annotated[ComparingCheck | RubricCheck, Field(discriminator="type")] | NamedCheck,
    BeforeValidator(_require_outer_type),
]
"""A check in a plan file or a dataset row: one that starts nothing, or the name of a configured
one."""


class CheckOutcome(Value):
    """The outcome of one check of an answer, or of the output of the step `step_id`. A `required`
    check that did not pass prevents convergence, and its `name` is the reason code; `weight` counts
    when answers are compared.

    `condition` is what a check that compares asks of the answer, in words. `feedback` is the
    check's message, empty if it passed silently. `measured` is False for a check
    that crashed, timed out or was unavailable: it has not passed, and `feedback` says why.
    """

    name: str
    type: str
    passed: bool
    score: float | None = None
    feedback: str = ""
    required: bool = True
    weight: float = Field(default=1.0, ge=0)
    measured: bool = True
    step_id: str | None = None
    condition: str = ""

    @property
    def view(self) -> JsonObject:
        """The outcome as prompts show it: feedback of a check that compares has its condition."""
        words = "feedback" if self.feedback else "condition"
        shown = self.model_dump(include={"name", "type", "step_id", "passed", words})
        return {key: value for key, value in shown.items() if value not in ("", None)}

    @property
    def blocks(self) -> bool:
        """Whether it prevents the run from converging."""
        return self.required and not self.passed


def find_failed_codes(checks: Sequence[CheckOutcome]) -> tuple[str, ...]:
    """Return the names of the checks that prevent convergence: its reason codes."""
    return tuple(check.name for check in checks if check.blocks)


def count_passed(checks: Sequence[CheckOutcome]) -> str:
    """Return how many checks passed, as `2 of 3`."""
    return f"{sum(check.passed for check in checks)} of {len(checks)}"


def weight_passed(checks: Sequence[CheckOutcome]) -> float:
    """Return the total weight of the checks that passed."""
    return sum(check.weight for check in checks if check.passed)
