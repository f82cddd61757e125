"""Tokens instead of a key: `provider.token_provider`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.files.reference import load_object
from aeon.llm.openai.endpoint import Endpoint

KEY = "provider.token_provider"
ENTRA = "entra"
_SCOPE = "https://cognitiveservices.azure.com/.default"


def load_token_provider(endpoint: Endpoint) -> Callable[[], str] | None:
    """Load the function that returns a token for each request; None if a key is used. Raises
    ConfigError.

    The tokens are hidden in all messages.
    """
    reference = endpoint.settings.token_provider
    if reference is None:
        return None
    give = _entra() if reference == ENTRA else load_object(KEY, reference, "function")
    if not callable(give):
        raise ConfigError(
            f"{KEY}={reference}: it is no function", hint="It is called without arguments."
        )

    def give_and_hide() -> str:
        token: str = give()
        endpoint.hide(token)
        return token

    return give_and_hide


def _entra() -> Any:
    try:
        identity: Any = importlib.import_module("azure.identity")
    except ImportError as error:
        raise ConfigError(
            f"{KEY}={ENTRA}: azure-identity is not installed", hint="pip install azure-identity"
        ) from error
    return identity.get_bearer_token_provider(identity.DefaultAzureCredential(), _SCOPE)
