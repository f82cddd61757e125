"""Why no answer came over the network, and what to do about it: a refused connection, a proxy, TLS, silence."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aeon.domain.errors import ConnectionFailed, LLMError
from aeon.domain.values import shown_address
from aeon.llm.openai.endpoint import Endpoint, causes

_BY_PROXY = ("ClientProxyConnectionError", "ClientHttpProxyError", "ProxyError")
_NEVER_CONNECTED = ("ClientConnectorError", "ConnectError", *_BY_PROXY)


def connection_failed(_kind: type[LLMError], error: BaseException, endpoint: Endpoint) -> ConnectionFailed:
    """The error for a request that was not answered, by what is behind it. A failure of TLS is not tried again."""
    failure = _told(error, endpoint)
    failure.timed_out = _timed_out(error)
    failure.sent = not _is_any(error, _NEVER_CONNECTED)
    if failure.sent and not failure.timed_out and endpoint.structured_output in ("auto", "json_schema"):
        failure.hint += (
            " A server that always dies on this request may not bear its schema: provider.structured_output=prompt."
        )
    return failure


def _told(error: BaseException, endpoint: Endpoint) -> ConnectionFailed:
    address, text = endpoint.address, endpoint.clean(root_text(error))
    if _timed_out(error):
        waited = endpoint.timeout_seconds if endpoint.waited_seconds is None else endpoint.waited_seconds
        return ConnectionFailed(
            f"{address} gave no answer within {waited:.3g} s",
            hint=f"Check provider.base_url ({address}); a slow model, or one that is still "
            f"loading, may need more than provider.timeout_seconds={endpoint.timeout_seconds:g}.",
        )
    if _is_any(error, _BY_PROXY):
        return ConnectionFailed(f"no connection to {address}: its proxy: {text}", hint=proxy_hint(endpoint))
    if any(isinstance(cause, ssl.SSLError) for cause in causes(error)):
        return _insecure(address, text)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes(error)):
        return ConnectionFailed(
            f"no connection to {address}: refused, nothing listens there",
            hint=f"Is the server running, and is its port that of provider.base_url ({address})?",
        )
    return ConnectionFailed(
        f"no connection to {address}: {text}",
        hint=f"Check provider.base_url ({address}) and the network{_through(endpoint)}; see the server's log.",
    )


def _insecure(address: str, text: str) -> ConnectionFailed:
    failure = ConnectionFailed(
        f"no secure connection to {address}: {text}",
        hint="Where the certificate is your own or your company's, name the file of its authority in the "
        "environment variable SSL_CERT_FILE; a server that speaks plain HTTP has an address with http://.",
    )
    failure.retryable = False
    return failure


def proxy_hint(endpoint: Endpoint) -> str:
    """What to check about the proxy in force."""
    host = urlsplit(endpoint.base_url).hostname
    return (
        f"Requests go through the proxy {_proxy(endpoint) or 'of the environment'} (HTTP_PROXY, HTTPS_PROXY, "
        f"ALL_PROXY): check it, or set NO_PROXY={host} to go around it."
    )


def _proxy(endpoint: Endpoint) -> str:
    """The proxy that the environment names for an address, without its user; empty where there is none."""
    url, proxies = urlsplit(endpoint.base_url), getproxies()
    if proxy_bypass(url.hostname or ""):
        return ""
    return shown_address(proxies.get(url.scheme) or proxies.get("all") or "")


def _through(endpoint: Endpoint) -> str:
    proxy = _proxy(endpoint)
    return f", and the proxy {proxy}" if proxy else ""


def _is_any(error: BaseException, names: tuple[str, ...]) -> bool:
    """By name, so that the transport need not be imported."""
    classes = (cls.__name__ for cause in causes(error) for cls in type(cause).__mro__)
    return not set(names).isdisjoint(classes)


def _timed_out(error: BaseException) -> bool:
    """By what is behind it: the transport calls some broken connections timeouts, and the system has its own."""
    return any(isinstance(cause, TimeoutError) and cause.errno is None for cause in causes(error))


def root_text(error: BaseException) -> str:
    """What the first cause says: the SDK itself only says "Connection error."."""
    root = causes(error)[-1]
    return str(root) or type(root).__name__
