"""The page of a run: written with it, made again from its directory, and never in a run's way."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.report import html
from aeon.report.given import list_changed_settings
from aeon.report.html import render_markdown, without_controls
from aeon.report.items import Item, find_critical, list_items
from aeon.report.page import build
from aeon.report.page.build import draw_report, share_waited
from aeon.report.page.calls import TextTable, pack
from aeon.report.page.passes import compare_words
from aeon.report.record import load_record


def run(directory: Path, *overrides: str) -> Path:
    with Aeon.from_config(["provider=simulated", *overrides], environ={}) as aeon:
        aeon.run("plan a move", directory=directory)
    return directory


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("runs") / "run")


def island(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return {**data, **json.loads(zlib.decompress(base64.b64decode(data["packed"])))}


def text_of(page: dict[str, Any], reference: list[int]) -> str:
    """A text of the page, from its reference into the lines."""
    ending, *stretches = reference
    pairs = zip(stretches[::2], stretches[1::2], strict=True)
    lines = [line for start, count in pairs for line in page["lines"][start : start + count]]
    return ("\\n" if ending else "\n").join(lines)


def test_a_line_that_passes_share_is_on_the_page_once(directory: Path) -> None:
    page = island((directory / "report.html").read_text(encoding="utf-8"))
    assert len(page["lines"]) == len(set(page["lines"]))
    passes = [text_of(page, reference) for reference in page["passes"]]
    assert len(passes) > 1
    for number, drawn in enumerate(passes):
        assert drawn.startswith(f'<article class="pass" id="pass-{number}"')
        assert drawn.rstrip().endswith("</article>")
        # Each node of the drawing is a line of its own.
        assert not [line for line in drawn.splitlines() if line.count('class="node') > 1]


def test_the_page_of_a_run_is_that_which_is_made_again_of_its_directory(directory: Path) -> None:
    written = (directory / "report.html").read_text(encoding="utf-8")
    made = draw_report(load_record(directory)).decode()
    # The program's own overrides are not in a directory that a program wrote.
    assert island(made)["calls"] == island(written)["calls"]
    assert "SIMULATED" in made
    policy = made.replace("&#39;", "'")
    for rule in ("default-src 'none'", "base-uri 'none'", "form-action 'none'"):
        assert rule in policy


def test_controls_are_escaped_wherever_a_page_shows_a_text() -> None:
    steering = "a\x1b[31m\u202eb\x9b"
    shown = r"a\x1b[31m\u202eb\x9b"
    assert render_markdown(steering) == f"<p>{shown}</p>\n"
    assert without_controls({"k": [steering, 1]}) == {"k": [shown, 1]}
    packed = pack({"texts": [steering]})
    assert json.loads(zlib.decompress(base64.b64decode(packed))) == {"texts": [shown]}
    assert html._environment().from_string("{{ text }}").render(text=steering) == shown


def test_the_answer_of_each_judged_pass_can_be_labelled(directory: Path) -> None:
    page = island((directory / "report.html").read_text(encoding="utf-8"))
    history = json.loads((directory / "history.json").read_text(encoding="utf-8"))
    assert text_of(page, page["labels"]["task"]) == "plan a move"
    assert page["labels"]["inputs"] == {}
    for number, reference in page["labels"]["answers"].items():
        answer = history["passes"][int(number)]["answer"]
        assert text_of(page, reference) == answer
    assert len(page["labels"]["answers"]) == len(page["passes"])


def test_an_answer_of_very_many_characters_is_shown_as_it_is_written() -> None:
    assert render_markdown("# <b>\n" * 40_000).startswith("<pre># &lt;b&gt;\n")


def test_every_call_has_its_prompt_and_answer(directory: Path) -> None:
    record = load_record(directory)
    page = island((directory / "report.html").read_text(encoding="utf-8"))
    assert len(page["calls"]) == len(record.calls)
    for shown, call in zip(
        page["calls"], sorted(record.calls, key=lambda each: each.started), strict=True
    ):
        assert text_of(page, shown["answer"]) == call.text
        assert call.request
        assert [text_of(page, text) for _, text in shown["messages"]] == [
            one["content"] for one in call.request["messages"]
        ]


def test_a_run_without_journals_and_store_has_a_page(directory: Path, tmp_path: Path) -> None:
    for name in ("result.json", "history.json"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    page = draw_report(load_record(tmp_path)).decode()
    assert "There is no journal of this run" in page
    assert island(page)["calls"] == []


@pytest.mark.slow
def test_no_page_is_written_where_it_is_not_wanted_and_nothing_is_imported_for_it(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from pathlib import Path; from aeon import Aeon\n"
        "with Aeon.from_config(['provider=simulated', 'observability=none'], environ={}) as aeon:\n"
        f"    aeon.run('plan a move', directory=Path({str(tmp_path / 'run')!r}))\n"
        "print(*(name for name in sys.modules if name.startswith('aeon.report.page')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    assert not (tmp_path / "run" / "report.html").exists()


def test_the_setting_is_in_no_hash(tmp_path: Path) -> None:
    hashes = []
    for name, wanted in (("with", "true"), ("without", "false")):
        with Aeon.from_config(
            ["provider=simulated", f"observability.report={wanted}"], environ={}
        ) as aeon:
            hashes.append(aeon.run("plan a move", directory=tmp_path / name).hashes.configuration)
        assert (tmp_path / name / "report.html").exists() == (wanted == "true")
    assert hashes[0] == hashes[1]


def test_a_page_that_cannot_be_made_is_one_warning_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr(build, "draw_report", fail)
    said: list[str] = []
    with Aeon.from_config(["provider=simulated"], environ={}) as aeon:
        result = aeon.run("plan a move", directory=tmp_path, warn=said.append)
    assert result.converged
    assert [text for text in said if text.startswith("report.html: RuntimeError: no ink")] == said
    assert (tmp_path / "result.json").is_file()


def test_keys_that_were_changed_are_listed_with_their_defaults(tmp_path: Path) -> None:
    made = run(tmp_path / "run", "convergence.completeness=0.9", "ttl.base=20", "provider.seed=1")
    changed = {
        key: (value, default)
        for key, value, default in list_changed_settings(load_record(made).result)
    }
    assert changed == {
        "convergence.completeness": ("0.9", "0.95"),
        "ttl.base": ("20", "10"),
        "provider.seed": ("1", "0"),
    }


def test_a_text_is_stored_once_however_often_it_comes() -> None:
    table = TextTable()
    first = table.add("one\ntwo\nthree")
    assert table.add("one\ntwo\nthree\nfour") == [0, 0, 4]
    assert table.add("two\nthree\none") == [0, 1, 2, 0, 1]
    assert table.add('{"text": "a\\nb"}') == [1, 4, 2]
    assert table.add("") == [1, 6, 1]
    assert first == [0, 0, 3]
    assert table.lines == ["one", "two", "three", "four", '{"text": "a', 'b"}', ""]


def item(key: str, start: float, end: float) -> Item:
    place: dict[str, Any] = {
        "pass_number": 1,
        "phase": "EXECUTE",
        "step_id": None,
        "failed": False,
        "source": {},
    }
    return Item(key=key, kind="step", label=key, start=start, end=end, **place)


def test_the_critical_path_is_what_the_run_waited_for() -> None:
    items = [
        item("plan", 0, 1),
        item("short", 1, 2),
        item("long", 1, 4),
        item("after", 2, 3),
        item("last", 4, 5),
    ]
    assert [each.key for each in find_critical(items)] == ["plan", "long", "last"]


def test_waits_for_a_retry_are_told_apart_from_the_call_that_spans_them() -> None:
    call = item("call", 0, 5)
    wait = replace(item("", 1, 4), kind="wait", label="wait after RateLimited: slow down")
    assert share_waited([call], [call, wait]) == [("wait after RateLimited", 3), ("step", 2)]


def widths_in(part: str) -> list[float]:
    """How wide the bars of a part of a page are, in percent."""
    return [float(width) for width in re.findall(r'class="fill" width="([\d.]+)%"', part)]


def test_bars_of_tokens_are_as_wide_as_their_share_and_the_widest_comes_first(
    directory: Path,
) -> None:
    page = (directory / "report.html").read_text(encoding="utf-8")
    result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    used = Counter[str]()
    for line in (directory / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "call_answered":
            usage = event["usage"]
            used[event["call"]] += usage["input_tokens"] + usage["output_tokens"]
    total = result["usage"]["total"]["total_tokens"]
    expected = [round(100 * tokens / total, 1) for _, tokens in used.most_common()]
    of_calls = page.partition('aria-label="What it took, by call')[2].partition("</table>")[0]
    assert widths_in(of_calls) == pytest.approx(expected, abs=0.1)
    shown = re.findall(r"<small>(\d+) %</small>", of_calls)
    assert [int(share) for share in shown] == pytest.approx(expected, abs=0.6)
    assert sum(widths_in(of_calls)) == pytest.approx(100, abs=0.5)


def test_bars_of_waiting_are_as_wide_as_their_share_of_the_critical_path(directory: Path) -> None:
    record = load_record(directory)
    items = list_items(record)
    waited = share_waited(find_critical(items), items)
    total = sum(seconds for _, seconds in waited)
    page = draw_report(record).decode()
    bars = page.partition('<ul class="shares">')[2].partition("</ul>")[0]
    expected = [100 * seconds / total for _, seconds in waited[:8]]
    assert widths_in(bars) == pytest.approx(expected, abs=0.1)
    assert widths_in(bars) == sorted(widths_in(bars), reverse=True)


def test_words_that_changed_are_marked_and_escaped() -> None:
    assert compare_words("a <b> c", "a <i> c") == "a <del>&lt;b&gt;</del> <ins>&lt;i&gt;</ins> c"
    assert compare_words("", "<x>") == "<ins>&lt;x&gt;</ins>"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<b onclick=x>", "<p>&lt;b onclick=x&gt;</p>\n"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>\n"),
        (
            "[a](https://example.org)",
            '<p><a rel="noopener noreferrer" href="https://example.org">a</a></p>\n',
        ),
        ("# Head", "<h3>Head</h3>\n"),
        ("A line,\nand another", "<p>A line,<br />\nand another</p>\n"),
        ("## A\n\n#### B\n\n# C", "<h3>A</h3>\n<h4>B</h4>\n<h3>C</h3>\n"),
    ],
)
def test_an_answer_is_rendered_without_what_could_do_anything(text: str, html: str) -> None:
    assert render_markdown(text) == html


@pytest.mark.parametrize("levels", [8, 9, 30])
def test_an_answer_that_is_nested_too_deeply_to_be_rendered_is_whole(levels: int) -> None:
    text = "".join(f"{'  ' * level}- item{level}\n" for level in range(levels))
    shown = render_markdown(text)
    assert all(f"item{number}" in shown for number in range(levels))


def test_the_page_of_a_replay_shows_no_seconds_and_no_cost(directory: Path, tmp_path: Path) -> None:
    replay = ["store.mode=replay", f"store.path={directory}", "trust=true"]
    with Aeon.from_config(replay, environ={}) as aeon:
        aeon.run(directory=tmp_path / "replay")
    rows = [find_bought_cells(place) for place in (directory, tmp_path / "replay")]
    assert all(re.fullmatch(r"\d+\.\d", row[-1]) for row in rows[0])
    assert rows[1] == [[*row[:-2], "–", "–"] for row in rows[0]]


def find_bought_cells(directory: Path) -> list[list[str]]:
    """The rows of the table of what the passes bought."""
    page = (directory / "report.html").read_text(encoding="utf-8")
    table = re.findall(r"<tbody>(.*?)</tbody>", page.partition('id="bought"')[2], re.DOTALL)[0]
    rows = table.split("</tr>")[:-1]
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows]
