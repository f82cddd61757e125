"""Which keys start code, by the mark on the settings: no list of them stands anywhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from aeon.batch.overrides import check_overrides
from aeon.config.compose.recorded import put
from aeon.config.load import compose
from aeon.config.marks import find_code, mark_at, take_from_others
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.values import CodeMark
from aeon.files.explain import models_in
from aeon.files.resources import resource_root


def find_code_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the keys that are marked; `NAME` stands for a user-chosen name."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if any(isinstance(mark, CodeMark) for mark in field.metadata):
            yield key
            continue
        for inner, is_named in models_in(field.annotation):
            yield from find_code_keys(inner, f"{key}.NAME." if is_named else f"{key}.")


KEYS = tuple(sorted(set(find_code_keys(Settings))))


def test_the_keys_are_those_of_the_marked_fields():
    assert "tools.functions" in KEYS
    assert "provider.adapter" in KEYS
    assert "tools.mcp.servers.NAME.command" in KEYS
    assert list(KEYS) == sorted(set(KEYS))


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_starts_code_is_never_taken_from_others(key: str):
    assert mark_at(key).rule != "taken"
    assert mark_at(key).row == ""


@pytest.mark.parametrize("key", KEYS)
def test_a_row_does_not_set_a_key_that_starts_code(key: str):
    with pytest.raises(ConfigError, match=f"a row may not set {re.escape(key)}"):
        check_overrides([f"{key}=my_module:thing"])


@pytest.mark.parametrize("key", KEYS)
def test_the_page_on_trust_names_every_key_that_starts_code(key: str):
    page = (resource_root() / "docs" / "trust.md").read_text(encoding="utf-8")
    assert f"`{key}`" in page


def test_every_key_whose_comment_speaks_of_a_module_is_marked():
    """A new key for an object of a person's own cannot be left without its mark."""
    root = resource_root() / "conf"
    named = set()
    for path in sorted(root.rglob("*.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        group = "" if path.parent == root else f"{path.parent.name}."
        for number, line in enumerate(lines):
            if line.lstrip().startswith("#") and re.search(r"\bmodule:", line):
                key = next(each for each in lines[number:] if not each.lstrip().startswith("#"))
                named.add((group, key.strip().partition(":")[0]))
    assert named
    for group, name in named:
        marked = [key for key in KEYS if key.startswith(group)]
        assert any(key.endswith(f".{name}") or key.startswith(f"{name}.") for key in marked), name


def test_settings_start_the_code_that_is_set():
    assert find_code(compose()) == ()
    settings = compose(
        [
            "provider=custom",
            "provider.adapter=my_module:Adapter",
            "tools=mcp",
            "+tools.mcp.servers.time.command=[mcp-server-time]",
            "+observability.sinks.board=my_module:Board",
        ]
    )
    expected = ("observability.sinks", "provider.adapter", "tools.mcp.servers.time.command")
    assert tuple(sorted(find_code(settings))) == expected


def take(key: str, value: object) -> tuple[dict[str, Any], tuple[str, ...]]:
    recorded: dict[str, Any] = {}
    put(recorded, tuple(key.split(".")), value)
    taken, held = take_from_others(recorded, {"memory": {"kind": "in_memory"}})
    assert taken in ({}, recorded)
    return taken, held


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mode.kind", "core"),
        ("ttl.base", 30),
        ("limits.max_cost", None),
        ("refinement.when", "always"),
        ("reasoning.deep.effort", "high"),
        ("roles.grader", {"model": "gpt-5", "temperature": 0}),
        ("execution.max_parallel", 1),
        ("env", "prod"),
        ("interaction.kind", "ask"),
        ("prompts.set", "default"),
        ("provider.kind", "openai"),
        ("provider.name", "groq"),
        ("provider.model", "gpt-5"),
        ("provider.extra_body", {"top_k": 3, "a": {"b": 1}}),
        ("provider.seed", 7),
        ("tools.builtin.only", ["echo"]),
        ("store.sample", 2),
        ("memory.entries.a", "costs 5"),
        ("convergence.criteria.a", "costs 5"),
    ],
)
def test_what_decides_what_is_asked_is_taken_from_others(key: str, value: object):
    taken, held = take(key, value)
    assert taken
    assert not held


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("provider.base_url", "http://elsewhere/v1"),
        ("provider.api_key_env", "HOME"),
        ("provider.extra_headers_env", {"a": "HOME"}),
        ("provider.fallbacks", [{"kind": "openai", "name": "groq"}]),
        ("provider.adapter", "evil:Adapter"),
        ("store.path", "other.aeon"),
        ("observability.events", False),
        ("hydra.run.dir", "x"),
        ("memory.kind", "in_memory"),
        ("tools.functions", {}),
    ],
)
def test_what_a_replay_has_no_use_for_is_left_away_in_silence(key: str, value: object):
    assert take(key, value) == ({}, ())


@pytest.mark.parametrize(
    "key",
    [
        "provider.scenario",
        "provider.new",
        "memory.path",
        "prompts.dir",
        "tools.functions.stock",
        "new",
    ],
)
def test_what_may_be_missed_is_held_back_and_named(key: str):
    assert take(key, "a value") == ({}, (key,))
