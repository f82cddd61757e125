"""A Python function with type hints and a docstring as a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_type_hints, overload

from pydantic import PydanticUserError, TypeAdapter, validate_call
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from aeon.domain.errors import ConfigError
from aeon.tools.registry import Tool

_UNNAMED = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values",
    inspect.Parameter.VAR_KEYWORD: "takes any name",
}


class _WithoutTitles(GenerateJsonSchema):
    """Schemas without titles: a parameter's title would repeat its name in every prompt."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    side_effects: bool = False,
    pure: bool = False,
    timeout_seconds: float | None = None,
    max_output_characters: int | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    examples: Sequence[Mapping[str, Any]] = (),
    side_effects: bool = False,
    pure: bool = False,
    timeout_seconds: float | None = None,
    max_output_characters: int | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a Tool of a function, sync or async: `@tool`, or `@tool(name=..., examples=..., ...)`.

    The input schema comes from the parameters' type hints and defaults (`Annotated[int, Field(ge=0, description=...)]`
    says more about one), the output schema from the return annotation, the description from the docstring, the name
    from the function. The other options are those of `Tool`. The function may return anything that pydantic writes as
    JSON. Raises ConfigError for a missing docstring, a parameter without a type hint or that cannot be given by
    name, a missing return annotation, or a type that has no JSON Schema.
    """

    def make(function: Callable[..., Any]) -> Tool:
        named = name or str(getattr(function, "__name__", type(function).__name__))
        hints = _check_hints(function, named)
        resolved = _with_hints(function, hints)
        arguments, returned = _schemas(resolved, hints["return"], named)
        return Tool(
            name=named,
            description=description or _docstring(function, named),
            input_schema=arguments,
            output_schema=returned,
            invoke=_invocation(resolved, hints["return"], inspect.iscoroutinefunction(function)),
            examples=tuple(examples),
            timeout_seconds=timeout_seconds,
            max_output_characters=max_output_characters,
            side_effects=side_effects,
            pure=pure,
        )

    return make if function is None else make(function)


def _check_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"tool {name!r}: a type hint cannot be used: {error}") from error
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in _UNNAMED:
            raise ConfigError(f"tool {name!r}: parameter {parameter.name!r} {_UNNAMED[parameter.kind]}")
        if parameter.name not in hints:
            raise ConfigError(f"tool {name!r}: parameter {parameter.name!r} has no type hint")
    if "return" not in hints:
        raise ConfigError(f"tool {name!r}: what it returns has no type hint")
    return hints


def _with_hints(function: Callable[..., Any], hints: Mapping[str, Any]) -> Callable[..., Any]:
    """The same function with resolved hints: pydantic would look for their names in a module that may not exist."""

    def call(**arguments: Any) -> Any:
        return function(**arguments)

    call.__name__ = call.__qualname__ = str(getattr(function, "__name__", type(function).__name__))
    call.__annotations__ = dict(hints)
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def _docstring(function: Callable[..., Any], name: str) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise ConfigError(f"tool {name!r}: it has no docstring, from which a model learns what it does")
    return text


def _schemas(function: Callable[..., Any], returned: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        arguments = TypeAdapter(cast(Any, function)).json_schema(schema_generator=_WithoutTitles)
        result = TypeAdapter(returned).json_schema(mode="serialization", schema_generator=_WithoutTitles)
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise ConfigError(f"tool {name!r}: {str(error).splitlines()[0]}") from error
    return arguments, result


def _invocation(function: Callable[..., Any], returned: Any, is_async: bool) -> Callable[[Mapping[str, Any]], Any]:
    call, result = validate_call(function), TypeAdapter(returned)

    def invoke(arguments: Mapping[str, Any]) -> Any:
        if is_async:
            import asyncio  # slow to load, and only for such a tool

            value = asyncio.run(call(**arguments))
        else:
            value = call(**arguments)
        try:
            return result.dump_python(value, mode="json", warnings=False)
        except PydanticSerializationError:
            return value  # no JSON: the caller checks and reports that

    return invoke
