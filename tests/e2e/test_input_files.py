"""Files as inputs on the command line: refused, stored, resumed, replayed, carried in cassettes, and shown."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon
from tests.cli.conftest import aeon as aeon
from tests.support.input_files import make_docx, make_pdf, make_png
from tests.support.openai_server import OpenAIServer

PNG = make_png()
DIGEST = hashlib.sha256(PNG).hexdigest()
LOOKED_AT = (
    "provider=simulated",
    "provider.accepts=[image]",
    "mode=auto",
    "task=x",
    "input_files.photo=photo.png",
)
QUIET = ("progress=none",)


def newest(root: Path) -> Path:
    return max((root / "outputs").glob("*/*"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    path.write_bytes(PNG)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PNG, "provider=simulated calls no model: it reads no image"),
        (PNG[:-7], "a PNG image that is cut off"),
        (make_pdf()[:-40], "a PDF that is cut off or damaged"),
        (b"MZ\x90\0" + bytes(99), "a program for Windows"),
        (b"GIF89a\xff", "a GIF image"),
        (make_docx(), "a Word document, which goes to a model as text"),
        (make_docx(more={"word/zeros": bytes(10**8)}), "unpack to 100,00"),
    ],
    ids=["simulated", "png", "pdf", "program", "gif", "word", "bomb"],
)
def test_what_no_model_can_be_given_ends_with_2_and_leaves_no_folder(
    content: bytes, message: str, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(content)
    ended = aeon("task=x", "input_files.x=a.png", "provider=simulated", *QUIET)
    assert ended.status == 2
    assert message in ended.err
    assert not (tmp_path / "outputs").exists()


def test_a_large_file_and_an_address_end_with_2(aeon: RunAeon, tmp_path: Path) -> None:
    with (tmp_path / "big.pdf").open("wb") as file:
        file.truncate(3 * 10**9)
    for given, message in (
        ("big.pdf", "3,000,000,000 bytes"),
        ("https://example.com/a.png", "an address is not fetched"),
    ):
        ended = aeon("task=x", f"input_files.x={given}", "provider=simulated", *QUIET)
        assert ended.status == 2
        assert message in ended.err


def test_what_is_said_of_a_file_needs_the_file(aeon: RunAeon) -> None:
    ended = aeon("task=x", "input_as.x=text", "provider=simulated", *QUIET)
    assert ended.status == 2
    assert "input_files.x=path" in ended.err


@pytest.mark.slow
def test_a_run_goes_on_with_its_own_copy_of_a_file(
    aeon: RunAeon, photo: Path, tmp_path: Path
) -> None:
    assert aeon(*LOOKED_AT, *QUIET, "limits.max_llm_calls=4").status == 3
    first = newest(tmp_path)
    photo.unlink()
    ended = aeon(f"resume={first}", "limits.max_llm_calls=null", *QUIET)
    assert ended.status == 0
    second = newest(tmp_path)
    assert second != first
    assert (second / "files" / f"{DIGEST}.png").read_bytes() == PNG
    result = json.loads((second / "result.json").read_bytes())
    assert result["hashes"]["inputs"] == {"photo": DIGEST}
    assert result["parent"]["saved"]["model_calls"] == 4

    (second / "files" / f"{DIGEST}.png").write_bytes(make_png(9))
    changed = aeon(f"resume={second}", *QUIET)
    assert changed.status == 2
    assert "has changed" in changed.err
    assert "input_files.photo=path" in changed.err


@pytest.mark.slow
@pytest.mark.parametrize(("files", "is_found"), [("", False), ("beside", True), ("inside", True)])
def test_a_cassette_is_replayed_with_its_files_or_by_their_hashes(
    files: str, is_found: bool, aeon: RunAeon, photo: Path, tmp_path: Path
) -> None:
    assert aeon(*LOOKED_AT, *QUIET).status == 0
    chosen = ["--files", files] if files else []
    exported = aeon("cassette", "export", str(newest(tmp_path)), "a.aeon", *chosen)
    assert exported.status == 0
    assert ("nothing was searched for" in exported.err.replace("\n", " ")) == is_found
    assert (tmp_path / "a.aeon.files").is_dir() == (files == "beside")
    shown = aeon("cassette", "show", "a.aeon").out
    assert re.search(rf"photo \(image/png, {len(PNG)} bytes, (inside|by its hash)\)", shown)
    photo.unlink()
    assert aeon("store.mode=replay", "store.path=a.aeon", *QUIET).status == 0
    replayed = newest(tmp_path)
    assert (replayed / "files").exists() == is_found


@pytest.mark.slow
def test_an_inner_file_that_was_changed_is_not_used(
    aeon: RunAeon, photo: Path, tmp_path: Path
) -> None:
    assert aeon(*LOOKED_AT, *QUIET).status == 0
    run = str(newest(tmp_path))
    assert aeon("cassette", "export", run, "a.aeon", "--files", "inside").status == 0
    text = (tmp_path / "a.aeon").read_text()
    (tmp_path / "a.aeon").write_text(text.replace('"iVBOR', '"AAAAA', 1))
    assert aeon("store.mode=replay", "store.path=a.aeon", *QUIET).status == 0
    assert not (newest(tmp_path) / "files").exists()


def test_the_page_shows_a_small_image_a_large_one_shrunk_and_links_to_both(
    aeon: RunAeon, photo: Path, tmp_path: Path
) -> None:
    noise = random.Random(0).randbytes(3 * 200 * 200)
    large = make_png(200, 200, noise=noise)
    assert len(large) > 64 * 1024
    (tmp_path / "large.png").write_bytes(large)
    assert aeon(*LOOKED_AT, "input_files.map=large.png", *QUIET).status == 0
    page = (newest(tmp_path) / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "img-src data:;" in policy[1]
    assert page.count("<img ") == 2
    assert 'src="data:image/png;base64,' in page
    assert 'src="data:image/webp;base64,' in page
    for content in (PNG, large):
        assert f'href="files/{hashlib.sha256(content).hexdigest()}.png"' in page
    (tmp_path / "to").mkdir()
    run = str(newest(tmp_path).relative_to(tmp_path))
    assert aeon("inspect", run, "--output", "to/page.html").status == 0
    elsewhere = (tmp_path / "to" / "page.html").read_text()
    assert f'href="../{run}/files/{DIGEST}.png"' in elsewhere


@pytest.mark.slow
def test_the_text_of_a_document_is_given_and_recorded(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf("The total is 42."))
    (tmp_path / "b.docx").write_bytes(make_docx("The limit is 50."))
    given = ["input_files.a=a.pdf", "input_files.b=b.docx", "input_as.a=text", "input_as.b=text"]
    ended = aeon("task=x", *given, "input_max_characters=9", "provider=simulated", *QUIET)
    assert ended.status in (0, 3)
    origin = json.loads((newest(tmp_path) / "run.json").read_bytes())
    cut = "[cut after 9 characters: 7 more are left out]"
    assert origin["inputs"] == {"a": f"The total\n{cut}", "b": f"The limit\n{cut}"}
    assert origin["input_files"] == {}


def test_the_rows_of_a_batch_have_the_files_of_the_command_line(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "photo.png").write_bytes(PNG)
    rows = [
        {"task": "look"},
        {"task": "read", "inputs": {"photo": "described in words"}},
        {"task": "send", "input_files": {"photo": "/etc/hostname"}},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with OpenAIServer({"direct": {"working": None, "answer": "done"}}) as server:
        given = [*server.overrides, "mode=single", "input_files.photo=photo.png", *QUIET]
        given += ["batch.records=all", "batch.parallel=1"]
        ended = aeon("batch", "dataset=rows.jsonl", "out=out.jsonl", *given)
        contents = {
            "look" if isinstance(request.body["messages"][-1]["content"], list) else "read"
            for request in server.requests
        }
        assert (len(server.requests), contents) == (2, {"look", "read"})
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    refused = next(line for line in lines if line["row"] == 3)
    assert ended.status != 0
    assert "a row names no files" in json.dumps(refused)


def test_a_plan_is_made_for_a_task_with_a_file(aeon: RunAeon, photo: Path) -> None:
    ended = aeon("plan", *LOOKED_AT, *QUIET)
    assert ended.status == 0
    assert "input_files.photo=photo.png" in ended.out
    assert f"attached file: image/png, {len(PNG)} bytes" in aeon("render", "step", *LOOKED_AT).out


@pytest.mark.slow
@pytest.mark.parametrize("more", [["provider.accepts=[pdf]"], ["input_as.receipt=text"]])
def test_the_example_runs_with_the_receipt_as_it_is_and_as_text(
    more: list[str], aeon: RunAeon
) -> None:
    folder = Path(__file__).parents[2] / "examples" / "inputs"
    files = [f"input_files.{path.stem}={path}" for path in folder.glob("*.[pc][ds][fv]")]
    assert len(files) == 2
    given = [*files, "provider=simulated", *more, *QUIET]
    assert aeon("check", str(folder / "plan.yaml"), *given).status == 0
    assert aeon(f"plan_file={folder / 'plan.yaml'}", *given).status in (0, 3)


@pytest.mark.slow
def test_the_files_of_a_run_are_removed_with_it_and_no_others(
    aeon: RunAeon, photo: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        assert aeon(*LOOKED_AT, *QUIET, f"hydra.run.dir=runs/{name}").status == 0
    (tmp_path / "runs" / "two" / "files" / "mine.png").write_bytes(PNG)
    ended = aeon("runs", "prune", "runs", "--keep", "0", "--yes")
    assert "Removed 2 runs" in ended.out
    assert not (tmp_path / "runs" / "one").exists()
    left = [path.name for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert left == ["mine.png"]
