"""Runs that are killed with SIGKILL and resumed, each in a process of its own: `python -m tests.support.killed_runs`.

Reads a `Spec` as JSON on standard input and leaves the directories `NAME` (killed) and `NAME-resumed`. This process has
one thread and has loaded everything, so that a fork of it starts at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import run as run_process
from typing import Any

MOST_AT_ONCE = 4


@dataclass(frozen=True)
class Kill:
    """When a run dies: at its `write`th write to the store, `before` it or after; or `seconds` after `run.json`."""

    name: str
    write: int | None = None
    before: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Spec:
    overrides: list[str]
    task: str
    root: str
    kills: list[Kill] = field(default_factory=list)


def kill_and_resume(spec: Spec) -> None:
    """Do what the spec says; raises CalledProcessError when a resumed run could not be brought to its end."""
    here = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{spec.root}"}
    command = [sys.executable, "-m", "tests.support.killed_runs"]
    run_process(
        command,
        input=json.dumps(asdict(spec)),
        text=True,
        check=True,
        cwd=spec.root,
        env=environment,
    )


def main() -> int:
    values = json.loads(sys.stdin.read())
    spec = Spec(**{**values, "kills": [Kill(**kill) for kill in values["kills"]]})
    _load(spec)
    failed = _in_forks(
        spec.kills,
        lambda kill: _killed(spec, kill),
        lambda kill: Path(spec.root, kill.name, "run.json"),
    )
    failed += _in_forks(spec.kills, lambda kill: _resumed(spec, kill))
    return 1 if failed else 0


def _load(spec: Spec) -> None:
    """Import what a run needs, here and once."""
    from aeon import Aeon

    with Aeon.from_config(spec.overrides, environ={"OPENAI_API_KEY": "never-sent"}):
        pass
    assert threading.active_count() == 1, threading.enumerate()


def _killed(spec: Spec, kill: Kill) -> None:
    from aeon import Aeon
    from aeon.store.sqlite_store import SqliteStore

    put, written, lock = SqliteStore.put, 0, threading.Lock()

    def dying(store: SqliteStore, entry: Any) -> None:
        nonlocal written
        with lock:
            written += 1
            mine = written == kill.write
        if mine and kill.before:
            os.kill(os.getpid(), signal.SIGKILL)
        put(store, entry)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteStore.put = dying  # type: ignore[method-assign]
    with Aeon.from_config(spec.overrides, environ={"OPENAI_API_KEY": kill.name}) as aeon:
        aeon.run(spec.task, directory=Path(spec.root, kill.name))


def _resumed(spec: Spec, kill: Kill) -> None:
    from aeon import Aeon

    directory = Path(spec.root, kill.name)
    os.environ["RUN_NAME"] = f"{kill.name}-resumed"
    with Aeon.from_config(
        [f"resume={directory}"], environ={"OPENAI_API_KEY": f"{kill.name}-resumed"}
    ) as aeon:
        aeon.run(directory=Path(f"{directory}-resumed"))


@dataclass
class _Running:
    kill: Kill
    deadline: float | None = None


def _in_forks(
    kills: list[Kill], work: Callable[[Kill], None], begun: Callable[[Kill], Path] | None = None
) -> int:
    """Do the work for each kill, some at once; how many failed. Being killed is no failure.

    `begun` is the file that is there when a run has begun; without it none is killed from here.
    """
    running: dict[int, _Running] = {}
    waiting, failed = list(kills), 0
    while waiting or running:
        while waiting and len(running) < MOST_AT_ONCE:
            kill = waiting.pop(0)
            running[_forked(kill, work)] = _Running(kill)
        for pid, one in list(running.items()):
            if (
                begun
                and one.kill.seconds is not None
                and one.deadline is None
                and begun(one.kill).exists()
            ):
                one.deadline = time.monotonic() + one.kill.seconds
            if one.deadline is not None and time.monotonic() >= one.deadline:
                os.kill(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                failed += status not in (0, signal.SIGKILL)
        time.sleep(0.001)
    return failed


def _forked(kill: Kill, work: Callable[[Kill], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.environ["RUN_NAME"] = kill.name
        work(kill)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
