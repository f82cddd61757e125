"""A `.env` that nobody has trusted gives keys of models, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.config.environment import environment
from aeon.config.folder_content import read_content
from aeon.config.load import compose
from aeon.config.provider import resolve_provider
from aeon.config.trusted_folders import remember
from aeon.domain.errors import ConfigError


@pytest.fixture(autouse=True)
def process_environment() -> Iterator[None]:
    """What a `.env` has added is gone after the test."""
    before = dict(os.environ)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GROQ_API_KEY", "HTTPS_PROXY", "AEON_TRUST"):
        os.environ.pop(name, None)
    yield
    os.environ.clear()
    os.environ.update(before)


def write(folder: Path, *lines: str) -> Path:
    path = folder / ".env"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_it_fills_in_keys_that_the_environment_does_not_have(tmp_path: Path) -> None:
    os.environ["GROQ_API_KEY"] = "process"
    write(tmp_path, "OPENAI_API_KEY=file", "GROQ_API_KEY=file")
    found = environment(directory=tmp_path)
    assert (found["OPENAI_API_KEY"], found["GROQ_API_KEY"]) == ("file", "process")
    assert found.added == {"OPENAI_API_KEY"}


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_BASE_URL",
        "HTTPS_PROXY",
        "https_proxy",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "SSL_CERT_FILE",
        "LD_PRELOAD",
        "PYTHONPATH",
        "AEON_TRUST",
        "AEON_STATE_DIR",
        "HYDRA_FULL_ERROR",
        "MY_KEY",
    ],
)
def test_nothing_else_of_it_takes_effect(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"{name}=elsewhere")
    before = os.environ.get(name)
    found = environment(directory=tmp_path)
    assert found.get(name) == os.environ.get(name) == before
    if before is None:
        assert found.withheld == {name: "elsewhere"}


def test_what_decides_where_requests_go_is_warned_of_by_name(tmp_path: Path) -> None:
    write(tmp_path, "HTTPS_PROXY=http://elsewhere.example", "DATABASE=x")
    (warning,) = environment(directory=tmp_path).warnings
    assert "HTTPS_PROXY" in warning
    assert f"aeon trust {tmp_path}" in warning
    assert "DATABASE" not in warning
    assert "elsewhere" not in warning


def test_the_key_that_the_persons_own_configuration_names_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "MINE=sk-1")
    settings = compose(["provider=openai", "provider.api_key_env=MINE"])
    assert environment(settings, tmp_path)["MINE"] == "sk-1"


def test_no_other_variable_is_put_into_a_key(tmp_path: Path) -> None:
    os.environ["AEON_TEST_SECRET"] = "secret"
    write(tmp_path, "OPENAI_API_KEY=${AEON_TEST_SECRET}")
    assert environment(directory=tmp_path)["OPENAI_API_KEY"] == "${AEON_TEST_SECRET}"


def test_all_of_a_trusted_one_takes_effect_until_it_changes(tmp_path: Path) -> None:
    write(tmp_path, "AEON_TEST_ONE=1")
    remember(read_content(tmp_path))
    assert environment(directory=tmp_path)["AEON_TEST_ONE"] == "1"
    write(tmp_path, "AEON_TEST_ONE=1", "AEON_TEST_TWO=2")
    assert "AEON_TEST_TWO" not in environment(directory=tmp_path)


@pytest.mark.parametrize(
    ("overrides", "lines", "sent"),
    [
        (["provider=openai"], [], "the key OPENAI_API_KEY from your environment"),
        (["provider=openai"], ["OPENAI_API_KEY=theirs"], "the key OPENAI_API_KEY from that file"),
        (["provider=auto"], [], "OPENAI_API_KEY"),
    ],
)
def test_no_key_goes_to_an_address_of_it(
    tmp_path: Path, overrides: list[str], lines: list[str], sent: str
) -> None:
    if not lines:
        os.environ["OPENAI_API_KEY"] = "sk-own"
    path = write(tmp_path, "OPENAI_BASE_URL=https://user:pw@elsewhere.example/v1", *lines)
    settings = compose(overrides)
    with pytest.raises(ConfigError) as caught:
        resolve_provider(settings, environment(settings, tmp_path))
    assert f"OPENAI_BASE_URL of {path}" in caught.value.message
    assert sent in caught.value.message
    assert "https://elsewhere.example/v1" in caught.value.message
    assert "pw" not in caught.value.message
    assert f"aeon trust {tmp_path}" in caught.value.hint


def test_an_address_of_it_does_not_become_the_simulated_provider_silently(tmp_path: Path) -> None:
    write(tmp_path, "OPENAI_BASE_URL=http://127.0.0.1:1/v1")
    settings = compose(["provider=auto"])
    with pytest.raises(ConfigError, match="your task sent to"):
        resolve_provider(settings, environment(settings, tmp_path))


def test_an_address_that_the_person_gives_goes_before_it(tmp_path: Path) -> None:
    write(tmp_path, "OPENAI_BASE_URL=https://elsewhere.example/v1", "OPENAI_API_KEY=sk-1")
    settings = compose(["provider=openai", "provider.base_url='http://127.0.0.1:2/v1'"])
    resolved = resolve_provider(settings, environment(settings, tmp_path))
    assert resolved.provider.base_url == "http://127.0.0.1:2/v1"


def test_a_missing_key_that_it_has_is_said_to_be_there(tmp_path: Path) -> None:
    write(tmp_path, "SECRET_HEADER=x", "OPENAI_API_KEY=sk-1")
    settings = compose(["provider=openai", "+provider.extra_headers_env.X-Key=SECRET_HEADER"])
    with pytest.raises(ConfigError) as caught:
        resolve_provider(settings, environment(settings, tmp_path))
    assert "`aeon trust` lets it take effect" in caught.value.hint


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / ".env")
    else:
        (tmp_path / ".env").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        environment(directory=tmp_path)
