"""What may be said of a server, and what may not: no message holds a key, a secret header, or an address's query."""

from __future__ import annotations

from dataclasses import dataclass, field

from aeon.domain.values import shown_address
from aeon.llm.settings import StructuredOutput

SHOWN = 300
SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a message may say of the server: its address, the variable that holds the key, seconds for one attempt, how
    it is configured to be told a schema, what it goes by, whether a key is sent, seconds that were waited.

    `secrets` are never shown: `clean` takes them out of whatever a server says.
    """

    base_url: str
    key_env: str
    timeout_seconds: float
    secrets: tuple[str, ...] = field(default=(), repr=False)
    structured_output: StructuredOutput = "auto"
    name: str = ""
    key_sent: bool = True
    waited_seconds: float | None = None

    @property
    def address(self) -> str:
        """The base URL without its query, where some servers take a key."""
        return shown_address(self.base_url)

    def clean(self, text: str) -> str:
        """The text on one line, without secrets, at most 300 characters."""
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        line = " ".join(text.split())
        return line if len(line) <= SHOWN else line[:SHOWN] + "..."

    def clean_name(self, name: str) -> str:
        """A name that a server gave, as of its model, without secrets; a short word is none."""
        for secret in self.secrets:
            name = name.replace(secret, "[secret]") if len(secret) >= SHORTEST_SECRET else name
        return name

    def leaks(self, error: BaseException) -> bool:
        """Whether a traceback of this error would show a secret."""
        text = " ".join(f"{cause!r} {cause}" for cause in causes(error))
        return any(secret in text for secret in self.secrets)


def causes(error: BaseException) -> list[BaseException]:
    """The error and what is behind it, the first cause last."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    return chain
