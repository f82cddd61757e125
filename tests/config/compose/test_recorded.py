"""What a run records of its settings, and what is known of them later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon.config.compose.recorded import check_known, find_new, leaves, record, remove
from aeon.config.load import compose
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError

SECRET = "sk-0123456789abcdef"


def recorded(*overrides: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    return record(compose(overrides))


def test_all_settings_are_recorded_but_the_task_and_how_jobs_are_carried_out() -> None:
    values, missing = recorded("task=x", "inputs.a=b", "ttl.base=7", "batch.parallel=2")
    assert (values["ttl"]["base"], missing) == (7, ())
    given = {"task", "task_file", "inputs", "input_files", "input_as"}
    apart = {*given, "resume", "sweep", "batch", "trust", "arms", "mcp", "serve"}
    assert values.keys() == Settings.model_fields.keys() - apart


def test_what_was_recorded_gives_the_same_settings() -> None:
    settings = compose(["provider=groq", "tools=builtin", "ttl=large", "mode=core"])
    assert Settings.model_validate(record(settings)[0]) == settings


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values, _ = recorded("memory=sqlite", "memory.path=notes.sqlite")
    assert values["memory"]["path"] == str(tmp_path / "notes.sqlite")


def test_what_a_file_said_is_recorded_in_place_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "criteria.yaml").write_text("cited: Every claim names its source.\n")
    (tmp_path / "entries.yaml").write_text("a: 1\n")
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    values, _ = recorded(
        f"convergence.criteria_file={tmp_path}/criteria.yaml",
        f"memory.entries_file={tmp_path}/entries.yaml",
        f"answer.schema={tmp_path}/schema.json",
    )
    assert values["convergence"]["criteria"] == {"cited": "Every claim names its source."}
    assert values["memory"]["entries"] == {"a": 1}
    assert values["answer"]["json_schema"] == {"type": "object"}
    names = [values["convergence"]["criteria_file"], values["memory"]["entries_file"]]
    assert [*names, values["answer"]["schema"]] == [None, None, None]


def test_a_secret_of_the_environment_is_left_out_and_its_key_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_MINE", SECRET)
    values, missing = recorded(
        "convergence.criteria.a=b", "+provider.extra_body.user=${oc.env:OF_MINE}"
    )
    assert missing == ("provider.extra_body.user",)
    assert SECRET not in str(values)


def test_an_address_with_a_key_in_it_is_left_out() -> None:
    _, missing = recorded("provider=openai", "provider.base_url=http://a:b@elsewhere/v1")
    assert missing == ("provider.base_url",)


def test_a_key_that_this_version_does_not_have_is_left_out_and_named() -> None:
    values, _ = recorded()
    values["ttl"]["gone"] = 1
    known, unknown = check_known({**values, "whole": {"group": 1}}, Settings, "resume=DIR")
    assert sorted(unknown) == ["ttl.gone", "whole"]
    assert "gone" not in known["ttl"]


def test_a_value_that_this_version_does_not_allow_is_refused() -> None:
    values, _ = recorded()
    values["ttl"]["base"] = "many"
    with pytest.raises(ConfigError, match=r"resume=DIR: settings\.ttl\.base") as caught:
        check_known(values, Settings, "resume=DIR")
    assert "Another version of Aeon" in caught.value.hint


def test_nothing_of_the_task_and_of_trust_is_taken_from_recorded_settings() -> None:
    known, unknown = check_known({"task": "x", "trust": True, "env": "dev"}, Settings, "resume=DIR")
    assert (known, unknown) == ({"env": "dev"}, ())


def test_a_key_that_was_not_there_then_is_named_once() -> None:
    values, _ = recorded()
    remove(values, ("ttl", "base"))
    assert find_new(compose(), values, ()) == ("ttl.base",)
    assert find_new(compose(), values, ("ttl.base",)) == ()


def test_keys_of_another_kind_are_no_new_ones() -> None:
    values, _ = recorded("provider=simulated")
    assert find_new(compose(["provider=openai"]), values, ()) == ()


def test_a_name_may_hold_a_dot() -> None:
    assert list(leaves({"a": {"b.c": 1, "d": {}}})) == [(("a", "b.c"), 1), (("a", "d"), {})]
