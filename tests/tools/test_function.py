import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from aeon.domain.checks import ToolResult
from aeon.domain.errors import ConfigError
from aeon.tools.function import tool
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry


def call(made: Tool, **arguments: Any) -> ToolResult:
    return ToolInvoker(ToolRegistry([made])).invoke(made.name, arguments)


def test_a_function_becomes_a_tool_by_its_hints_and_docstring() -> None:
    @tool
    def repeat(
        text: Annotated[str, Field(min_length=1, description="What to repeat.")],
        times: Annotated[int, Field(ge=1, le=9)] = 2,
        mode: Literal["plain", "loud"] = "plain",
    ) -> str:
        """Repeat a text.

        As often as you say.
        """
        return (text.upper() if mode == "loud" else text) * times

    assert (repeat.name, repeat.description) == ("repeat", "Repeat a text.\n\nAs often as you say.")
    assert repeat.input_schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "What to repeat."},
            "times": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
            "mode": {"type": "string", "enum": ["plain", "loud"], "default": "plain"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert repeat.output_schema == {"type": "string"}
    assert call(repeat, text="ab").output == "abab"
    assert call(repeat, text="ab", times=1, mode="loud").output == "AB"
    assert call(repeat, text="ab", times=10).error_kind == "invalid_arguments"


def test_options_say_what_the_function_does_not() -> None:
    @tool(
        name="shop.order",
        description="Order something.",
        examples=[{"item": "tea"}],
        side_effects=True,
        timeout_seconds=3,
        max_output_characters=50,
    )
    def order(item: str) -> None: ...

    assert (order.name, order.description, order.examples) == (
        "shop.order",
        "Order something.",
        ({"item": "tea"},),
    )
    assert (order.side_effects, order.pure, order.timeout_seconds, order.max_output_characters) == (
        True,
        False,
        3,
        50,
    )
    assert (order.output_schema, call(order, item="tea").output) == ({"type": "null"}, None)


class Line(BaseModel):
    item: str
    due: date


@dataclass
class Order:
    lines: list[Line]
    folder: Path


def test_types_of_ones_own_go_in_and_out() -> None:
    @tool
    def enclosed(line: Line) -> Order:
        """Put a line into an order."""
        assert isinstance(line, Line)
        return Order([line], Path("orders"))

    result = call(enclosed, line={"item": "tea", "due": "2030-01-02"})
    assert (result.error, result.output) == (
        None,
        {"lines": [{"item": "tea", "due": "2030-01-02"}], "folder": "orders"},
    )


def test_a_coroutine_function_is_run() -> None:
    @tool
    async def later(n: int) -> int:
        """Answer later."""
        await asyncio.sleep(0)
        return n + 1

    assert call(later, n=1).output == 2


def test_an_object_that_can_be_called_is_a_tool_too() -> None:
    class Counter:
        """Count calls."""

        def __init__(self) -> None:
            self.calls = 0

        def count(self, by: int = 1) -> int:
            """Count up."""
            self.calls += by
            return self.calls

    made = tool(Counter().count)
    assert (call(made).output, call(made, by=5).output) == (1, 6)


def test_a_function_that_does_not_return_what_it_says_has_failed() -> None:
    @tool
    def wrong() -> int:
        """Say a number."""
        return "three"  # type: ignore[return-value]

    @tool
    def impossible() -> Any:
        """Say anything."""
        return object()

    assert (call(wrong).error_kind, call(wrong).output) == ("invalid_output", "three")
    assert call(impossible).error_kind == "not_json"


def no_docstring(a: int) -> int:
    return a


def no_parameter_hint(a, b: int) -> int:  # type: ignore[no-untyped-def]
    """Add."""
    return a + b


def no_return_hint(a: int):  # type: ignore[no-untyped-def]
    """Give back."""
    return a


def any_number(*numbers: int) -> int:
    """Add."""
    return sum(numbers)


def any_name(**numbers: int) -> int:
    """Add."""
    return sum(numbers.values())


def positional(a: int, /) -> int:
    """Give back."""
    return a


def no_schema(a: Callable[[], int]) -> int:
    """Call."""
    return a()


def unknown_hint(a: "Nothing") -> int:  # type: ignore[name-defined] # noqa: F821
    """Give back."""
    return 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_docstring, "no docstring"),
        (no_parameter_hint, "parameter 'a' has no type hint"),
        (no_return_hint, "what it returns has no type hint"),
        (any_number, "parameter 'numbers' takes any number of values"),
        (any_name, "parameter 'numbers' takes any name"),
        (positional, "parameter 'a' is positional-only"),
        (no_schema, "Cannot generate"),
        (unknown_hint, "'Nothing' is not defined"),
    ],
)
def test_a_function_that_does_not_say_enough_is_refused(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        tool(function)
    assert caught.value.message.startswith(f"tool {function.__name__!r}: ")
    assert said in caught.value.message
