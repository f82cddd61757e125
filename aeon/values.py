"""The base of every domain value: frozen, closed to unknown fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer

from aeon.llm.addresses import shown_address


class Value(BaseModel):
    """An immutable value. A transition returns a new one (`model_copy(update=...)`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Address = Annotated[str, PlainSerializer(shown_address, when_used="json")]
"""An address; what is written of it as JSON is what may be shown."""
