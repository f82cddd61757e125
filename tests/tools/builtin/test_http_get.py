import gzip
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import ValidationError

from aeon.domain.checks import ToolResult
from aeon.tools.builtin.http_get import http_get_tool
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import BuiltinSettings
from tests.support.lookups import record_lookups
from tests.support.timing import SOON


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path.startswith("/to/"):
            self.answer(302, b"", Location=self.path.removeprefix("/to/"))
        elif self.path == "/drip":
            self.drip()
        elif self.path == "/gzip":
            self.answer(200, gzip.compress(b"x" * 10_000_000), **{"Content-Encoding": "gzip"})
        elif self.path == "/missing":
            self.answer(404, b"nothing here")
        elif self.path == "/latin":
            self.answer(
                200, "é".encode("latin-1"), **{"Content-Type": "text/plain; charset=latin-1"}
            )
        elif self.path == "/odd":
            self.answer(200, "é".encode(), **{"Content-Type": "text/plain; charset=no-such"})
        elif self.path == "/slow":
            self.answer(200, b"abc-9", **{"Content-Type": "text/plain; charset=punycode"})
        elif self.path == "/binary":
            self.answer(200, b"\x89PNG\x00")
        elif self.path == "/large":
            self.answer(200, b"x" * 100_000)
        else:
            headers = {
                name: self.headers[name] for name in ("Accept-Encoding", "Authorization", "Cookie")
            }
            self.answer(
                200, repr(headers).encode(), **{"Content-Type": "text/plain", "Set-Cookie": "a=b"}
            )

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _ in range(200):
                self.wfile.write(b".")
                time.sleep(0.05)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        return


@pytest.mark.parametrize("host", ["[", "a:b:c", "example.com:http", "https://example.com"])
def test_an_allowed_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(ValidationError, match="allowed_hosts"):
        BuiltinSettings.model_validate({"allowed_hosts": [host]})


@pytest.mark.parametrize(
    "host", ["example.com", "example.com:8080", "[::1]:80", "[::1]", "127.0.0.1"]
)
def test_a_host_may_have_a_port(host: str) -> None:
    assert BuiltinSettings.model_validate({"allowed_hosts": [host]}).allowed_hosts == (host,)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    handler = type("Own", (Handler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.daemon_threads = True
        running.block_on_close = False
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def host(server: ThreadingHTTPServer) -> str:
    return f"127.0.0.1:{server.server_address[1]}"


def get(url: str, *allowed: str, seconds: float = 10, max_bytes: int = 1_000) -> ToolResult:
    calls = ToolInvoker(ToolRegistry([http_get_tool(allowed, seconds, max_bytes)]))
    return calls.invoke("http_get", {"url": url})


def test_text_is_fetched_from_an_allowed_host_without_any_credential(
    server: ThreadingHTTPServer,
) -> None:
    result = get(f"http://{host(server)}/page", host(server))
    assert result.error is None
    assert result.output == {
        "url": f"http://{host(server)}/page",
        "status": 200,
        "content_type": "text/plain",
        "text": "{'Accept-Encoding': 'identity', 'Authorization': None, 'Cookie': None}",
        "complete": True,
    }


def test_a_status_other_than_ok_is_told_and_no_error(server: ThreadingHTTPServer) -> None:
    output = get(f"http://{host(server)}/missing", host(server)).output
    assert (output["status"], output["text"]) == (404, "nothing here")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:PORT/",
        "http://127.0.0.1/",
        "http://127.0.0.2:PORT/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://127.1:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://127.0.0.1.:PORT/",
        "http://127.0.0.1:PORT.evil.example/",
        "http://user@127.0.0.1:PORT/",
        "http://127.0.0.1:PORT@evil.example/",
        "http://evil.example#@127.0.0.1:PORT/",
        "http://evil.example\\@127.0.0.1:PORT/",
        "file:///etc/passwd",
        "ftp://127.0.0.1:PORT/",
        "//127.0.0.1:PORT/",
        "127.0.0.1:PORT/",
        "",
        "http://",
        "http://[",
        "http://127.0.0.1:PORT\r\nHost: evil/",
    ],
)
def test_nothing_else_is_asked(server: ThreadingHTTPServer, url: str) -> None:
    result = get(url.replace("PORT", str(server.server_address[1])), host(server))
    assert result.error_kind == "raised"
    assert server.RequestHandlerClass.asked == []  # type: ignore[attr-defined]


def test_a_redirect_is_followed_within_the_list(server: ThreadingHTTPServer) -> None:
    output = get(f"http://{host(server)}/to//page", host(server)).output
    assert (output["status"], output["url"]) == (200, f"http://{host(server)}/page")


@pytest.mark.parametrize(
    "target", ["http://localhost:PORT/page", "//evil.example/", "file:///etc/passwd", "http://["]
)
def test_no_redirect_leads_off_the_list(server: ThreadingHTTPServer, target: str) -> None:
    result = get(
        f"http://{host(server)}/to/{target.replace('PORT', str(server.server_address[1]))}",
        host(server),
    )
    assert result.error_kind == "raised"
    assert len(server.RequestHandlerClass.asked) == 1  # type: ignore[attr-defined]


def test_redirects_without_end_are_given_up(server: ThreadingHTTPServer) -> None:
    url = f"http://{host(server)}" + "/to/" * 20 + "/page"
    assert "redirects" in str(get(url, host(server)).error)


def test_a_long_answer_is_cut_and_says_so(server: ThreadingHTTPServer) -> None:
    output = get(f"http://{host(server)}/large", host(server)).output
    assert (output["text"], output["complete"]) == ("x" * 1_000, False)


def test_a_compressed_answer_is_not_unpacked(server: ThreadingHTTPServer) -> None:
    assert "compressed (gzip)" in str(get(f"http://{host(server)}/gzip", host(server)).error)


def test_an_answer_that_is_not_text_is_refused(server: ThreadingHTTPServer) -> None:
    assert "not text" in str(get(f"http://{host(server)}/binary", host(server)).error)


def test_text_is_read_in_the_encoding_it_says(server: ThreadingHTTPServer) -> None:
    assert get(f"http://{host(server)}/latin", host(server)).output["text"] == "é"
    assert get(f"http://{host(server)}/odd", host(server)).output["text"] == "é"


def test_a_charset_that_takes_the_square_of_a_text_is_not_used(server: ThreadingHTTPServer) -> None:
    assert get(f"http://{host(server)}/slow", host(server)).output["text"] == "abc-9"


def test_the_time_limit_is_for_everything_together(server: ThreadingHTTPServer) -> None:
    started = time.monotonic()
    result = get(f"http://{host(server)}/drip", host(server), seconds=0.3)
    assert "too long" in str(result.error)
    assert time.monotonic() - started < SOON


@pytest.mark.parametrize("name", ["localhost", "app.localhost", "LOCALHOST", "localhost."])
def test_names_of_this_machine_are_looked_up_nowhere_and_go_through_no_proxy(
    server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    looked_up = record_lookups(monkeypatch)
    allowed = f"{name}:{server.server_address[1]}"
    result = get(f"http://{allowed}/to//page", allowed)
    assert result.error is None
    assert result.output["url"] == f"http://{allowed.lower()}/page"
    assert looked_up == {"127.0.0.1"}


def test_a_host_that_cannot_be_reached_is_an_error() -> None:
    result = get("http://127.0.0.1:9/", "127.0.0.1:9")
    assert (result.error_kind, "could not be fetched" in str(result.error)) == ("raised", True)


@pytest.mark.parametrize(
    ("allowed", "url", "refused"),
    [
        ("Example.COM", "http://example.com/", False),
        ("example.com", "https://EXAMPLE.com/", False),
        ("example.com", "https://example.com:443/", False),
        ("example.com", "http://example.com:443/", True),
        ("example.com", "http://example.com:8080/", True),
        ("example.com:8080", "http://example.com:8080/", False),
        ("example.com:8080", "http://example.com/", True),
        ("example.com:80", "http://example.com/", False),
        ("example.com:80", "https://example.com/", True),
        ("example.com", "http://www.example.com/", True),
        ("example.com", "http://badexample.com/", True),
        ("[::1]:8080", "http://[::1]:8080/", False),
        ("[::1]", "http://[::1]:8080/", True),
    ],
)
def test_hosts_are_compared_whole_with_their_port(allowed: str, url: str, refused: bool) -> None:
    import httpx2

    from aeon.tools.builtin.http_get import check_address

    if not refused:
        check_address(frozenset([allowed.lower()]), httpx2.Request("GET", url))
        return
    with pytest.raises(ValueError, match="not among the allowed hosts"):
        check_address(frozenset([allowed.lower()]), httpx2.Request("GET", url))
