"""One configured server: its headers, and how messages about it are quoted without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from aeon.domain.errors import ConfigError
from aeon.domain.values import list_query_secrets, show_address
from aeon.files.secret_forms import secret_forms
from aeon.llm.settings import EndpointSettings

if TYPE_CHECKING:
    from openai import OpenAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"
SHOWN = 300
# Shorter values may be ordinary words, and replacing those would garble messages and answers.
SHORTEST_SECRET = 8
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})
_ACCOUNT_VARIABLES = {
    "OpenAI-Organization": "OPENAI_ORG_ID",
    "OpenAI-Project": "OPENAI_PROJECT_ID",
}


class Response(NamedTuple):
    """A complete response; its header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Endpoint:
    """The key, headers and address of a server, and its address without the query for messages.

    A `client` passed in brings its own address and authentication. Raises ConfigError, never
    quoting a value, for an address, key or header that an HTTP request cannot carry.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        client: OpenAI | None = None,
    ) -> None:
        given = dict(headers or {})
        names = {name.lower() for name in given}
        self.settings = settings
        self.client = client
        self.base_url = _find_address(settings, client)
        self.address = show_address(self.base_url)
        self.key = key
        self.key_sent = bool(key or settings.token_provider or client or names & _KEY_HEADERS)
        self.query = dict(parse_qsl(urlsplit(self.base_url).query, keep_blank_values=True))
        _check_header("Authorization", key or "", settings.api_key_env)
        for name, value in given.items():
            _check_header(name, value, "provider.extra_headers_env")
        self._hide_all((key or "", *given.values()))
        if client is not None and isinstance(client.api_key, str):
            self.hide(client.api_key)
        self.headers = {**self._account_headers(names), **given}

    def _hide_all(self, values: Sequence[str]) -> None:
        query = self.base_url.removeprefix(self.address)
        self._secrets = _find_secrets(values, query)
        # Answers may contain other words of an address.
        self._key_forms: list[str] = []
        for value in (*values, *list_query_secrets(self.base_url)):
            self._hide_in_answers(value)
            # The token alone, of `Bearer TOKEN`.
            self._hide_in_answers(value.rpartition(" ")[2])

    def _account_headers(self, configured: set[str]) -> dict[str, str]:
        # Other servers than OpenAI must not receive its account headers.
        if self.settings.name != "openai" or self.base_url.rstrip("/") != DEFAULT_BASE_URL:
            return {}
        own = {name: os.environ.get(variable) for name, variable in _ACCOUNT_VARIABLES.items()}
        return {
            name: value for name, value in own.items() if value and name.lower() not in configured
        }

    def hide(self, secret: str) -> None:
        """Hide a secret in all messages from now on."""
        self._hide_in_answers(secret)
        if len(secret) >= SHORTEST_SECRET and secret not in self._secrets:
            self._secrets = sorted({*self._secrets, secret}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Return the text on one line, without secrets, with at most 300 characters."""
        line = " ".join(self.clean_name(text).split())
        return line if len(line) <= SHOWN else line[:SHOWN] + "..."

    def hide_keys(self, answer: str) -> str:
        """Return an answer with `[secret]` in place of each key, header and value of a query sent to
        this server, in base64 too."""
        for form in self._key_forms:
            answer = answer.replace(form, "[secret]")
        return answer

    def _hide_in_answers(self, key: str) -> None:
        if len(key) >= SHORTEST_SECRET:
            forms = secret_forms(key).union(self._key_forms)
            self._key_forms = sorted(forms, key=len, reverse=True)

    def clean_name(self, name: str) -> str:
        """Return a name that a server gave, such as its model's, without secrets."""
        for secret in self._secrets:
            name = name.replace(secret, "[secret]")
        return name


def _check_header(name: str, value: str, source: str | None) -> None:
    """Raise ConfigError for a header that an HTTP request cannot carry; `source` says where it is
    configured."""
    if _HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable():
        return
    raise ConfigError(
        f"the header {name!r}, from {source}, cannot be sent",
        hint="A header's name is letters, digits and dashes; its value is plain ASCII "
        "without line breaks.",
    )


def _find_secrets(values: Sequence[str], query: str) -> list[str]:
    """Return the texts to hide in messages, longest first: key, headers, tokens after a scheme in a
    header, and the values in an address's query. Short words are no secrets."""
    texts = (*values, re.sub(r"[?&=#]", " ", query))
    words = [word for text in texts for word in text.split()]
    secrets = {secret for secret in (*values, *words) if len(secret) >= SHORTEST_SECRET}
    return sorted(secrets, key=len, reverse=True)


def _find_address(settings: EndpointSettings, client: OpenAI | None) -> str:
    """Return the base URL: a client's own, else the configured one. Raises ConfigError."""
    address = settings.base_url or DEFAULT_BASE_URL
    if client is not None:
        address = str(client.base_url).rstrip("/")
    try:
        url = urlsplit(address)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in address:
        raise ConfigError(
            "provider.base_url is no http address, or holds a user or a password: "
            f"{show_address(address)}",
            hint="Write it in full, for example http://localhost:8000/v1; a password goes into a "
            "header, for which provider.extra_headers_env.Authorization=NAME names a variable.",
        )
    return address
