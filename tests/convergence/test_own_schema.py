"""A person's schema of the judge's answer may list other pairs of artefacts and other kinds of issues: the program passes
them on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.errors import SchemaFileError
from aeon.files.resources import resource_root
from aeon.llm.schemas import SchemaLibrary
from aeon.supervisor.structured import StructuredCaller
from tests.contract.components import a_plan, a_report
from tests.support.scripted_model import ScriptedModel, assessment


def own_schema(folder: Path, **enums: list[str]) -> SchemaLibrary:
    """The packaged schema with these values of the fields `artifacts`, `kind` or `status`."""
    document: Any = json.loads((resource_root() / "schemas" / "convergence.json").read_text())
    for name, values in enums.items():
        listed = "issues" if name == "kind" else "consistency_status"
        document["properties"][listed]["items"]["properties"][name]["enum"] = values
    (folder / "convergence.json").write_text(json.dumps(document))
    return SchemaLibrary(folder)


@pytest.mark.parametrize("pairs", [["plan_answer", "law_answer"], ["law_answer"]])
def test_other_pairs_of_artefacts_are_asked_for_and_kept(tmp_path: Path, pairs: list[str]):
    schemas = own_schema(tmp_path, artifacts=pairs)
    schemas.check()
    statuses = [
        {"artifacts": pair, "status": "inconsistent", "explanation": "no"} for pair in pairs
    ]
    model = ScriptedModel(convergence=assessment(consistency_status=statuses))
    engine = ConvergenceEngine(model, structured=StructuredCaller(model, schemas=schemas))
    made = engine.assess(a_report(), a_plan(), list(a_plan().steps), {})
    assert model.calls == ["convergence"]
    assert sorted(made.scores.consistency_status) == sorted(pairs)


def test_other_kinds_of_issues_have_codes_of_their_own(tmp_path: Path):
    schemas = own_schema(tmp_path, kind=["omission", "unlawful"])
    schemas.check()
    fault = {"kind": "unlawful", "description": "it is forbidden", "blocking": True}
    model = ScriptedModel(convergence=assessment(issues=[fault]))
    engine = ConvergenceEngine(model, structured=StructuredCaller(model, schemas=schemas))
    made = engine.assess(a_report(), a_plan(), list(a_plan().steps), {})
    assert made.reason_codes == ("unlawful_detected",)
    assert model.calls == ["convergence"]


def test_what_the_program_reads_may_not_be_widened(tmp_path: Path):
    schemas = own_schema(tmp_path, status=["consistent", "inconsistent", "unclear"])
    with pytest.raises(SchemaFileError, match="must allow no values but consistent"):
        schemas.check()
