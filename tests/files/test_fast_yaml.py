"""YAML that would end or stop the process is refused as soon as that is known."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from aeon.files.fast_yaml import FastLoader, read_yaml, refuse_excess

LEVELS = 100_000
DEEP = {
    "lists": "[" * LEVELS,
    "mappings": "{a: " * LEVELS,
    "blocks": "- " * LEVELS + "x",
    "keys": "? " * LEVELS,
    "json": '{"a":' * LEVELS,
    "behind an anchor": "a: &a " + "[" * LEVELS,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deeply_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="nested more than 200 levels deep"):
        read_yaml(tmp_path / "deep.yaml")


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(yaml.YAMLError, match="more than 100,000 values"):
        refuse_excess("\n".join(lines))


def test_a_value_within_itself_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="more than 100,000 values"):
        refuse_excess("a: &a [*a]")


def test_aliases_are_followed() -> None:
    text = "a: &a [1]\nb: *a"
    refuse_excess(text)
    assert yaml.load(text, Loader=FastLoader) == {"a": [1], "b": [1]}
