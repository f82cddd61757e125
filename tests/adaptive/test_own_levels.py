"""A level of one's own: a line of YAML."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.errors import ConfigError, SchemaFileError
from aeon.files.resources import resource_root
from aeon.observability import artefacts
from tests.support.scripted_model import ScriptedModel, profile


@pytest.fixture
def schemas(tmp_path: Path) -> str:
    document = json.loads(
        (resource_root() / "schemas" / "task_profile.json").read_text(encoding="utf-8")
    )
    document["properties"]["output_breadth"]["enum"].append("encyclopaedic")
    (tmp_path / "task_profile.json").write_text(json.dumps(document), encoding="utf-8")
    return f"schemas.dir={tmp_path}"


@pytest.mark.parametrize("has_own_schema", [False, True])
def test_a_level_that_the_table_names_is_asked_for_paid_and_read_again(
    schemas: str, tmp_path: Path, has_own_schema: bool
):
    model = ScriptedModel(task_profile=profile(1, output_breadth="encyclopaedic"))
    chosen = ["provider=simulated", "+ttl.breadth.encyclopaedic=4.0"]
    if has_own_schema:
        chosen.append(schemas)
    with Aeon.from_config(chosen, environ={}) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("make tea", directory=tmp_path / "run")
    assert "encyclopaedic" in model.requests[0].schema["properties"]["output_breadth"]["enum"]
    assert result.ttl.allocated == 58
    assert result.history.passes[1].taskprofile.output_breadth == "encyclopaedic"
    assert artefacts.load(tmp_path / "run") == result


def test_a_level_that_the_table_does_not_have_is_refused_before_anything_runs(schemas: str):
    with pytest.raises(
        SchemaFileError, match=r"/properties/output_breadth: must allow no values but .*broad"
    ):
        Aeon.from_config(["provider=simulated", schemas], environ={})


def test_a_band_that_no_number_reaches_is_refused():
    dimensions = (
        "ttl.dimensions={risk: {description: How risky., bands: {grave: {at_least: 7, add: 1}}}}"
    )
    with pytest.raises(ConfigError, match="at_least of grave is never reached"):
        Aeon.from_config(["provider=simulated", dimensions], environ={})


def test_a_dimension_of_ones_own_is_asked_for_paid_and_read_again(tmp_path: Path):
    model = ScriptedModel(task_profile=profile(1, novelty="new", risk=0.8))
    dimensions = (
        "ttl.dimensions={novelty: {description: How new it is., levels: {known: 0.0, new: 0.5}},"
        " risk: {description: How risky., bands: {grave: {at_least: 0.7, add: 0.6}}}}"
    )
    with Aeon.from_config(["provider=simulated", dimensions], environ={}) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("make tea", directory=tmp_path / "run")
    asked = model.requests[0].schema
    assert asked["properties"]["novelty"] == {
        "type": "string",
        "enum": ["known", "new"],
        "description": "How new it is.",
    }
    assert asked["required"][-2:] == ["novelty", "risk"]
    assert result.ttl.allocated == 18 + 5 + 6
    assert result.history.passes[1].taskprofile.model_extra == {"novelty": "new", "risk": 0.8}
    assert artefacts.load(tmp_path / "run") == result
