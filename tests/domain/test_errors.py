"""What led to an error."""

from __future__ import annotations

from aeon.domain.errors import AeonError, list_causes


def test_causes_and_what_was_being_handled_are_found_nearest_first() -> None:
    try:
        try:
            raise ValueError("first")
        except ValueError:
            raise AeonError("second") from KeyError("cause")
    except AeonError as error:
        found = list_causes(error)
    assert [type(each) for each in found] == [AeonError, KeyError, ValueError]


def test_an_error_that_leads_back_to_itself_has_an_end() -> None:
    first, second = AeonError("first"), AeonError("second")
    first.__cause__, second.__cause__ = second, first
    assert list_causes(first) == [first, second]
    assert list_causes(None) == []
