"""What pydantic finds in a workflow file, as problems of the file. Private to workflows."""

from __future__ import annotations

from collections.abc import Iterator

import pydantic

from aeon.files.explain import explain
from aeon.files.located_yaml import LocatedYaml
from aeon.plan.workflow.models import Problem, WorkflowFile, problem_at

_OTHER_SPELLINGS = {
    "step_id": "id",
    "name": "id",
    "dependencies": "depends_on",
    "needs": "depends_on",
    "requires": "depends_on",
    "handoff_to_next": "handoff",
    "args": "arguments",
    "params": "arguments",
    "parameters": "arguments",
    "with": "arguments",
    "uses": "tool",
    "prompt": "description",
}


def form_problems(error: pydantic.ValidationError, document: LocatedYaml) -> Iterator[Problem]:
    """A problem for each of pydantic's errors."""
    for mistake in explain(error, document.value, WorkflowFile, _OTHER_SPELLINGS):
        yield problem_at(mistake.position(document), mistake.sentence())
