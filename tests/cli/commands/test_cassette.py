"""`aeon cassette`: what a run was answered goes into one file, and is told from there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from aeon.store.cassette import read
from aeon.store.sqlite_store import SqliteStore
from tests.cli.conftest import RunAeon
from tests.support import dict_store
from tests.support.openai_server import OpenAIServer

KEY = "sk-live-1234567890"


@pytest.fixture
def run(aeon: RunAeon, tmp_path: Path) -> Path:
    """The directory of a simulated run."""
    assert aeon("task=name three rivers", "provider=simulated", "progress=none").status == 0
    return newest(tmp_path)


def newest(root: Path) -> Path:
    return max((root / "outputs").glob("*/*"), key=lambda path: path.stat().st_mtime_ns)


def test_a_run_is_exported_with_all_that_it_was_answered(aeon: RunAeon, run: Path) -> None:
    calls = json.loads((run / "result.json").read_bytes())["usage"]["total"]["requests"]
    ended = aeon("cassette", "export", str(run), "out.aeon")
    assert (ended.status, ended.err) == (0, "")
    assert (
        ended.out == f"out.aeon: {calls} answers, answered by the simulated provider (no model)\n"
    )
    cassette = read(Path("out.aeon"))
    assert len(cassette.answers) == calls
    assert cassette.provenance.synthetic
    assert cassette.origin["task"] == "name three rivers"
    assert cassette.origin["settings"]["provider"]["kind"] == "simulated"
    assert "progress" not in cassette.origin["settings"]
    assert not cassette.origin["missing"]
    assert str(run.parents[2]) not in Path("out.aeon").read_text(encoding="utf-8").splitlines()[0]


def test_a_cassette_says_what_was_chosen_for_its_run_as_far_as_others_may(
    aeon: RunAeon, tmp_path: Path
) -> None:
    run = ("task=name three rivers", "provider=simulated", "progress=none", "hydra.run.dir=r")
    typed = ("convergence=lenient", "limits.max_passes=5", "store.mode=cache")
    assert aeon(*run, *typed).status == 0
    assert json.loads(Path("r/run.json").read_bytes())["choices"] == [*run[1:3], *typed]
    resumed = ("resume=r", "trust=true", "convergence=default", "hydra.run.dir=again")
    assert aeon(*resumed).status == 0
    for name, chosen in (("r", "lenient"), ("again", "default")):
        assert aeon("cassette", "export", name, f"{name}.aeon").status == 0
        choices = read(Path(f"{name}.aeon")).origin["choices"]
        assert sorted(choices) == [f"convergence={chosen}", "limits.max_passes=5"]


def test_a_choice_that_reads_another_value_is_not_composed_again(
    aeon: RunAeon, tmp_path: Path
) -> None:
    run = ("task=name three rivers", "provider=simulated", "progress=none", "hydra.run.dir=r")
    assert aeon(*run, "limits.max_passes=${ttl.base}").status == 0
    assert aeon("cassette", "export", "r", "r.aeon").status == 0
    origin = read(Path("r.aeon")).origin
    assert (origin["choices"], origin["settings"]["limits"]["max_passes"]) == (None, 10)


def test_no_secret_goes_with_what_was_typed(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTE_KEY", "pa'ss-w0rd'99")
    monkeypatch.setenv("SHOP_KEY", KEY)
    run = ("task=name three rivers", "provider=simulated", "progress=none")
    criteria = ("convergence.criteria.x=pa'ss-w0rd'99", "convergence.criteria.x=other")
    models = (f"roles.worker.model=m-{KEY}/x",)
    for number, typed in enumerate((criteria, models)):
        folder = f"r{number}"
        assert aeon(*run, *typed, f"hydra.run.dir={folder}").status in (0, 3)
        assert aeon("cassette", "export", folder, f"{folder}.aeon").status == 0
        text = Path(f"{folder}.aeon").read_text(encoding="utf-8")
        assert KEY not in text
        assert "ss-w0rd" not in text


def test_a_store_alone_is_exported_and_what_is_missing_is_said(aeon: RunAeon, run: Path) -> None:
    (run / "store.sqlite").rename("alone.sqlite")
    ended = aeon("cassette", "export", "alone.sqlite", "out.aeon")
    assert ended.status == 0
    assert (
        "A replay must be given these, they are not in out.aeon or not applied from it: task, settings."
        in ended.err
    )
    assert read(Path("out.aeon")).origin == {}


def test_a_run_that_broke_off_is_exported_with_what_there_is(aeon: RunAeon, tmp_path: Path) -> None:
    scenario = tmp_path / "broken.yaml"
    scenario.write_text("calls:\n  plan:\n    - fail: auth\n", encoding="utf-8")
    broken = aeon("task=x", "provider=simulated", f"provider.scenario={scenario}", "progress=none")
    assert broken.status == 1
    run = newest(tmp_path)
    (run / "result.json").unlink()
    assert aeon("cassette", "export", str(run), "out.aeon").status == 0
    first, *rest = read(Path("out.aeon")).answers
    assert (first.request.path.call, "text" in first.answer) == ("task_profile", True)
    assert not any("text" in entry.answer for entry in rest)
    again = aeon("store.mode=replay", "store.path=out.aeon")
    assert (again.status, again.out) == (1, broken.out)


def test_a_run_without_answers_is_refused(aeon: RunAeon, tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.sqlite").close()
    ended = aeon("cassette", "export", str(tmp_path), "out.aeon")
    assert ended.status == 1
    assert "there is no answer in it" in ended.err
    assert not Path("out.aeon").exists()


def test_a_folder_that_is_no_run_is_refused(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("cassette", "export", str(tmp_path), "out.aeon")
    assert ended.status == 2
    assert "holds no store.sqlite" in ended.err


def test_a_file_that_is_there_is_replaced_only_by_force(aeon: RunAeon, run: Path) -> None:
    out = Path("out.aeon")
    out.write_text("mine", encoding="utf-8")
    ended = aeon("cassette", "export", str(run), "out.aeon")
    assert ended.status == 2
    assert "out.aeon exists already" in ended.err
    assert out.read_text(encoding="utf-8") == "mine"
    assert aeon("cassette", "export", str(run), "out.aeon", "--force").status == 0
    assert read(out).answers


def test_a_name_that_replay_would_not_take_for_a_cassette_is_refused(
    aeon: RunAeon, run: Path
) -> None:
    ended = aeon("cassette", "export", str(run), "out.yaml")
    assert ended.status == 2
    assert "must end with .aeon" in ended.err


def test_whoever_exports_may_say_who_answered(aeon: RunAeon, run: Path) -> None:
    said = ["--answered-by", "hand, at a table", "--note", "only a trial"]
    assert aeon("cassette", "export", str(run), "out.aeon", *said).status == 0
    told = read(Path("out.aeon")).provenance
    assert (told.answered_by, told.note) == ("hand, at a table", "only a trial")
    assert aeon("cassette", "export", "out.aeon", "again.aeon").status == 0
    assert read(Path("again.aeon")) == read(Path("out.aeon"))


def test_a_cassette_is_told_with_every_call(aeon: RunAeon, run: Path) -> None:
    aeon("cassette", "export", str(run), "out.aeon", "--answered-by", "hand\x1b[31m")
    ended = aeon("cassette", "show", "out.aeon")
    assert ended.status == 0
    assert "  answered by  hand [31m\n" in ended.out
    assert "\x1b" not in ended.out
    assert "  task         name three rivers\n" in ended.out
    answers = read(Path("out.aeon")).answers
    assert ended.out.count("  pass ") == len(answers)


def test_what_is_no_cassette_is_said(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "x.aeon").write_text("a: 1\n", encoding="utf-8")
    ended = aeon("cassette", "show", "x.aeon")
    assert ended.status == 2
    assert (
        "x.aeon is not a cassette: its first line does not say the format aeon.cassette/2"
        in ended.err
    )
    assert aeon("cassette").status == 2


@pytest.mark.slow
def test_a_key_that_a_tool_gave_away_is_not_in_the_cassette(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    monkeypatch.setenv("HEADERS_OF_MINE", "Bearer-abcdef")
    (tmp_path / "shop_that_leaks.py").write_text(
        "import os\n\ndef stock(article: str) -> dict:\n"
        '    """Tell the stock."""\n'
        '    return {"debug": "token=" + os.environ["SHOP_TOKEN"], "headers": os.environ["HEADERS_OF_MINE"]}\n',
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = [
        {
            "step_id": "look",
            "description": "look",
            "dependencies": [],
            "tool": "stock",
            "arguments": '{"article": "A"}',
        },
        {"step_id": "say", "description": "say", "dependencies": ["look"]},
    ]
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        yaml.safe_dump({"calls": {"plan": {"answer": {"goal": "g", "steps": steps}}}})
    )
    overrides = [
        "provider=simulated",
        f"provider.scenario={scenario}",
        "tools.functions.stock=shop_that_leaks:stock",
    ]
    assert aeon("task=x", "mode=core", "progress=none", *overrides).status == 0
    run = newest(tmp_path)
    configured = run / ".hydra" / "config.yaml"
    configured.write_text(configured.read_text() + "extra_headers_env: {X: HEADERS_OF_MINE}\n")
    ended = aeon("cassette", "export", str(run), "out.aeon")
    assert ended.status == 0
    text = Path("out.aeon").read_text(encoding="utf-8")
    assert KEY not in text
    assert "Bearer-abcdef" not in text
    assert "token=[value of SHOP_TOKEN]" in text
    found = read(Path("out.aeon")).provenance.secrets_replaced
    assert set(found) == {"SHOP_TOKEN", "HEADERS_OF_MINE"}
    assert f"The value of SHOP_TOKEN occurred {found['SHOP_TOKEN']} times" in ended.err
    again = aeon(
        "store.mode=replay",
        "store.path=out.aeon",
        "task=x",
        "mode=core",
        "progress=none",
        *overrides,
    )
    assert again.status == 0, again.err
    assert KEY not in again.out


@pytest.mark.slow
def test_no_key_and_no_header_of_a_real_server_is_in_a_cassette(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    openai_server.script |= {
        "plan": {"goal": "g", "steps": []},
        "step": {"step_output": f"you sent {KEY}", "clarity_state": "CLEAR"},
    }
    aeon(
        "task=x",
        "provider=openai",
        f"provider.base_url={openai_server.url}",
        "mode=core",
        "progress=none",
    )
    assert any(
        KEY in request.headers.get("authorization", "") for request in openai_server.requests
    )
    assert aeon("cassette", "export", str(newest(tmp_path)), "out.aeon").status == 0
    text = Path("out.aeon").read_text(encoding="utf-8").lower()
    assert KEY not in text
    assert "authorization" not in text
    assert "provider openai" in text


@pytest.mark.parametrize(
    "command",
    [("show", "none.aeon"), ("export", "none", "out.aeon"), ("export", "x.aeon", "y.aeon")],
)
def test_what_is_not_there_is_a_mistake_in_what_was_typed(
    command: tuple[str, ...], aeon: RunAeon
) -> None:
    ended = aeon("cassette", *command)
    assert (ended.status, ended.out) == (2, "")
    assert command[1] in ended.err


def test_a_cassette_without_answers_is_shown(aeon: RunAeon, run: Path) -> None:
    assert aeon("cassette", "export", str(run), "out.aeon").status == 0
    header = Path("out.aeon").read_text(encoding="utf-8").splitlines()[0]
    Path("empty.aeon").write_text(f"{header}\n", encoding="utf-8")
    shown = aeon("cassette", "show", "empty.aeon")
    assert (shown.status, shown.err) == (0, "")
    assert "passes       0" in shown.out


def test_what_had_been_replaced_is_still_counted_when_a_cassette_is_exported_again(
    aeon: RunAeon, run: Path
) -> None:
    assert aeon("cassette", "export", str(run), "out.aeon").status == 0
    text = Path("out.aeon").read_text(encoding="utf-8")
    Path("one.aeon").write_text(
        text.replace('"provenance": {', '"provenance": {"secrets_replaced": {"A_KEY": 3}, ', 1)
    )
    assert aeon("cassette", "export", "one.aeon", "two.aeon", "--note", "anew").status == 0
    assert read(Path("two.aeon")).provenance.secrets_replaced == {"A_KEY": 3}


def test_a_secret_in_an_override_leaves_a_cassette_that_can_be_replayed(
    aeon: RunAeon, tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script |= {
        "plan": {"steps": [{"id": "a", "description": "do it"}]},
        "step": {"step_output": "x", "clarity_state": "CLEAR", "handoff_to_next": None},
    }
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    given = (
        f"provider.base_url={openai_server.url}",
        f"provider.extra_body={{user: {KEY}, n: [true, 1.5, null]}}",
    )
    recorded = aeon(
        "task=name three rivers", "provider=openai", "mode=core", *given, "hydra.run.dir=run"
    )
    calls = len(openai_server.names)
    assert any(request.body.get("user") == KEY for request in openai_server.requests)
    exported = aeon("cassette", "export", "run", "out.aeon")
    assert exported.status == 0, exported.err
    text = Path("out.aeon").read_text(encoding="utf-8")
    assert KEY not in text
    assert openai_server.url not in text
    monkeypatch.delenv("OPENAI_BASE_URL")
    replayed = aeon("store.mode=replay", "store.path=out.aeon", "progress=none")
    assert (replayed.status, replayed.out) == (recorded.status, recorded.out), replayed.err
    assert len(openai_server.names) == calls


def test_a_run_in_a_store_of_ones_own_is_exported_shown_and_resumed_from_elsewhere(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / "home").mkdir()
    text = Path(dict_store.__file__).read_text(encoding="utf-8")
    (home / "own_store.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.chdir(home)
    own = "store.backend=own_store:DictStore"
    assert (
        aeon("task=name three rivers", "provider=simulated", own, "hydra.run.dir=run").status == 0
    )
    assert aeon("cassette", "export", "run", "out.aeon").status == 0
    assert read(Path("out.aeon")).answers
    monkeypatch.chdir(tmp_path)
    sys.path.remove(str(home))
    monkeypatch.setitem(sys.modules, "own_store", None)
    assert aeon("inspect", "home/run").status == 0
    monkeypatch.delitem(sys.modules, "own_store")
    assert (
        "its answers cannot be read: there is no store" in aeon("resume=home/run").err
    )  # it was found, and is new


@pytest.mark.parametrize("content", ["null", "[]", "1"])
def test_a_run_whose_result_is_no_object_is_exported_all_the_same(
    aeon: RunAeon, run: Path, content: str
) -> None:
    (run / "result.json").write_text(content)
    assert aeon("cassette", "export", str(run), "out.aeon").status == 0
