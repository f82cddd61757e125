"""One loader for every object of a person's own: by module, or by the name under which a package registers it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.domain.errors import ConfigError, StoreFailed
from aeon.domain.values import OwnObject
from aeon.files.reference import call_factory, find_registered, load_object

KEY = "components.convergence"


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working directory with modules of a person's own, and nothing of it left behind."""
    (tmp_path / "own_parts.py").write_text("class Judge:\n    class Strict: ...\nNUMBER = 3\n")
    (tmp_path / "own_broken.py").write_text("import own_missing_library\n")
    (tmp_path / "own_leaving.py").write_text("raise SystemExit(4)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    find_registered.cache_clear()
    yield
    find_registered.cache_clear()
    for name in ("own_parts", "own_broken", "own_leaving", "registered_parts"):
        sys.modules.pop(name, None)


def register(folder: Path, package: str, *entries: str, group: str = "aeon.components") -> None:
    """Install a package, by its metadata, that registers entries."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join((f"[{group}]", *entries, "")))
    (folder / "registered_parts.py").write_text("class Vote: ...\n")
    sys.path.insert(0, str(folder))


def test_what_a_module_in_the_working_directory_has_is_loaded():
    assert load_object(KEY, "own_parts:Judge", "Factory").__name__ == "Judge"
    assert load_object(KEY, "own_parts:Judge.Strict", "Factory").__name__ == "Strict"


@pytest.mark.parametrize(
    ("reference", "problem", "hint"),
    [
        ("own_parts", "write package.module:Factory", ""),
        (":Judge", "write package.module:Factory", ""),
        ("own_parts:", "write package.module:Factory", ""),
        ("own_part:Judge", "ModuleNotFoundError: No module named 'own_part'", "It is looked for"),
        ("own_parts:Juge", "AttributeError: module 'own_parts' has no", "Did you mean own_parts:J"),
        ("own_broken:Judge", "ModuleNotFoundError: No module named 'own_missing_library'", ""),
        ("own_leaving:Judge", "cannot be imported: SystemExit: 4", ""),
    ],
)
def test_what_cannot_be_loaded_is_named(reference: str, problem: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        load_object(KEY, reference, "Factory")
    assert caught.value.message.startswith(f"{KEY}={reference}: ")
    assert problem in caught.value.message
    assert (caught.value.hint or "").startswith(hint)
    assert bool(caught.value.hint) == bool(hint)


def test_what_a_package_registers_is_loaded_by_its_name(tmp_path: Path):
    register(tmp_path / "site", "voting", "vote = registered_parts:Vote")
    assert load_object(KEY, "vote", "Factory", "aeon.components").__name__ == "Vote"


def test_a_name_that_no_package_registers_is_refused_with_those_that_are(tmp_path: Path):
    register(tmp_path / "site", "voting", "vote = registered_parts:Vote")
    with pytest.raises(
        ConfigError, match=r"a name that a package registers under aeon\.comp"
    ) as no:
        load_object(KEY, "votes", "Factory", "aeon.components")
    assert no.value.hint == "There is vote."


def test_a_registration_whose_module_is_broken_names_its_package(tmp_path: Path):
    register(tmp_path / "site", "voting", "vote = registered_parts:Missing")
    with pytest.raises(ConfigError, match=rf"^{KEY}=vote, of voting: cannot be imported"):
        load_object(KEY, "vote", "Factory", "aeon.components")


def test_two_packages_under_one_name_are_refused_with_both(tmp_path: Path):
    register(tmp_path / "one", "voting", "vote = registered_parts:Vote")
    register(tmp_path / "two", "polling", "vote = registered_parts:Other")
    with pytest.raises(ConfigError, match=r"several packages register this name: .*voting") as both:
        load_object(KEY, "vote", "Factory", "aeon.components")
    assert "polling" in both.value.message


def test_the_working_directory_registers_nothing(tmp_path: Path):
    """A cloned folder may be a stranger's, and a name is no consent to what it holds."""
    register(tmp_path, "stranger", "vote = registered_parts:Vote")
    assert find_registered("aeon.components") == {}


def refuse() -> None:
    raise StoreFailed("no store")


def leave() -> None:
    raise SystemExit(4)


@pytest.mark.parametrize(
    ("factory", "problem"),
    [
        (3, "it is of type int, which cannot be called"),
        (leave, "SystemExit: 4"),
        (refuse, "StoreFailed: no store"),
    ],
)
def test_what_cannot_be_made_is_named(factory: object, problem: str):
    with pytest.raises(ConfigError, match=rf"^{KEY}=own:thing: .*{problem}"):
        call_factory(f"{KEY}=own:thing", factory)


def test_errors_that_are_to_pass_are_passed_on():
    with pytest.raises(StoreFailed):
        call_factory("store.backend=own:thing", refuse, passes=(StoreFailed,))


def test_options_are_given_by_name():
    assert call_factory("key", dict, options={"threshold": 0.5}) == {"threshold": 0.5}


def test_an_editor_takes_both_forms():
    schema = OwnObject.model_json_schema(mode="validation")
    assert [each["type"] for each in schema["anyOf"]] == ["string", "object"]


def test_an_object_without_options_is_written_as_its_factory():
    assert OwnObject.model_validate("own:thing").model_dump() == "own:thing"
    with_options = {"factory": "own:thing", "options": {"url": "x"}}
    assert OwnObject.model_validate(with_options).model_dump() == with_options
