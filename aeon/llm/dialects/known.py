"""What is known of an endpoint, as values: what decides how it is spoken to, and what a person should know."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict, Field

from aeon.domain.values import Value
from aeon.llm.dialects.dialect import Form


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something found out about an endpoint that a person should know: about which of its abilities, and in words."""

    endpoint: str
    model: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.endpoint}, model {self.model}: {self.message}"


class Known(Value):
    """What decides how a model at an address is spoken to, and what a person should know of it: to be kept.

    Schemas by their digests, `findings` by what they are about.
    """

    model_config = ConfigDict(extra="ignore")

    settled: bool = False
    form: Form | None = None
    form_of: dict[str, Form] = Field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    unenforced: tuple[bool, ...] = ()
    without: tuple[str, ...] = ()
    renamed: bool = False
    schema_beside: bool = False
    stream: bool = False
    findings: dict[str, str] = Field(default_factory=dict)
