"""Files of a stranger that would end, stop or fill a process: each is refused with a message, in bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LEVELS = 100_000
MOST_SECONDS = 100
RUN = ("task=x", "provider=simulated", "progress=none", "hydra.run.dir=out")
BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
TURNS = "{% for i in range(99999) %}"
DOUBLING = {
    "type": "object",
    "$defs": {
        f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}, {"$ref": f"#/$defs/n{n + 1}"}]}
        for n in range(40)
    }
    | {"n40": {"type": "string"}},
    "properties": {"x": {"$ref": "#/$defs/n0"}},
    "required": ["x"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Attack:
    """Files by name, what is typed, and what the refusal says."""

    files: dict[str, str]
    words: tuple[str, ...]
    message: str


def template(text: str, message: str) -> Attack:
    files = {"prompts/default/plan.user.j2": text}
    return Attack(files, (*RUN, "prompts.dir=prompts"), message)


ATTACKS = {
    "a project nested deeply": Attack(
        {"aeon.yaml": "overrides: " + "{a: " * LEVELS}, RUN, "levels deep"
    ),
    "a configuration nested deeply": Attack(
        {"conf/ttl/mine.yaml": "base: " + "[" * LEVELS},
        ("--config-dir", "conf", "ttl=mine", *RUN),
        "levels deep",
    ),
    "a configuration nested deeply, looked through for trust": Attack(
        {"aeon.yaml": "config_dir: conf", "conf/ttl/mine.yaml": "base: " + "[" * LEVELS},
        ("trust",),
        "levels deep",
    ),
    "aliases that multiply": Attack(
        {"conf/config.yaml": BOMB}, ("--config-dir", "conf", *RUN), "once aliases"
    ),
    "a cassette nested deeply": Attack(
        {"x.aeon": '{"format": "aeon.cassette/2", "note": ' + "[" * LEVELS},
        (*RUN, "store=replay", "store.path=x.aeon"),
        "levels deep",
    ),
    "a recorded run nested deeply": Attack(
        {"run/run.json": "[" * LEVELS}, ("resume=run", *RUN), "run.json"
    ),
    "a result nested deeply": Attack(
        {"run/run.json": "{}", "run/result.json": "[" * LEVELS}, ("inspect", "run"), "levels deep"
    ),
    "a plan of 100,000 steps": Attack(
        {"plan.yaml": "steps:\n" + "".join(f"- {{id: s{n}, do: x}}\n" for n in range(LEVELS))},
        (*RUN, "plan_file=plan.yaml"),
        "more than",
    ),
    "a schema that doubles its work": Attack(
        {"schema.json": json.dumps(DOUBLING)}, (*RUN, "answer.schema=schema.json"), "schema.json"
    ),
    "a template of loops": template(
        f"{TURNS}{TURNS}{{% endfor %}}{{% endfor %}}", "1,000,000 steps"
    ),
    "a template that doubles a text": template(
        "{% set n = namespace(x='ab') %}{% for i in range(64) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "20,000,000 characters",
    ),
    "a template that repeats a text": template("{{ 'a' * 5000000000 }}", "20,000,000 characters"),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_would_take_for_ever_is_refused_with_a_message(tmp_path: Path, attack: Attack) -> None:
    for name, text in attack.files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *attack.words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 2, ended.stderr[-2000:]
    assert ended.stderr.startswith("Error: ")
    assert attack.message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr) < 5_000
    assert not (tmp_path / "out").exists()
