"""One configured server: its headers, what messages may quote, and the secrets that they never show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aeon.domain.errors import ConfigError
from aeon.domain.values import shown_address
from aeon.llm.settings import EndpointSettings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
SHOWN = 300
SHORTEST_SECRET = 8
_BETWEEN = re.compile(r"[?&=#]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What messages need to know about the server; `key_sent`: a key goes with every request.

    `secrets` are never shown: `clean` removes them from quoted text.
    """

    settings: EndpointSettings
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key_sent: bool = True

    @property
    def base_url(self) -> str:
        """The configured address, else that of OpenAI."""
        return self.settings.base_url or DEFAULT_BASE_URL

    @property
    def address(self) -> str:
        """The base URL without its query, where some servers take a key."""
        return shown_address(self.base_url)

    def clean(self, text: str) -> str:
        """The text on one line, without secrets, at most 300 characters."""
        line = " ".join(self.clean_name(text).split())
        return line if len(line) <= SHOWN else line[:SHOWN] + "..."

    def clean_name(self, name: str) -> str:
        """A name that a server gave, as of its model, without secrets."""
        for secret in self.secrets:
            name = name.replace(secret, "[secret]")
        return name


def endpoint_of(settings: EndpointSettings, key: str | None, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint of a provider's settings. Raises ConfigError, never quoting a value, for an address, key or header
    that an HTTP request cannot carry."""
    address = settings.base_url or DEFAULT_BASE_URL
    _check_address(address)
    for name, value in {"Authorization": key or "", **headers}.items():
        source = "provider.extra_headers_env" if name in headers else settings.api_key_env
        if not _HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
            raise ConfigError(
                f"the header {name!r}, from {source}, cannot be sent",
                hint="A header's name is letters, digits and dashes; its value is plain ASCII without line breaks.",
            )
    # The key, the headers' values, a token that follows a scheme in one, and what stands behind an address. The longest
    # first; a short word is no secret.
    query = _BETWEEN.sub(" ", address.removeprefix(shown_address(address)))
    words = [word for value in (*headers.values(), query) for word in value.split()]
    secrets = {secret for secret in (key or "", *headers.values(), *words) if len(secret) >= SHORTEST_SECRET}
    key_sent = key is not None or any(name.lower() in _KEY_HEADERS for name in headers)
    return Endpoint(settings, tuple(sorted(secrets, key=len, reverse=True)), key_sent)


def request_headers(
    settings: EndpointSettings, key: str | None, headers: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, str]:
    """The headers of every request: the key, what the person has configured, and nothing else of the environment.

    OpenAI itself (`provider=openai`) gets the organisation and the project of OPENAI_ORG_ID and OPENAI_PROJECT_ID too;
    to any other server they would be somebody else's.
    """
    own = {"User-Agent": "aeon", "Accept": "application/json", "Accept-Encoding": "gzip"}
    own |= {"Content-Type": "application/json"}
    if key is not None:
        own["Authorization"] = f"Bearer {key}"
    if settings.name == "openai" and (settings.base_url or DEFAULT_BASE_URL).rstrip("/") == DEFAULT_BASE_URL:
        variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        own |= {name: environ[variable] for name, variable in variables.items() if environ.get(variable)}
    configured = {name.lower() for name in headers}
    return {**{name: value for name, value in own.items() if name.lower() not in configured}, **headers}


def _check_address(address: str) -> None:
    try:
        url = urlsplit(address)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in address:
        raise ConfigError(
            f"provider.base_url is no http address, or holds a user or a password: {shown_address(address)}",
            hint="Write it whole, for example http://localhost:8000/v1; a password goes into a header, for which "
            "provider.extra_headers_env.Authorization=NAME names a variable.",
        )
