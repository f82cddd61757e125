import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from aeon.files.jsonl import read_lines
from aeon.files.resources import resource_root
from aeon.observability import artefacts
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from tests.observability.published import build_schemas, write
from tests.observability.support import a_result, chain_run, feed, realistic_run

NAMES = ("result", "history", "events", "cycles", "questions", "answers")


def validator(name: str) -> Draft202012Validator:
    path = resource_root() / "schemas" / "artefacts" / f"{name}.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for inner in schema for found in objects(inner)]
    if not isinstance(schema, dict):
        return []
    return [schema] * ("properties" in schema) + [
        found for inner in schema.values() for found in objects(inner)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_published_schemas_are_current(name: str) -> None:
    path = resource_root() / "schemas" / "artefacts" / f"{name}.json"
    current = json.loads(path.read_text(encoding="utf-8")) == build_schemas()[name]
    assert current, "the models have changed: run python -m tests.observability.published"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_published_schemas_are_strict_and_described(name: str) -> None:
    schema = build_schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for found in objects(schema):
        # A profile may have dimensions of a person's own.
        assert found["additionalProperties"] is False or found["title"] == "TaskProfile"
        assert found["required"] == list(found["properties"])
        assert found["description"]


@pytest.mark.slow
def test_schemas_are_written_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    assert {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()
    } == build_schemas()


@pytest.mark.parametrize("told", [realistic_run(), realistic_run(synthetic=True), chain_run(5)])
def test_the_journals_of_a_run_satisfy_their_schemas(tmp_path: Path, told: Any) -> None:
    for name, journal in (("events", EventLog), ("cycles", CycleLog)):
        log = journal(tmp_path / name, print)
        feed(log, told)
        log.close()
        lines = list(read_lines(tmp_path / name))
        assert lines
        for line in lines:
            validator(name).validate(line)


def test_the_result_and_history_of_a_run_satisfy_their_schemas(tmp_path: Path) -> None:
    artefacts.write(a_result(), tmp_path)
    for name in ("result", "history"):
        validator(name).validate(json.loads((tmp_path / f"{name}.json").read_bytes()))


@pytest.mark.parametrize("change", [{"surprise": 1}, {"converged": "yes"}, {"ttl": None}])
def test_a_result_that_is_not_one_does_not_satisfy_its_schema(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    artefacts.write(a_result(), tmp_path)
    value = json.loads((tmp_path / "result.json").read_bytes()) | change
    with pytest.raises(ValidationError):
        validator("result").validate(value)
