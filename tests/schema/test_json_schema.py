"""References are followed as the library for references follows them, and loaded without it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from aeon.schema.json_schema import resolve

SCHEMA = {
    "$defs": {
        "plain": {"type": "string"},
        "a/b": {"type": "integer"},
        "a~b": {"type": "number"},
        "two words": {"type": "null"},
        "inner": {"$id": "https://example.org/inner", "$defs": {"deep": {"type": "array"}}},
        "named": {"$anchor": "here", "type": "boolean"},
        "anything": True,
    },
    "x-text": "text",
    "anyOf": [{"type": "string"}, {"type": "object"}],
}
REFERENCES = [
    *("#/$defs/plain", "#/$defs/a~1b", "#/$defs/a~0b", "#/$defs/two%20words", "#/anyOf/1"),
    *("#/$defs/inner/$defs/deep", "#here", "#", "#/$defs/anything", "#/x-text"),
    *(
        "#/$defs/missing",
        "#/anyOf/2",
        "#/anyOf/x",
        "#/x-text/0",
        "#/",
        "#nowhere",
        "other",
    ),
]


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_leads_where_the_specification_says(reference: str) -> None:
    registry = Registry().with_resource("", DRAFT202012.create_resource(SCHEMA))
    try:
        expected = registry.resolver().lookup(reference).contents
    except (Unresolvable, ValueError, LookupError, TypeError):
        expected = None
    assert resolve(SCHEMA, reference) == (None if isinstance(expected, str) else expected)


def test_a_pointer_is_followed_without_the_library_for_references() -> None:
    code = (
        "import sys; from aeon.schema.json_schema import resolve; "
        "assert resolve({'$defs': {'a': True}}, '#/$defs/a'); print('referencing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
