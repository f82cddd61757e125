"""Which keys start code, by the mark on the settings: no list of them stands anywhere else."""

from __future__ import annotations

import re

import pytest

from aeon.batch.overrides import check_overrides
from aeon.config.load import compose
from aeon.config.marks import find_code, list_code_keys, mark_at
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root

KEYS = list_code_keys()


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
