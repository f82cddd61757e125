"""`aeon docs`: the pages of the package, and what a key means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aeon.config.folder_content import read_content
from aeon.config.trusted_folders import remember
from tests.cli.conftest import RunAeon

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("named", "page"),
    [
        ("errors", "docs/errors.md"),
        ("docs/errors.md", "docs/errors.md"),
        ("docs/errors.md#every-error", "docs/errors.md"),
        ("README.md", "README.md"),
        ("0016", "docs/decisions/0016-a-run-takes-the-recorded-settings.md"),
        (
            "docs/decisions/0016-a-run-takes-the-recorded-settings.md",
            "docs/decisions/0016-a-run-takes-the-recorded-settings.md",
        ),
        ("convergence", "docs/convergence.md"),
    ],
)
def test_a_topic_prints_its_page(aeon: RunAeon, named: str, page: str) -> None:
    ended = aeon("docs", named)
    assert ended.status == 0
    assert ended.out.strip() == (ROOT / page).read_text(encoding="utf-8").strip()


def test_without_a_topic_the_pages_are_listed_with_their_titles(aeon: RunAeon) -> None:
    out = aeon("docs").out
    for path in (ROOT / "docs").glob("*.md"):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        assert any(line.split() == [path.stem, *title.split()] for line in out.splitlines())


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        (
            "convergence.completeness",
            [
                "type: number, at least 0, at most 1",
                "default: 0.95  (convergence=default)",
                "convergence=strict: 0.98",
            ],
        ),
        (
            "execution.max_parallel",
            ["type: integer, at least 1, at most 512", "default: 8  (execution=default)"],
        ),
        ("provider.effort", ["type: one of none, minimal, low, medium, high, xhigh or null"]),
        ("provider.require_key", ["type: true or false"]),
        ("prompts.dir", ["type: path or null", "default: null  (prompts=default)"]),
        ("task", ["type: text or null", "default: null  (config.yaml)"]),
        ("tools.functions", ["type: mapping of text", "default: {}  (config.yaml)"]),
        ("tools.functions.price", ["default: {}  (config.yaml)"]),
        ("ttl.base=20", ["default: 10  (ttl=default)"]),
        ("provider.model", ["default: gpt-5-mini  (provider=openai)", "type: text"]),
        ("provider.retry.attempts", ["default: 3  (provider=openai)", "provider=local: 1"]),
        ("roles.grader.model", ["The model; null: unchanged."]),
    ],
)
def test_a_key_prints_its_comment_type_and_default(
    aeon: RunAeon, key: str, lines: list[str]
) -> None:
    ended = aeon("docs", key)
    assert ended.status == 0
    shown = [line.strip() for line in ended.out.splitlines()]
    assert set(lines) <= set(shown)
    assert not shown[1].startswith("type:")  # every key is commented


def test_a_group_prints_its_options_and_keys(aeon: RunAeon) -> None:
    lines = aeon("docs", "ttl").out.splitlines()
    assert lines[0] == "ttl=default | large | small"
    assert "  ttl.base  The base budget, multiplied by m, in LLM cycles." in lines


def test_what_is_neither_a_page_nor_a_key_is_answered_with_the_nearest(aeon: RunAeon) -> None:
    ended = aeon("docs", "convergence.completness")
    assert ended.status == 2
    assert "convergence.completeness" in ended.err


def test_other_words_are_searched_for_in_the_pages(aeon: RunAeon) -> None:
    ended = aeon("docs", "EXIT", "status")
    assert ended.status == 0
    assert re.search(r"^artefacts +Exit status$", ended.out, re.MULTILINE)
    assert "`aeon docs PAGE` prints a page." in ended.err.replace("python -m aeon", "aeon")


def test_a_place_is_a_page_its_heading_and_a_line(aeon: RunAeon) -> None:
    places = aeon("docs", "shards.yaml").out.splitlines()
    page, heading = places[0].split(maxsplit=1)
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert f"# {heading}\n" in text
    assert "shards.yaml" in places[1]
    assert places[1].strip() in text


def test_headings_with_the_words_stand_first(aeon: RunAeon) -> None:
    lines = aeon("docs", "--search", "trust").out.splitlines()
    assert "trust" in lines[0].lower()


def test_a_comment_in_an_example_is_no_heading(aeon: RunAeon) -> None:
    for line in aeon("docs", "--search", "aeon").out.splitlines():
        assert not line.strip().startswith("# ")


def test_words_that_stand_on_no_page_are_answered_with_the_pages(aeon: RunAeon) -> None:
    ended = aeon("docs", "xylophone", "sonata")
    assert ended.status == 2
    assert "no page mentions it" in ended.err


def test_a_key_that_is_marked_basic_is_shown_as_such(aeon: RunAeon) -> None:
    assert aeon("docs", "ttl.base").out.startswith("ttl.base  (basic)\n  ")
    assert aeon("docs", "ttl.limit").out.startswith("ttl.limit\n  ")


def test_a_key_of_ones_own_group_is_described(aeon: RunAeon, tmp_path: Path) -> None:
    own = tmp_path / "conf" / "customer" / "acme.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# How they are called.\nname: Acme # for short\n", encoding="utf-8")
    (tmp_path / "aeon.yaml").write_text("config_dir: conf\n", encoding="utf-8")
    remember(read_content(tmp_path))
    assert "  How they are called. for short\n" in aeon("docs", "customer.name").out
