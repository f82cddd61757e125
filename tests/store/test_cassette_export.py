from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from aeon.domain.errors import StoreFailed
from aeon.llm.prompts import fence
from aeon.store.cassette import Cassette, encode
from aeon.store.cassette_export import (
    Scrubber,
    find_provenance,
    make_cassette,
    remove_places,
    secret_names,
)
from aeon.store.models import Entry
from tests.store.cassettes import entry

KEY = 'sk-live-"1234"/é+x'
CONFIGURATION = {
    "provider": {"api_key_env": "MY_ENDPOINT", "extra_headers_env": {"X-Team": "TEAM"}},
    "tools": {
        "mcp": {
            "servers": {
                "a": {"env": ["PLAIN_NAME"]},
                "b": {"bearer_env": "BEARER", "headers_env": {}},
            }
        }
    },
}


def exported(*entries: Entry, environ: dict[str, str] | None = None, **more: Any) -> Cassette:
    environ = environ or {}
    scrubber = Scrubber(secret_names(CONFIGURATION, environ), environ)
    return make_cassette(
        entries, more.pop("origin", {}), scrubber=scrubber, home=Path("/srv/ann"), **more
    )


@pytest.mark.parametrize(
    "variable", ["MY_ENDPOINT", "TEAM", "PLAIN_NAME", "BEARER", "SHOP_API_KEY", "GIT_TOKEN"]
)
@pytest.mark.parametrize(
    "form", [KEY, json.dumps({"k": KEY}), json.dumps({"k": KEY}, ensure_ascii=False)]
)
def test_a_key_in_a_result_a_prompt_or_an_origin_is_replaced_and_said(
    variable: str, form: str
) -> None:
    made = exported(
        entry(
            f"the key is {form}",
            kind="tool",
            call="env",
            request={"arguments": {KEY: [form]}},
            step=KEY,
        ),
        entry(form, number=2, user=f"a tool said: {form}"),
        environ={variable: f" {KEY}\n", "HOME": "/srv/ann"},
        origin={"task": f"use {KEY}", "inputs": {"a": KEY}},
    )
    text = encode(made).decode()
    assert "sk-live" not in text
    assert f"[value of {variable}]" in text
    assert made.provenance.secrets_replaced == {variable: 8}


@pytest.mark.parametrize(
    "form",
    [
        quote(KEY, safe="/"),
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        json.dumps(json.dumps({"k": KEY})),
        json.dumps({"text": json.dumps({"k": KEY}, ensure_ascii=False)}),
    ],
)
def test_a_key_in_a_url_or_in_json_inside_json_is_replaced(form: str) -> None:
    text = encode(exported(entry(f"see {form}"), environ={"SHOP_TOKEN": KEY})).decode()
    assert "sk-live" not in text
    assert "1234" not in text.partition("\n")[2]


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "!", "\n", "xyz"])
@pytest.mark.parametrize("encode_bytes", [b64encode, urlsafe_b64encode])
def test_a_key_in_base64_is_replaced_wherever_it_begins(
    before: str, after: str, encode_bytes: Callable[[bytes], bytes]
) -> None:
    scrubber = Scrubber(frozenset({"A_KEY"}), {"A_KEY": KEY})
    text = scrubber.text(f"Basic {encode_bytes(f'{before}{KEY}{after}'.encode()).decode()}.")
    assert "[value of A_KEY]" in text
    rest = text.replace("[value of A_KEY]", "")
    assert len(rest) <= len("Basic .") + 4 + 2 * len(before + after)


def test_a_fence_with_a_secret_is_named_after_what_replaces_it() -> None:
    scrubber = Scrubber(frozenset({"A_KEY"}), {"A_KEY": KEY})
    parts = [
        fence(f"it is {KEY}", "output", step="a"),
        fence("tea", "task"),
        "<task-abcdefgh2345>\nx",
    ]
    cleaned = [fence("it is [value of A_KEY]", "output", step="a"), *parts[1:]]
    assert scrubber.prompt("\n".join(parts)) == "\n".join(cleaned)


def test_a_key_of_several_lines_is_replaced_in_json_inside_json() -> None:
    pem = "-----BEGIN KEY-----\nabcdef\nghijkl\n-----END KEY-----"
    made = exported(entry(json.dumps({"a": json.dumps({"b": pem})})), environ={"TLS_KEY": pem})
    text = encode(made).decode()
    assert "abcdef" not in text


@pytest.mark.parametrize(
    "name",
    [
        "PASSWORD",
        "TOKEN",
        "SECRET",
        "PGPASSWORD",
        "MYSQL_PASSWD",
        "CREDENTIALS",
        "AWSCREDENTIALS",
        "DB_PWD",
        "apikey",
    ],
)
def test_a_variable_whose_name_says_that_it_is_secret_is_looked_for(name: str) -> None:
    assert secret_names(
        {}, {name: "x", "PATH": "/bin", "PWD": "/home", "OLDPWD": "/", "KEYBOARD": "de"}
    ) == {name}


def test_what_is_not_secret_stays_as_it_was() -> None:
    given = entry("the path is /usr/bin:/bin")
    made = exported(given, environ={"PATH": "/usr/bin:/bin", "SHOP_API_KEY": ""})
    assert made.answers == (given,)
    assert made.provenance.secrets_replaced == {}


def test_a_value_too_short_to_be_looked_for_is_named() -> None:
    scrubber = Scrubber(frozenset({"PIN_KEY", "UNSET_KEY"}), {"PIN_KEY": "1234"})
    assert scrubber.too_short == ("PIN_KEY",)
    assert scrubber.text("1234") == "1234"


def test_the_longer_of_two_values_goes_first() -> None:
    scrubber = Scrubber(
        frozenset({"A_KEY", "B_KEY"}), {"A_KEY": "secret", "B_KEY": "secret-and-more"}
    )
    assert scrubber.text("secret-and-more, secret") == "[value of B_KEY], [value of A_KEY]"


def test_provenance_tells_who_answered_and_when() -> None:
    told = find_provenance([entry(number=5), entry(number=2, model="m-2")], provider="openai")
    assert told.answered_by == "m-1, m-2 (provider openai)"
    assert (told.models, told.usage, told.synthetic) == (("m-1", "m-2"), "reported", False)
    assert (told.first, told.last) == (
        "2026-11-21T10:00:02.000+00:00",
        "2026-11-21T10:00:05.000+00:00",
    )
    assert find_provenance([entry()], "by hand").answered_by == "by hand"


@pytest.mark.parametrize(
    ("reported", "said"),
    [([True, True], "reported"), ([False, False], "estimated"), ([True, False], "mixed")],
)
def test_provenance_tells_whether_usage_was_reported(reported: list[bool], said: str) -> None:
    assert (
        find_provenance(
            [entry(number=n, usage_reported=value) for n, value in enumerate(reported)]
        ).usage
        == said
    )


def test_a_simulated_run_is_not_passed_off_as_a_models() -> None:
    told = find_provenance([entry(synthetic=True, model="simulated")], provider="simulated")
    assert told.synthetic
    assert "no model" in told.answered_by


def test_a_run_that_asked_only_tools_has_a_provenance() -> None:
    told = find_provenance([entry(kind="tool")])
    assert (told.usage, told.models) == ("none", ())


def test_calls_that_failed_are_nobodys_answers() -> None:
    failed = entry().model_copy(
        update={"answer": {"error": "AuthenticationFailed", "message": "wrong key"}}
    )
    told = find_provenance([failed], provider="openai")
    assert (told.answered_by, told.usage, told.models) == ("nobody (every call failed)", "none", ())
    assert find_provenance([failed, entry()]).answered_by == "m-1"


def test_a_store_without_answers_is_refused() -> None:
    with pytest.raises(StoreFailed, match="there is no answer in it"):
        exported()


def test_places_of_one_machine_do_not_travel() -> None:
    origin = {
        "working_directory": "/srv/ann/project",
        "config_dir": "/srv/ann/project/mine/conf",
        "files": {"plan_file": {"path": "/srv/ann/project/plan.yaml", "sha256": "0"}},
        "components": {"x": ["/srv/anna", "/srv/ann/project", "/srv/ann/data"]},
        "provider": {"kind": "openai", "model": "m", "base_url": "http://10.0.0.7/v1"},
        "parent": {"path": "/srv/ann/project/outputs/1", "run_id": "a"},
    }
    assert remove_places(origin, Path("/srv/ann")) == {
        "working_directory": ".",
        "config_dir": "./mine/conf",
        "files": {"plan_file": {"path": "./plan.yaml", "sha256": "0"}},
        "components": {"x": ["/srv/anna", ".", "~/data"]},
        "provider": {"kind": "openai", "model": "m"},
    }


def test_places_in_what_requests_are_made_of_stay() -> None:
    origin = {
        "working_directory": "/srv/ann/project",
        "task": "read /srv/ann/project/notes.txt",
        "inputs": {"a": "/srv/ann/"},
        "settings": {"convergence": {"criteria": {"notes": "as /srv/ann/notes.txt says"}}},
        "choices": ["convergence.criteria.notes='as /srv/ann/notes.txt says'"],
        "checks": {"notes": {"type": "contains", "value": "/srv/ann/notes.txt"}},
        "answer": "It is in /srv/ann/notes.txt.",
        "provider": {"kind": "openai", "model": "/srv/ann/models/mine"},
    }
    assert remove_places(origin, Path("/srv/ann")) == {**origin, "working_directory": "."}


def test_what_was_found_out_about_a_server_stays_behind() -> None:
    kept = entry()
    kept = kept.model_copy(
        update={"answer": {**kept.answer, "found_out": {"0123456789abcdef": {"form": "prompt"}}}}
    )
    (answer,) = exported(kept).answers
    assert answer.answer == entry().answer
