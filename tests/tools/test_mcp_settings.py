from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from aeon.tools.settings import McpServer, McpSettings


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either command .* or url"),
        ({"command": ["x"], "url": "http://127.0.0.1/mcp"}, "either command .* or url"),
        ({"command": []}, "either command .* or url"),
        ({"url": "http://127.0.0.1/mcp", "env": ["A"]}, "env cannot be combined with url"),
        ({"url": "http://127.0.0.1/mcp", "args": ["a"]}, "args cannot be combined with url"),
        ({"command": ["x"], "bearer_env": "TOKEN"}, "bearer_env cannot be combined with command"),
        ({"url": "http://user:secret@127.0.0.1/mcp"}, "holds credentials"),
        ({"url": "ftp://127.0.0.1/mcp"}, "URL scheme"),
        ({"command": ["x"], "env": ["TOKEN=secret"]}, "env"),
        ({"command": ["x"], "env": {"TOKEN": "secret"}}, "env"),
        ({"command": ["x"], "prefix": "a b"}, "prefix"),
        ({"command": ["x"], "max_restarts": -1}, "max_restarts"),
        ({"command": ["x"], "call_timeout_seconds": 0}, "call_timeout_seconds"),
        ({"command": ["x"], "allowed": ["*"]}, "allowed"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        McpServer.model_validate(given)


def test_a_command_is_a_list_or_a_word_with_arguments() -> None:
    assert McpServer.model_validate({"command": ["npx", "-y", "it"]}).command == ("npx", "-y", "it")
    told = McpServer.model_validate({"command": "npx", "args": ["-y", "it"]})
    assert (told.command, told.args) == (("npx",), ("-y", "it"))


def test_a_server_is_named_in_a_word() -> None:
    with pytest.raises(ValidationError, match=r"servers"):
        McpSettings.model_validate({"servers": {"not a word": {"command": "x"}}})


@pytest.mark.parametrize("key", McpServer.model_fields)
def test_every_key_is_explained(key: str) -> None:
    explained = Path(__file__).parents[2].joinpath("docs", "mcp.md").read_text(encoding="utf-8")
    assert f"\n| `{key}` | " in explained
