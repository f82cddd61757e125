import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aeon.domain.checks import ToolResult
from aeon.tools.builtin.files import SECRET_NAMES, file_tools
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

SECRET = "what nobody may read"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "notes" / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (folder / "notes" / "b.md").write_text("ünï", encoding="utf-8")
    (folder / "notes" / "old" / "c.md").write_text("c", encoding="utf-8")
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET, encoding="utf-8")
    return folder


def call(root: Path, name: str, **arguments: Any) -> ToolResult:
    tools = file_tools(root, 1_000, 5)
    return ToolInvoker(ToolRegistry(tools)).invoke(name, arguments)


def read(root: Path, path: str, **more: Any) -> ToolResult:
    return call(root, "read_file", path=path, **more)


def test_a_file_is_read_by_its_path_from_the_folder(root: Path) -> None:
    assert read(root, "a.txt").output == "one\ntwo\nthree\n"
    assert read(root, "notes/b.md").output == "ünï"
    assert read(root, "./notes//old/c.md").output == "c"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ({"first_line": 2}, "two\nthree\n"),
        ({"lines": 1}, "one\n"),
        ({"first_line": 2, "lines": 1}, "two\n"),
        ({"first_line": 9}, ""),
    ],
)
def test_some_lines_can_be_read(root: Path, lines: dict[str, int], text: str) -> None:
    assert read(root, "a.txt", **lines).output == text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../secret.txt", "leads out"),
        ("notes/../../secret.txt", "leads out"),
        ("/etc/passwd", "leads out"),
        ("//etc/passwd", "leads out"),
        ("~/secret.txt", "no such file"),
        ("a\0.txt", "null byte"),
        ("missing.txt", "no such file"),
        ("a.txt/b", "no such file"),
        ("notes", "no such file"),
        (".", "no such file"),
    ],
)
def test_no_path_leads_elsewhere(root: Path, path: str, said: str) -> None:
    result = read(root, path)
    assert (result.error_kind, result.output) == ("raised", None)
    assert said in str(result.error)


@pytest.mark.parametrize("target", ["../secret.txt", "ABSOLUTE"])
def test_no_link_leads_out(root: Path, target: str) -> None:
    (root / "link").symlink_to(root.parent / "secret.txt" if target == "ABSOLUTE" else target)
    assert "leads out" in str(read(root, "link").error)


def test_a_link_within_the_folder_is_followed(root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    assert read(root, "link").output == "one\ntwo\nthree\n"


def test_no_link_in_the_middle_leads_out(root: Path) -> None:
    (root / "notes" / "aside").symlink_to(root.parent / "outside")
    assert "leads out" in str(read(root, "notes/aside/secret.txt").error)
    assert "leads out" in str(call(root, "list_files", path="notes/aside").error)


def test_no_exchange_of_folders_leads_out(root: Path) -> None:
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("harmless")
    (root / "trap").symlink_to(root.parent / "outside")
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            (root / "swap").rename(root / "kept")
            (root / "trap").rename(root / "swap")
            (root / "swap").rename(root / "trap")
            (root / "kept").rename(root / "swap")

    exchanging = threading.Thread(target=exchange)
    exchanging.start()
    read_file, _ = file_tools(root, 1_000)
    seen = set()
    try:
        for _ in range(300):
            with suppress(ValueError):
                seen.add(read_file.invoke({"path": "swap/secret.txt"}))
    finally:
        stop.set()
        exchanging.join()
    assert seen <= {"harmless"}


def test_a_link_that_comes_between_the_look_and_the_opening_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = Path.resolve

    def resolve_then_exchange(path: Path, strict: bool = False) -> Path:
        found = resolve(path, strict)
        if path.name == "a.txt" and not path.is_symlink():
            path.unlink()
            path.symlink_to(root.parent / "secret.txt")
        return found

    monkeypatch.setattr(Path, "resolve", resolve_then_exchange)
    assert "there is no such file" in str(read(root, "a.txt").error)


def test_no_descriptor_is_left_open(root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a.txt", "missing", "notes", "link", "notes/b.md", "notes/x/y"):
        read(root, path)
    call(root, "list_files", recursive=True)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    "path",
    [".env", "notes/.env.local", "prod.ENV", ".git/config", "ID_RSA", "notes/tls.pem", "a.Key"],
)
def test_files_that_hold_keys_are_not_read_unless_they_are_named(root: Path, path: str) -> None:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(SECRET)
    (root / "harmless").symlink_to(path)
    for name in (path, "harmless"):
        assert "tools.builtin.allowed_secret_files" in str(read(root, name).error)
    named = [part for part in Path(path).parts if part != "notes"]
    read_file, _ = file_tools(root, 1_000, allowed_secrets=named)
    assert read_file.invoke({"path": path}) == SECRET


def test_folders_that_hold_keys_are_named_and_not_looked_into(root: Path) -> None:
    (root / ".ssh").mkdir()
    (root / ".ssh" / "known_hosts").touch()
    listed = file_tools(root, 1_000)[1].invoke({"recursive": True})
    paths = [entry["path"] for entry in listed["entries"]]
    assert ".ssh" in paths
    assert ".ssh/known_hosts" not in paths
    assert "allowed_secret_files" in str(call(root, "list_files", path=".ssh").error)


def test_the_names_of_files_that_hold_keys_are_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
    assert [name for name in SECRET_NAMES if f"`{name}`" not in page] == []


def test_the_folder_itself_may_be_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(root)
    assert read(tmp_path / "way", "notes/b.md").output == "ünï"


def test_a_pipe_is_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "no such file" in str(read(root, "pipe").error)


@pytest.mark.parametrize("content", [b"\x00\x01", b"\xff\xfe", "latin é".encode("latin-1")])
def test_what_is_not_text_is_refused(root: Path, content: bytes) -> None:
    (root / "x.bin").write_bytes(content)
    assert "not a text file" in str(read(root, "x.bin").error)


def test_a_file_that_is_too_large_is_refused(root: Path) -> None:
    (root / "fits.txt").write_text("x" * 1_000)
    (root / "large.txt").write_text("x" * 1_001)
    assert read(root, "fits.txt").error is None
    assert "larger than 1000 bytes" in str(read(root, "large.txt").error)


def test_a_folder_is_listed_sorted_with_kinds_and_sizes(root: Path) -> None:
    (root / "link").symlink_to("/etc")
    assert call(root, "list_files").output == {
        "entries": [
            {"path": "a.txt", "kind": "file", "size": 14},
            {"path": "link", "kind": "link", "size": None},
            {"path": "notes", "kind": "folder", "size": None},
        ],
        "complete": True,
    }


def test_a_listed_path_can_be_read(root: Path) -> None:
    listed = call(root, "list_files", path="notes/", recursive=True).output["entries"]
    assert [entry["path"] for entry in listed] == ["notes/b.md", "notes/old", "notes/old/c.md"]
    assert read(root, listed[2]["path"]).output == "c"


def test_a_long_list_is_cut_and_says_so(root: Path) -> None:
    for number in range(6):
        (root / "notes" / f"{number}.md").touch()
    listing = call(root, "list_files", path="notes").output
    assert (len(listing["entries"]), listing["complete"]) == (5, False)


@pytest.mark.parametrize(
    ("path", "said"),
    [("..", "leads out"), ("/", "leads out"), ("missing", "no such"), ("a.txt", "no such")],
)
def test_nothing_else_is_listed(root: Path, path: str, said: str) -> None:
    assert said in str(call(root, "list_files", path=path).error)


def test_names_that_are_no_unicode_are_listed_nevertheless(root: Path) -> None:
    (root / "notes" / "old" / os.fsdecode(b"\xff.md")).touch()
    listed = call(root, "list_files", path="notes/old").output["entries"]
    assert [entry["path"] for entry in listed] == ["notes/old/\\xff.md", "notes/old/c.md"]
