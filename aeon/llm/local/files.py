"""Where the local model comes from: a GGUF file, or a file of a hub repository. Nothing is loaded here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from aeon.domain.errors import ConfigError, ProviderError
from aeon.llm.settings import LocalProvider

MAGIC = b"GGUF"
INSTALL = "pip install 'aeon-engine[local]'"


def check(settings: LocalProvider) -> None:
    """Everything that can be known without loading a model.

    Raises ConfigError when the extra is not installed, when no model is named, or when there is no GGUF file
    at `model_path`.
    """
    _check_choice(settings)
    modules = ("llama_cpp",) if settings.repo_id is None else ("llama_cpp", "huggingface_hub")
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"provider=local needs the extra `local`: {' and '.join(missing)} cannot be imported",
            hint=f"Install it: {INSTALL} (it is compiled, which takes minutes and needs a C++ compiler).",
        )
    if settings.model_path is not None:
        _check_file(settings.model_path.expanduser())


def located(settings: LocalProvider) -> Path:
    """The model's file; one of a hub is downloaded, unless it is in the hub's cache already.

    Raises ProviderError when the hub does not give it.
    """
    if settings.model_path is not None:
        return settings.model_path.expanduser()
    return _downloaded(settings.repo_id or "", settings.filename or "", settings.revision)


def _check_choice(settings: LocalProvider) -> None:
    of_hub = [name for name in ("repo_id", "filename", "revision") if getattr(settings, name) is not None]
    if settings.model_path is not None and of_hub:
        raise ConfigError(
            f"provider=local: provider.model_path and provider.{of_hub[0]} are both set",
            hint="Give the file, or the hub's repository and the file's name in it.",
        )
    if settings.model_path is None and (settings.repo_id is None or settings.filename is None):
        raise ConfigError(
            "provider=local: no model is named",
            hint="Set provider.model_path=model.gguf, or provider.repo_id=owner/name and provider.filename=model.gguf.",
        )


def _check_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise ConfigError(f"provider.model_path={path}: {what}", hint="Name a model's GGUF file.")
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(f"provider.model_path={path}: cannot be read: {error.strerror}") from error
    if start != MAGIC:
        raise ConfigError(
            f"provider.model_path={path}: not a GGUF file (it does not begin with {MAGIC.decode()})",
            hint="Models in other formats (safetensors, ggml) have to be converted to GGUF first.",
        )


def _downloaded(repo_id: str, filename: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repo_id, filename, revision=revision))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ProviderError(
            f"{filename} of {repo_id} could not be downloaded: {reason}",
            hint="Check provider.repo_id, provider.filename and the network; a repository that is not public needs "
            "HF_TOKEN in the environment. A file downloaded otherwise: provider.model_path.",
        ) from error
