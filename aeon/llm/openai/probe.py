"""Finds out which interfaces a server has, without calling a model."""

from __future__ import annotations

import time
from typing import get_args

import httpx2
from openai import APIConnectionError, APIStatusError, OpenAI

from aeon.llm.openai.client import ends_at, path_of, response_of
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import refusal_in
from aeon.llm.settings import ApiName

_ABSENT = (404, 405, 501)
_SECONDS = 10.0


def find_apis(sdk: OpenAI, endpoint: Endpoint) -> dict[str, bool | None]:
    """Return whether a server has each interface, by name; None if that cannot be known.

    Each interface gets a request without a model and messages: a server that has it complains about
    what is missing, any other about the address.
    """
    names: tuple[ApiName, ...] = get_args(ApiName)
    return {name: _has_api(sdk, path_of(name, endpoint, endpoint.settings.model)) for name in names}


def _has_api(sdk: OpenAI, path: str) -> bool | None:
    try:
        with ends_at(time.monotonic() + _SECONDS):
            sdk.post(path, cast_to=httpx2.Response, body={}, options={"timeout": _SECONDS})
    except APIStatusError as error:
        refusal = refusal_in(response_of(error.response))
        if refusal.meaning == "key" or error.status_code in (401, 403, 429):
            return None
        if error.status_code >= 500 and error.status_code not in _ABSENT:
            return None
        return error.status_code not in _ABSENT or refusal.meaning == "model"
    except APIConnectionError:
        return None
    return True
