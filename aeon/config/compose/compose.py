"""Composing the configuration with Hydra, without leaving a trace in Hydra's global state."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra._internal.callbacks import Callbacks
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.hydra import Hydra
from hydra._internal.sources_registry import SourcesRegistry
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import configure_log, run_job
from hydra.errors import HydraException
from hydra.initialize import get_gh_backup, restore_gh_from_backup
from hydra.plugins.config_source import ConfigResult
from hydra.types import HydraContext, RunMode, TaskFunction
from hydra.version import VersionBase, setbase
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.errors import OmegaConfBaseException

from aeon.config.compose import fallbacks as config_fallbacks
from aeon.config.compose import reference as config_reference
from aeon.config.compose.problems import NOT_A_KEY, composition_error, not_an_option
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root

CONFIG_NAME = "config"
HYDRA_VERSION_BASE = "1.3"
_FULL_ERROR = "HYDRA_FULL_ERROR"
_HYDRA_ERRORS = (HydraException, OmegaConfBaseException)


def packaged_config_dir() -> Path:
    """The folder of the packaged configuration."""
    return resource_root() / "conf"


def search_path(config_dir: str | Path | None) -> ConfigSearchPath:
    """Where configuration is looked for: a person's own folder, if there is one, then the packaged one.

    Raises ConfigError when there is no such folder.
    """
    packaged = packaged_config_dir()
    if config_dir is None:
        return create_config_search_path(str(packaged))
    folder = Path(config_dir).expanduser().resolve()
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: there is no such configuration folder",
            hint="`aeon init DIR` copies the packaged one to DIR/conf.",
        )
    path = create_config_search_path(str(folder))
    path.prepend("aeon", f"file://{packaged}", anchor=SearchPathQuery(provider="schema"))
    return path


def compose(
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
    *,
    config_name: str = CONFIG_NAME,
    with_hydra: bool = False,
) -> DictConfig:
    """Compose the configuration; files in `config_dir` come before the packaged ones of the same name.

    A key that does not exist is composed nevertheless, so that validation can report it together with every other
    problem. `with_hydra` keeps Hydra's own part. Raises ConfigError for everything Hydra refuses.
    """
    return compose_adding(overrides, config_dir, config_name=config_name, with_hydra=with_hydra)[0]


def compose_adding(
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
    *,
    config_name: str = CONFIG_NAME,
    with_hydra: bool = False,
) -> tuple[DictConfig, frozenset[str]]:
    """The same, with the keys that had to be added: Hydra itself wants these overrides from `adding`."""
    config_reference.check_config_dir(config_dir, config_name)
    given, added = list(overrides), set[str]()
    with _hydra_in(config_dir):
        for _ in range(len(given) + 1):
            try:
                made = hydra.compose(config_name, given, return_hydra_config=with_hydra)
                return config_fallbacks.expanded(made, _search(given)), frozenset(added)
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                raise composition_error(error) from None
            except ValueError as error:
                raise not_an_option(error, _parsed(given)) from None
            except _HYDRA_ERRORS as error:
                index = _position_of_unknown_key(str(error), given)
                if index is None:
                    raise composition_error(error) from None
                added.add(_key(given[index]))
                given[index] = f"++{given[index]}"
    raise ConfigError("the overrides cannot be composed")


def with_fallbacks(cfg: DictConfig, overrides: Sequence[str], config_dir: str | Path | None = None) -> DictConfig:
    """A configuration that Hydra itself has composed of `overrides`, its fallbacks filled in. Raises ConfigError."""
    with _hydra_in(config_dir):
        return config_fallbacks.expanded(cfg, _search(overrides))


def _search(overrides: Sequence[str]) -> list[str]:
    return [text for text in overrides if _key(text) == "hydra.searchpath"]


def adding(overrides: Sequence[str], keys: Collection[str]) -> list[str]:
    """The overrides, those of `keys` in the form (`++`) in which Hydra takes a key that it does not know."""
    return [f"++{text}" if _key(text) in keys else text for text in overrides]


def _key(override: str) -> str:
    return override.partition("=")[0]


def sweep_jobs(
    overrides: Sequence[str], params: dict[str, Any], config_dir: str | Path | None = None
) -> list[list[str]]:
    """The overrides of each job of a sweep, in the order Hydra's own sweeper runs them.

    `params` are those of `hydra.sweeper`, over which the overrides win. Raises ConfigError for what cannot be read, or
    for ranges that only another sweeper knows how to draw from.
    """
    with _hydra_in(config_dir):
        hydra_now = GlobalHydra.instance().hydra
        assert hydra_now is not None
        try:
            parser = OverridesParser.create(config_loader=hydra_now.config_loader)
            parsed = parser.parse_overrides([*(f"{key}={value}" for key, value in params.items()), *overrides])
            return BasicSweeper.split_arguments(parsed, None)[0]
        except _HYDRA_ERRORS as error:
            raise composition_error(error) from None


def without_sweeps(overrides: Sequence[str]) -> list[str]:
    """The overrides that give one value each. Raises ConfigError for one that cannot be read."""
    return [
        text for text, override in zip(overrides, _parsed(overrides), strict=True) if not override.is_sweep_override()
    ]


def is_sweep(override: str) -> bool:
    """Whether an override gives several values; False for one that cannot be read."""
    try:
        return bool(OverridesParser.create().parse_override(override).is_sweep_override())
    except _HYDRA_ERRORS:
        return False


def single_value(override: str, otherwise: str) -> str:
    """The text that an override gives as its value, unquoted; `otherwise` for one that cannot be read."""
    try:
        value = OverridesParser.create().parse_override(override).value()
    except _HYDRA_ERRORS:
        return otherwise
    return "" if value is None else str(value)


def _parsed(overrides: Sequence[str]) -> list[Override]:
    try:
        return OverridesParser.create().parse_overrides(list(overrides))
    except _HYDRA_ERRORS as error:
        raise composition_error(error) from None


def run_composed(cfg: DictConfig, config_name: str, directory: Path, task: TaskFunction) -> Any:
    """Run a configuration that is composed already as Hydra's job in `directory`, and return what `task` returns.

    `cfg` holds Hydra's own part. What Hydra would compose once more for a job of its own is not: it takes longer than
    all else before the first call.
    """
    cfg.hydra.mode = RunMode.RUN
    cfg.hydra.run.dir = re.sub(r"(\\*)\$\{", r"\1\1\\${", str(directory))
    with _hydra_in(None):
        hydra_now = GlobalHydra.instance().hydra
        assert hydra_now is not None
        callbacks = Callbacks(cfg)
        callbacks.on_run_start(config=cfg, config_name=config_name)
        context = HydraContext(config_loader=hydra_now.config_loader, callbacks=callbacks)
        configure_log(cfg.hydra.hydra_logging, cfg.hydra.verbose)
        ended = run_job(task, cfg, job_dir_key="hydra.run.dir", job_subdir_key=None, hydra_context=context)
        callbacks.on_run_end(config=cfg, config_name=config_name, job_return=ended)
        return ended.return_value


def start_multirun(
    overrides: Sequence[str], config_dir: str | Path | None, config_name: str, task: TaskFunction
) -> None:
    """Hand a multirun over to Hydra, which composes the jobs and launches them."""
    setbase(HYDRA_VERSION_BASE)
    try:
        Hydra.create_main_hydra2("aeon", search_path(config_dir)).multirun(config_name, task, list(overrides))
    finally:
        GlobalHydra.instance().clear()


def _position_of_unknown_key(message: str, overrides: Sequence[str]) -> int | None:
    match = NOT_A_KEY.match(message)
    if match is None or match[1].startswith("hydra."):
        return None
    return next((i for i, text in enumerate(overrides) if text.startswith(f"{match[1]}=")), None)


@contextmanager
def full_errors() -> Iterator[None]:
    """Hydra raises its errors, where it would otherwise print them and leave with status 1."""
    before = os.environ.get(_FULL_ERROR)
    os.environ[_FULL_ERROR] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FULL_ERROR]
        else:
            os.environ[_FULL_ERROR] = before


@contextmanager
def _hydra_in(config_dir: str | Path | None) -> Iterator[None]:
    """Hydra initialised in a folder; afterwards its global state is as it was before."""
    version, backup = VersionBase.instance(), get_gh_backup()
    Plugins.instance()  # which fills the registry of sources
    sources = SourcesRegistry.instance().types
    file_source = sources["file"]
    before = version.getbase()
    setbase(HYDRA_VERSION_BASE)
    try:
        GlobalHydra.instance().clear()
        sources["file"] = _KeptFiles
        Hydra.create_main_hydra2("aeon", search_path(config_dir))
        yield
    finally:
        sources["file"] = file_source
        restore_gh_from_backup(backup)
        version.version_base = before


class _KeptFiles(FileConfigSource):
    """Hydra's own source of files, which reads them each time and parses only a text that is new to the process."""

    def load_config(self, config_path: str) -> ConfigResult:
        """The file's configuration; where it cannot be read or parsed, Hydra's own way says so."""
        path = Path(self.path, self._normalize_file_name(config_path))
        try:
            text = path.read_text(encoding="utf-8")
            value = _parsed_yaml(text)
        except (OSError, ValueError, yaml.YAMLError):
            return super().load_config(config_path)
        config = OmegaConf.create({} if value is None else value)
        place, header = f"{self.scheme()}://{self.path}", self._get_header_dict(text[:512])
        return ConfigResult(config=config, path=place, provider=self.provider, header=header)


@lru_cache(maxsize=512)
def _parsed_yaml(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())
