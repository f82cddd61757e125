"""Resumes of resumes, each killed with SIGKILL while it starts: `python -m tests.support.killed_chains`.

Reads a `Spec` as JSON on standard input. A point of a start is a change of a file under the root, or an answer that
is kept; `first` is killed after `answers` of these, every further run of a chain resumes the newest that is there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import run as run_process
from typing import Any

MOST_AT_ONCE = 3
LENGTH = 3
"""Resumes of a chain that are killed, after the first run."""
CHANGING = frozenset({"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "sqlite3.connect"})


@dataclass(frozen=True)
class Spec:
    """`after` answers that a resume keeps are points too, beside those before its first call."""

    overrides: list[str]
    root: str
    answers: int
    after: int = 0


def kill_chains(spec: Spec) -> list[str]:
    """The chains that were made: `NAME-1` to `NAME-3` were killed at one point, `NAME-end` ended."""
    here = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(here)}
    command = [sys.executable, "-m", "tests.support.killed_chains"]
    run_process(
        command,
        input=json.dumps(asdict(spec)),
        text=True,
        check=True,
        cwd=spec.root,
        env=environment,
    )
    return [f"point{n}" for n in range(1, int(Path(spec.root, "points").read_text()) + 1)]


def main() -> int:
    spec = Spec(**json.loads(sys.stdin.read()))
    from aeon import Aeon

    with Aeon.from_config(spec.overrides, environ={"OPENAI_API_KEY": "never-sent"}):
        pass
    _wait(_forked("whole", lambda: _start(spec.overrides, "whole")))
    _wait(_forked("first", lambda: (_kill_after(spec.answers), _start(spec.overrides, "first"))))
    _wait(_forked("counted", lambda: (_count_points(spec), _start(["resume=first"], "counted"))))
    points = int(Path("points").read_text()) + spec.after
    Path("points").write_text(str(points))
    chains = [f"point{n}" for n in range(1, points + 1)]
    failed = 0
    for at in range(0, points, MOST_AT_ONCE):
        pids = [
            _forked(name, lambda name=name: _chain(spec, name))
            for name in chains[at : at + MOST_AT_ONCE]
        ]
        failed += sum(_wait(pid) != 0 for pid in pids)
    return 1 if failed else 0


def _chain(spec: Spec, name: str) -> None:
    parent, point = "first", int(name.removeprefix("point"))
    for number in range(1, LENGTH + 1):
        run = f"{name}-{number}"

        def dying(run: str = run, parent: str = parent) -> None:
            _on_points(spec, lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == point else None)
            _start([f"resume={parent}"], run)

        assert _wait(_forked(run, dying)) == signal.SIGKILL
        parent = run if Path(run).exists() else parent
    end = f"{name}-end"
    assert _wait(_forked(end, lambda: _start([f"resume={parent}"], end))) == 0


def _start(overrides: list[str], name: str) -> None:
    from aeon.cli.main import main as aeon

    assert aeon([*overrides, "progress=none", f"hydra.run.dir={name}"]) in (0, 3)


def _kill_after(answers: int) -> None:
    from aeon.store.sqlite_store import SqliteStore

    put = SqliteStore.put
    kept = [0]

    def dying(store: SqliteStore, entry: Any) -> None:
        put(store, entry)
        kept[0] += 1
        if kept[0] == answers:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteStore.put = dying  # type: ignore[method-assign]


def _count_points(spec: Spec) -> None:
    """Leave the number of points before the first call in the file `points`."""
    from aeon.kernel.orchestrator import Orchestrator

    seen = [0]
    _on_points(spec, lambda n: seen.__setitem__(0, n))

    def none(*_: Any, **__: Any) -> None:
        count = seen[0]
        Path("points").write_text(str(count))
        os._exit(0)

    Orchestrator.run = none  # type: ignore[method-assign, assignment]


def _on_points(spec: Spec, reached: Callable[[int], object]) -> None:
    from aeon.store.sqlite_store import SqliteStore

    put, seen = SqliteStore.put, [0]

    def count() -> None:
        seen[0] += 1
        reached(seen[0])

    def counted(store: SqliteStore, entry: Any) -> None:
        put(store, entry)
        count()

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        reads = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (
            event in CHANGING
            and not reads
            and any(
                spec.root in os.fsdecode(a) for a in arguments if isinstance(a, str | bytes | Path)
            )
        ):
            count()

    SqliteStore.put = counted  # type: ignore[method-assign]
    sys.addaudithook(audited)


def _wait(pid: int) -> int:
    return os.waitpid(pid, 0)[1]


def _forked(name: str, work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.environ["OPENAI_API_KEY"] = name
        with Path(f"{name}.log").open("w") as log, redirect_stdout(log), redirect_stderr(log):
            work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
