"""Tiny models; without the extra `local` the tests that need one are skipped."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.llm.local.adapter import LocalAdapter
from aeon.llm.settings import LocalProvider

REASON = "needs the extra local-test: make test-local"

WriteModel = Callable[..., Path]
MakeAdapter = Callable[..., LocalAdapter]


@pytest.fixture(scope="session")
def write_model(tmp_path_factory: pytest.TempPathFactory) -> WriteModel:
    """Writes tiny models: `write_model(seed=1, chat_template=None, ends=-4)`, each once."""
    pytest.importorskip("llama_cpp", reason=REASON)
    pytest.importorskip("gguf", reason=REASON)
    from tests.support.tiny_model import write_tiny_model

    folder, written = tmp_path_factory.mktemp("models"), dict[str, Path]()

    def write(**given: Any) -> Path:
        key = repr(sorted(given.items()))
        if key not in written:
            written[key] = write_tiny_model(folder / f"tiny-{len(written)}.gguf", **given)
        return written[key]

    return write


@pytest.fixture
def tiny_model(write_model: WriteModel) -> Path:
    """A model whose strings end soon."""
    return write_model()


@pytest.fixture
def endless_model(write_model: WriteModel) -> Path:
    """A model whose strings never end."""
    return write_model(ends=-30.0)


@pytest.fixture
def local(tiny_model: Path) -> Iterator[MakeAdapter]:
    """Makes adapters: `local(max_tokens=100)`, of the tiny model unless given another `model_path`."""
    made: list[LocalAdapter] = []

    def make(**given: Any) -> LocalAdapter:
        settings = {"model_path": tiny_model, "temperature": 1.0, "n_threads": 1, **given}
        made.append(LocalAdapter(LocalProvider.model_validate(settings)))
        return made[-1]

    yield make
    for adapter in made:
        adapter.close()
