"""What an installation of Aeon brings with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import aeon

FILE = Path(aeon.__file__).parents[1] / "pyproject.toml"
MOST = 14


def hard_dependencies() -> list[str]:
    return list(tomllib.loads(FILE.read_text())["project"]["dependencies"])


def names_of(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", text)[0].lower() for text in requirements}


def test_there_are_few_hard_dependencies() -> None:
    assert len(hard_dependencies()) <= MOST


def test_openai_brings_the_only_http_client_and_pyyaml_reads_all_yaml() -> None:
    others = {"httpx", "httpx2", "requests", "aiohttp", "urllib3", "ruamel-yaml", "strictyaml"}

    assert not names_of(hard_dependencies()) & others


def test_an_upper_bound_says_which_break_is_known() -> None:
    lines = FILE.read_text().splitlines()
    bounded = [number for number, line in enumerate(lines) if re.search(r'"[\w-]+>=[^"]+,<', line)]

    assert bounded
    assert [
        lines[number]
        for number in bounded
        if "#" not in lines[number] and not lines[number - 1].startswith("#")
    ] == []
