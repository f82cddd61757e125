"""The base of all domain values, frozen and without unknown fields; and how addresses and tables of
values are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from ipaddress import ip_address
from math import floor
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar
from urllib.parse import unquote_plus, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    PlainSerializer,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    import pandas

# JSON objects whose fields only their schema knows, as from `json.loads`; treat them as read-only.
JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]


def flatten(value: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values within mappings, each with its dotted key below `key`; an empty mapping
    counts as a value."""
    if not isinstance(value, dict) or not value:
        yield key, value
        return
    for name, item in value.items():
        yield from flatten(item, f"{key}.{name}" if key else name)


def show_address(address: str) -> str:
    """Return an address for display and files: without user and query, which may contain a key."""
    try:
        url = urlsplit(address)
        return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2]


_PLAIN_PARAMETERS = frozenset({"api-version", "deployment", "model", "provider", "region"})
"""Parameters of addresses whose values are no keys, and may be ordinary words."""


def list_query_secrets(address: str) -> list[str]:
    """Return the values in an address's query that may be keys, as they stand there and decoded; of
    a part without a name the whole."""
    try:
        parts = urlsplit(address).query.split("&")
    except ValueError:
        return []
    found: list[str] = []
    for part in parts:
        name, sign, value = part.partition("=")
        if name.lower() not in _PLAIN_PARAMETERS:
            value = value if sign else name
            found += (value, unquote_plus(value))
    return list(dict.fromkeys(filter(None, found)))


LOOPBACK = ("127.0.0.1", "::1")
"""The addresses of `localhost` and the names below it. They are never resolved by DNS, whose answer
could lead to another machine."""


def is_loopback_name(host: str) -> bool:
    """Whether a host name belongs to this machine only."""
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def is_loopback(address: str) -> bool:
    """Whether an address belongs to this machine only."""
    try:
        host = urlsplit(address).hostname or ""
        return is_loopback_name(host) or ip_address(host).is_loopback
    except ValueError:
        return False


class Value(BaseModel):
    """An immutable value. A transition returns a new one (`model_copy(update=...)`)."""

    # Deferred: a process needs only a few of the validators and serializers that all models would
    # build on import.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class OwnObject(Value):
    """An object that you bring: `factory` is `package.module:object` or a registered name, called
    with `options` as keyword arguments. Without options it is written as the factory alone."""

    factory: str
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_reference(cls, given: object) -> Any:
        return {"factory": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of both forms, for editors."""
        return {"anyOf": [{"type": "string"}, handler(core_schema)]}

    @model_serializer
    def _as_written(self) -> str | dict[str, JsonValue]:
        return {"factory": self.factory, "options": self.options} if self.options else self.factory


Address = Annotated[str, PlainSerializer(show_address, when_used="json")]
"""An address; as JSON it is written without user and query."""


@dataclass(frozen=True, slots=True)
class FromOthers:
    """Whether a settings field may be set by files from others.

    In the head of a cassette, a field is `taken` if it decides what is requested, `unneeded` in a
    replay, or `held` because it starts, imports, reads or writes something. A field without a mark
    inherits that of the enclosing field; outermost fields and paths are `held`. `options` are those
    of a group that may be chosen nevertheless; None: all.

    A `row` of a dataset may set only fields marked themselves: to any value, to at most the
    configured value (`lower`), or to at most the value of the sibling field of this name.
    """

    rule: Literal["taken", "unneeded", "held"]
    options: frozenset[str] | None = frozenset()
    row: Literal["", "any", "lower", "limit"] = ""


@dataclass(frozen=True, slots=True)
class CodeMark:
    """Marks a settings field that names what is imported or started. Whatever the enclosing field
    allows, its keys are never taken from others, and no row sets them."""


T = TypeVar("T")
StartsCode = Annotated[T, CodeMark()]
TAKEN = FromOthers("taken", None)
UNNEEDED = FromOthers("unneeded")
Taken = Annotated[T, TAKEN]
Unneeded = Annotated[T, UNNEEDED]
OfRow = Annotated[T, FromOthers("taken", None, row="any")]
LowerOfRow = Annotated[T, FromOthers("taken", None, row="lower")]
UpToLimitOfRow = Annotated[T, FromOthers("taken", None, row="limit")]

Row = JsonObject
Frame: TypeAlias = "pandas.DataFrame"
_WIDEST = 60


def as_frame(rows: Iterable[Row]) -> Frame:
    """Return rows as a pandas frame. Raises ConfigError without pandas."""
    try:
        import pandas
    except ImportError:
        raise ConfigError(
            "to_frame() needs the package pandas", hint="pip install 'aeon-engine[pandas]'"
        ) from None
    return pandas.DataFrame(list(rows))


def as_text(rows: Sequence[Row]) -> str:
    """Format rows as a text table; cells are on one line, without control characters."""
    columns = {name: [name, *(_cell(row[name]) for row in rows)] for name in rows[0]}
    sides = {name: str.ljust if isinstance(rows[0][name], str) else str.rjust for name in columns}
    shown = (
        [sides[name](cell, max(map(len, cells))) for cell in cells]
        for name, cells in columns.items()
    )
    return "\n".join("  ".join(line).rstrip() for line in zip(*shown, strict=True))


def as_html(rows: Sequence[Row]) -> str:
    """Format rows as an HTML table; texts are escaped and cannot change the text direction around
    them."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    lines = ("".join(map(_html_cell, row.values())) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _html_cell(value: object) -> str:
    side = "left" if isinstance(value, str) else "right"
    return f"<td style='text-align: {side}'><bdi>{escape(_cell(value))}</bdi></td>"


def _cell(value: object) -> str:
    # Scores are rounded down, so that none seems to reach a threshold that it misses.
    text = "" if value is None else str(value)
    if isinstance(value, float):
        text = f"{floor(value * 100 + 1e-9) / 100:.2f}"
    line = " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."
