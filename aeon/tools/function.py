"""A Python function with type hints and a docstring as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypedDict, Unpack, cast, get_type_hints, overload

from pydantic import PydanticUserError, TypeAdapter, validate_call
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.tools.registry import Tool

_UNNAMED = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values",
    inspect.Parameter.VAR_KEYWORD: "takes any name",
}


class _WithoutTitles(GenerateJsonSchema):
    """Schemas without titles: a parameter's title would repeat its name in every prompt."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        return False


class ToolOptions(TypedDict, total=False):
    """Tool fields that a function's signature and docstring do not provide; as in `Tool`."""

    name: str
    description: str
    examples: Sequence[JsonMapping]
    side_effects: bool
    pure: bool
    timeout_seconds: float | None
    max_output_characters: int | None


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a Tool from a function, sync or async, using its type hints and docstring: `@tool` or
    `@tool(name=...)`. Raises ConfigError for a function that lacks them, or has no JSON Schema."""

    def make(function: Callable[..., Any]) -> Tool:
        name = options.get("name") or str(getattr(function, "__name__", type(function).__name__))
        description = options.get("description") or inspect.getdoc(function)
        if not description:
            raise ConfigError(
                f"tool {name!r}: it has no docstring, from which a model learns what it does"
            )
        hints = _check_hints(function, name)
        try:
            arguments = TypeAdapter(cast(Any, function)).json_schema(
                schema_generator=_WithoutTitles
            )
            result = TypeAdapter(hints["return"]).json_schema(
                mode="serialization", schema_generator=_WithoutTitles
            )
        except (PydanticUserError, PydanticSchemaGenerationError) as error:
            raise ConfigError(f"tool {name!r}: {str(error).splitlines()[0]}") from error
        invoke = _invocation(function, hints["return"], inspect.iscoroutinefunction(function))
        made = Tool(name, description, arguments, result, invoke)
        more = {key: value for key, value in options.items() if key not in ("name", "description")}
        return replace(made, **{**more, "examples": tuple(options.get("examples", ()))})  # type: ignore[arg-type]

    return make if function is None else make(function)


def _check_hints(function: Callable[..., Any], name: str) -> JsonObject:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"tool {name!r}: a type hint cannot be used: {error}") from error
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _UNNAMED:
            raise ConfigError(
                f"tool {name!r}: parameter {parameter.name!r} {_UNNAMED[parameter.kind]}"
            )
        if parameter.name not in hints:
            raise ConfigError(f"tool {name!r}: parameter {parameter.name!r} has no type hint")
    if "return" not in hints:
        raise ConfigError(f"tool {name!r}: what it returns has no type hint")
    return hints


def _invocation(
    function: Callable[..., Any], returned: Any, is_async: bool
) -> Callable[[JsonMapping], Any]:
    call = validate_call(function)
    result = TypeAdapter(returned)

    @wraps(function, assigned=("__module__",), updated=())
    def invoke(arguments: JsonMapping) -> Any:
        if is_async:
            import asyncio  # slow to load, and only for such a tool

            value = asyncio.run(call(**arguments))
        else:
            value = call(**arguments)
        try:
            return result.dump_python(value, mode="json", warnings=False)
        except PydanticSerializationError:
            return value  # not JSON: the caller checks and reports that

    return invoke
