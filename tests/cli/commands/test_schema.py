"""`aeon schema`: what an editor knows of configuration files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from aeon.config import json_schema
from aeon.config.compose.reference import entries_of, groups
from tests.cli.conftest import RunAeon

CONF = Path(__file__).parents[3] / "conf"
GROUPS = sorted(set(groups()) - {"sweep"})
configuration_schema = cache(json_schema.configuration_schema)
BASE = ("ttl.base", "default")
GLOBAL = "# @package _global_"


def problems(schema: dict[str, Any], text: str) -> list[str]:
    return [
        f"{'.'.join(map(str, e.absolute_path))}: {e.message}"
        for e in Draft7Validator(schema).iter_errors(yaml.safe_load(text) or {})
    ]


@pytest.mark.parametrize("group", [None, *GROUPS])
def test_every_packaged_file_is_as_its_schema_says(group: str | None) -> None:
    files = [CONF / "config.yaml"] if group is None else sorted((CONF / group).glob("*.yaml"))
    assert files
    whole = configuration_schema()
    for path in files:
        text = path.read_text(encoding="utf-8")
        schema = whole if group is None or text.startswith(GLOBAL) else configuration_schema(group)
        assert problems(schema, text) == [], path


@pytest.mark.parametrize(
    ("group", "text", "said"),
    [
        (
            None,
            "ttl: {bass: 9}",
            "ttl: Additional properties are not allowed ('bass' was unexpected)",
        ),
        (None, "ttl: {base: nine}", "ttl.base: 'nine' is not valid"),
        (None, "convergence: {completeness: 1.5}", "convergence.completeness: 1.5 is not valid"),
        (None, "nothing: 1", "'nothing' was unexpected"),
        ("provider", "{kind: openai, modell: x}", "is not valid under any"),
        ("limits", "max_passes: 0", "max_passes: 0 is not valid"),
    ],
)
def test_a_mistake_is_marked_where_it_stands(group: str | None, text: str, said: str) -> None:
    (problem,) = problems(configuration_schema(group), text)
    assert said in problem


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (None, "ttl: {base: '${oc.env:BASE,10}'}"),
        (None, "defaults: [config, {ttl: mine}]\nhydra: {job: {name: x}}"),
        ("provider", "defaults: [openai]\nmodel: mine"),
    ],
)
def test_a_part_of_a_file_and_an_interpolation_are_no_mistakes(
    group: str | None, text: str
) -> None:
    assert problems(configuration_schema(group), text) == []


def test_it_is_printed_with_what_the_comments_of_the_packaged_files_say(aeon: RunAeon) -> None:
    ended = aeon("schema", "ttl")
    assert ended.status == 0
    schema = json.loads(ended.out)
    Draft7Validator.check_schema(schema)
    model = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    (comment,) = (
        entry.comment for entry in entries_of("ttl") if (entry.path, entry.file.stem) == BASE
    )
    assert comment
    assert model["properties"]["base"]["description"] == comment
    assert json.loads(aeon("schema").out) == configuration_schema()


def test_a_group_that_does_not_exist_is_refused(aeon: RunAeon) -> None:
    ended = aeon("schema", "tll")
    assert ended.status == 2
    assert "tll: there is no such group of settings" in ended.err
    assert "ttl" in ended.err
