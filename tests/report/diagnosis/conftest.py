"""The runs with planted causes, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.report.diagnosis.planted import RUNS, Examined, examine, play

Find = Callable[[str], Examined]


@pytest.fixture(scope="session")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Find:
    """The run of a name, with what its page finds in it."""

    @cache
    def run(name: str) -> Examined:
        return examine(play(tmp_path_factory.mktemp("planted") / "case", RUNS[name]))

    return run
