"""A simulated model that writes down each request when it arrives and when it is answered:
`python -m tests.cluster.counted_server HOST LOG SECONDS`. The first line of LOG is its address; each other one holds
the time, what happened, the request's hash, the key that it came with, the task that it is for and the hashes of its images. As long as there is
a file LOG.down it answers 503, and writes nothing down."""

import base64
import hashlib
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.support import openai_server
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import simulated


def _digests_of_files(raw: bytes) -> list[str]:
    """The digests of the images that a request holds."""
    images = re.findall(rb"data:image/png;base64,([\w+/=]+)", raw)
    return [hashlib.sha256(base64.b64decode(image)).hexdigest() for image in images]


def main() -> None:
    host, log, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    lock = threading.Lock()
    with log.open("w") as file, OpenAIServer(simulated(delay=seconds), host=host) as server:

        def write(*values: Any) -> None:
            with lock:
                file.write(json.dumps(values) + "\n")
                file.flush()

        post = openai_server.Handler.do_POST

        class Handler(openai_server.Handler):
            def do_POST(self) -> None:  # noqa: N802
                if log.with_suffix(".down").exists():
                    self.rfile.read(int(self.headers["content-length"]))
                    self.send_response(503)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                read = self.rfile.read

                def noted(size: int) -> bytes:
                    raw = read(size)
                    task = re.search(rb"name \d+ rivers of [\w-]+", raw)
                    self.asked = (
                        hashlib.sha256(raw).hexdigest(),
                        self.headers["authorization"],
                        task[0].decode() if task else "",
                        _digests_of_files(raw),
                    )
                    write(time.time(), "asked", *self.asked)
                    return raw

                self.rfile.read = noted  # type: ignore[method-assign]
                try:
                    post(self)
                    write(time.time(), "answered", *self.asked)
                finally:
                    self.rfile.read = read  # type: ignore[method-assign]

        server._server.RequestHandlerClass = Handler
        write(server.url)
        sys.stdin.read()


if __name__ == "__main__":
    main()
