"""The base of every domain value: frozen, closed to unknown fields."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """An immutable value. A transition returns a new one (`model_copy(update=...)`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
