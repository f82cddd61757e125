"""Maps the openai package's exceptions without a response to Aeon's errors."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from openai import APIConnectionError, APITimeoutError, OpenAIError

from aeon.domain.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    LLMError,
    RequestRefused,
    list_causes,
)
from aeon.domain.values import is_loopback_name, show_address
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import not_an_api

_NOT_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.PoolTimeout)
_BROKE_OFF = (httpx2.NetworkError, ssl.SSLError)
_ENDED_EARLY = ("disconnected", "closed connection")
"""Words of protocol errors that mean that the server hung up, without an earlier violation."""


def error_of_exception(error: Exception, endpoint: Endpoint, allowed: float) -> LLMError | None:
    """Return the error for a request that was not answered within `allowed` seconds; None for an
    exception that is a bug."""
    match error:
        case UnicodeEncodeError():
            hint = (
                "Some text in the prompt (task, inputs, a tool's or a step's result) "
                "is not valid Unicode."
            )
            detail = endpoint.clean(str(error))
            return RequestRefused(f"the prompt cannot be sent: {detail}", hint=hint)
        case APIConnectionError():
            return _error_of_connection(error, endpoint, allowed)
        case httpx2.InvalidURL():
            return _not_connected(error, endpoint)
        case ImportError():  # httpx2 imports socksio once a proxy needs it
            detail = (
                f"no connection to {endpoint.address}: its proxy speaks SOCKS, and "
                "socksio is missing"
            )
            return ConnectionFailed(detail, hint="pip install socksio", retryable=False)
        case OpenAIError():
            detail = f"no key or token for {endpoint.address}: {endpoint.clean(str(error))}"
            hint = f"Check {endpoint.settings.api_key_env}, or the token provider."
            return AuthenticationFailed(detail, hint=hint)
    return None


def _error_of_connection(error: APIConnectionError, endpoint: Endpoint, allowed: float) -> LLMError:
    cause = error.__cause__ or error
    if isinstance(cause, _NOT_CONNECTED):
        return _not_connected(cause, endpoint)
    if isinstance(error, APITimeoutError):
        return _make_timeout(endpoint, allowed)
    detail = endpoint.clean(str(cause))
    if isinstance(cause, httpx2.RemoteProtocolError) and any(w in detail for w in _ENDED_EARLY):
        return _broke_off(endpoint, "it ended half-way")
    if isinstance(cause, _BROKE_OFF):
        return _broke_off(endpoint, detail)
    return not_an_api(detail or type(cause).__name__, endpoint)


def _make_timeout(endpoint: Endpoint, allowed: float) -> ConnectionFailed:
    address = endpoint.address
    return ConnectionFailed(
        f"{address} gave no answer within {allowed:.3g} s",
        hint=f"Check provider.base_url ({address}); a slow model, or one that is still loading, "
        f"may need more than provider.timeout_seconds={endpoint.settings.timeout_seconds:g}.",
        sent=True,
        timed_out=True,
    )


def _broke_off(endpoint: Endpoint, reason: str) -> ConnectionFailed:
    address = endpoint.address
    return ConnectionFailed(
        f"the connection to {address} broke off: {reason}",
        hint=f"Check provider.base_url ({address}) and the network; see the server's log. A server "
        "that always fails on this request may not support its schema: "
        "provider.structured_output=prompt.",
        sent=True,
    )


def _not_connected(error: BaseException, endpoint: Endpoint) -> ConnectionFailed:
    """Return the error for a request that was never sent. TLS failures are not retried."""
    causes = list_causes(error)
    is_tls = any(isinstance(cause, ssl.SSLError) for cause in causes)
    detail = endpoint.clean(str(error)) or "it took too long"
    failed = f"no connection to {endpoint.address}"
    hint = (
        f"Is the server running? Check provider.base_url ({endpoint.address}), its "
        "port, and the network."
    )
    if is_tls:
        failed = f"no secure connection to {endpoint.address}"
        hint = (
            "If the certificate is your own or your company's, name the file of its "
            "authority in the environment "
            "variable SSL_CERT_FILE; a server that speaks plain HTTP has an address with http://."
        )
    elif proxy := find_proxy(endpoint.base_url):
        failed += ": its proxy"
        hint = (
            f"Requests go through the proxy {show_address(proxy)} (HTTP_PROXY, "
            "HTTPS_PROXY, ALL_PROXY): "
            f"check it, or set NO_PROXY={urlsplit(endpoint.base_url).hostname} to go around it."
        )
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        detail = "refused, nothing listens there"
    return ConnectionFailed(f"{failed}: {detail}", hint=hint, retryable=not is_tls)


def find_proxy(address: str) -> str | None:
    """Return the proxy that the environment names for an address; None if there is none."""
    url = urlsplit(address)
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    host = url.hostname or ""
    if not proxy or is_loopback_name(host) or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
