"""Stands between Aeon and an MCP server over stdio, as a separate program: `python gateway.py BYTES
COMMAND...`.

It passes lines on. It ends its process group (the server and everything that it started) a second
after Aeon is gone, for whatever reason, and when the server is gone or sends a line of more than
BYTES. The SDK could see neither in time: only a separate process notices a SIGKILL, a child may
hold the server's output open, and joining a line of any length takes quadratic time. It imports
little, because it starts with every server.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

_CHUNK = 65_536
_GRACE_SECONDS = 1.0


def main() -> None:
    """Start the command and pass lines on until either side ends."""
    most, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, _kill_group)
    try:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        print(error, file=sys.stderr)
        raise SystemExit(127) from None
    assert server.stdin is not None
    assert server.stdout is not None
    threading.Thread(target=_pass_in, args=(server.stdin,), daemon=True).start()
    reader = threading.Thread(target=_pass_out, args=(server.stdout, int(most)), daemon=True)
    reader.start()
    server.wait()
    reader.join(_GRACE_SECONDS)  # its last output
    _end_group()


def _pass_in(server: IO[bytes]) -> None:
    try:
        while chunk := os.read(0, _CHUNK):
            _write(server.fileno(), chunk)
    except OSError:
        pass
    server.close()
    time.sleep(_GRACE_SECONDS)
    _end_group()


def _pass_out(server: IO[bytes], most: int) -> None:
    length = 0
    while chunk := os.read(server.fileno(), _CHUNK):
        end = chunk.rfind(b"\n")
        length = length + len(chunk) if end < 0 else len(chunk) - end - 1
        if length > most:
            print(f"it sent a message of more than {most:,} bytes", file=sys.stderr, flush=True)
            _end_group()
        try:
            _write(1, chunk)
        except OSError:
            _end_group()


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _end_group() -> None:
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)


def _kill_group(*_: object) -> None:
    """Kill the group after SIGTERM, which the whole group has received: a server may ignore it."""
    time.sleep(_GRACE_SECONDS / 2)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
