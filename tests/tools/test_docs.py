import re
from pathlib import Path
from typing import get_args

import pytest

from aeon.app.tools import BUILTIN, MEMORY_TOOLS, build
from aeon.domain.checks import ToolErrorKind
from aeon.tools.function import tool
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import BuiltinSettings, ToolSettings

TEXT = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*BUILTIN, *MEMORY_TOOLS, *get_args(ToolErrorKind)])
def test_every_built_in_tool_and_every_kind_of_error_is_explained(name: str) -> None:
    assert f"| `{name}` |" in TEXT


def test_every_key_is_mentioned() -> None:
    keys = [*(f"tools.builtin.{name}" for name in BuiltinSettings.model_fields)]
    keys += [f"tools.{name}" for name in ToolSettings.model_fields if name != "mcp"]
    assert [key for key in keys if key not in TEXT] == []


def test_the_limits_it_tells_are_the_defaults() -> None:
    defaults = ToolSettings()
    assert f"`tools.timeout_seconds` ({defaults.timeout_seconds:g})" in TEXT
    assert f"`tools.max_output_characters` ({defaults.max_output_characters})" in TEXT


def test_the_function_it_shows_is_a_tool() -> None:
    source = re.search(r"```py\n(# shop\.py.*?)```", TEXT, re.DOTALL)
    assert source is not None
    module: dict[str, object] = {"__name__": "shop"}
    exec(source[1], module)
    calls = ToolInvoker(ToolRegistry([tool(module["price"])]))  # type: ignore[call-overload]
    assert calls.invoke("price", {"article": "A-100", "pieces": 2}).output == 19.0


def test_the_question_it_asks_the_calculator_has_an_answer() -> None:
    calls = ToolInvoker(build(ToolSettings(builtin=BuiltinSettings()), {}))
    assert calls.invoke("calculator", {"expression": "17 * 219.90"}).output == 3738.3
