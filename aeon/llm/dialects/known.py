"""What is known of an endpoint, as values: what decides how it is spoken to, and what a person should know."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from aeon.domain.values import Value
from aeon.llm.dialects.dialect import Form


class Known(Value):
    """What decides how a model at an address is spoken to, and what a person should know of it: to be kept.

    Schemas by their digests, `findings` by what they are about.
    """

    model_config = ConfigDict(extra="ignore")

    form: Form | None = None
    form_of: dict[str, Form] = Field(default_factory=dict)
    unenforced: tuple[bool, ...] = ()
    without: tuple[str, ...] = ()
    renamed: bool = False
    schema_beside: bool = False
    stream: bool = False
    findings: dict[str, str] = Field(default_factory=dict)
