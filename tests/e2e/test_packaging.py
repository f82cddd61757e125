"""The wheel, built and installed as a stranger would, run from an empty directory outside the checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from aeon.cli.commands.files import PARTS, list_packaged_files

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(command: list[str | Path], directory: Path) -> subprocess.CompletedProcess[str]:
    hidden = ("PYTHONPATH", "OPENAI_API_KEY", "OPENAI_BASE_URL", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    built = run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", out, ROOT], out)
    assert built.returncode == 0, built.stderr
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that has the wheel, and the dependencies of this one but not its checkout."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    # A path in a .pth file is added as it stands: the editable checkout behind this environment stays out of sight.
    site = run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], home
    ).stdout.strip()
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    done = run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--no-deps",
            "--no-index",
            wheel,
        ],
        home,
    )
    assert done.returncode == 0, done.stderr
    return home / "bin"


def test_the_wheel_carries_every_configuration_prompt_and_schema_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    resources = {f"aeon/_resources/{relative.as_posix()}" for _, relative in list_packaged_files()}
    assert resources <= names
    in_resources = {name.split("/")[2] for name in names if name.startswith("aeon/_resources/")}
    assert in_resources == {*PARTS, "docs", "README.md"}
    pages = {
        f"aeon/_resources/{page.relative_to(ROOT).as_posix()}"
        for page in (ROOT / "docs").rglob("*.md")
    }
    assert pages <= names
    assert "aeon/py.typed" in names
    assert not [
        name for name in names if name.startswith(("tests/", "conf/", "prompts/", "schemas/"))
    ]


def test_the_wheel_runs_from_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    where = run([installed / "python", "-c", "import aeon; print(aeon.__file__)"], tmp_path)
    assert str(installed.parent) in where.stdout
    ended = run(
        [installed / "aeon", "task=say hello, please", "provider=simulated", "output=json"],
        tmp_path,
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["task"] == "say hello, please"
    assert (tmp_path / "outputs").is_dir()


def test_the_documentation_comes_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    page = run([installed / "aeon", "docs", "errors"], tmp_path)
    assert page.stdout == (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    readme = run([installed / "aeon", "docs", "readme"], tmp_path)
    assert readme.stdout == (ROOT / "README.md").read_text(encoding="utf-8")
    assert "default: 10" in run([installed / "aeon", "docs", "ttl.base"], tmp_path).stdout


def test_the_console_script_and_the_module_are_the_same_program(
    installed: Path, tmp_path: Path
) -> None:
    script = run([installed / "aeon", "--help"], tmp_path)
    module = run([installed / "python", "-m", "aeon", "--help"], tmp_path)
    assert script.returncode == module.returncode == 0
    assert script.stdout == module.stdout


def test_what_init_copies_from_the_wheel_is_used(installed: Path, tmp_path: Path) -> None:
    assert run([installed / "aeon", "init", "mine"], tmp_path).returncode == 0
    (tmp_path / "mine" / "conf" / "limits" / "default.yaml").write_text(
        "max_passes: 1\n", encoding="utf-8"
    )
    own = ["--config-dir", "mine/conf", "prompts.dir=mine/prompts", "schemas.dir=mine/schemas"]
    ended = run(
        [installed / "python", "-m", "aeon", *own, "task=design a web application"], tmp_path
    )
    assert ended.returncode == 3
    assert "max_passes" in ended.stderr
