"""Where the local model comes from: a GGUF file, or a file of a hub repository. Nothing is loaded here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from aeon.domain.errors import ConfigError, ProviderError
from aeon.llm.settings import LocalProvider

MAGIC = b"GGUF"


def check(settings: LocalProvider) -> None:
    """Everything that can be known without loading a model. Raises ConfigError when the extra is not installed, no
    model is named, or there is no GGUF file at `model_path`."""
    path, hub = settings.model_path, (settings.repo_id, settings.filename, settings.revision)
    if any(hub) if path is not None else None in hub[:2]:
        raise ConfigError(
            "provider=local: " + ("no model is named" if path is None else "a file and a repository are both named"),
            hint="Set provider.model_path=model.gguf, or provider.repo_id=owner/name and provider.filename=model.gguf.",
        )
    modules = ("llama_cpp",) if path is not None else ("llama_cpp", "huggingface_hub")
    if missing := [name for name in modules if find_spec(name) is None]:
        raise ConfigError(
            f"provider=local needs the extra `local`: {' and '.join(missing)} cannot be imported",
            hint="Install it: pip install 'aeon-engine[local]' (it takes minutes and needs a C++ compiler).",
        )
    if path is None:
        return
    try:
        with path.expanduser().open("rb") as file:
            is_gguf = file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise ConfigError(f"provider.model_path={path}: cannot be read: {error.strerror}") from error
    if not is_gguf:
        raise ConfigError(
            f"provider.model_path={path}: not a GGUF file (it does not begin with {MAGIC.decode()})",
            hint="Models in other formats (safetensors, ggml) have to be converted to GGUF first.",
        )


def located(settings: LocalProvider) -> Path:
    """The model's file; one of a hub is downloaded once. Raises ProviderError when the hub does not give it."""
    if settings.model_path is not None:
        return settings.model_path.expanduser()
    from huggingface_hub import hf_hub_download

    repo_id, filename = settings.repo_id or "", settings.filename or ""
    try:
        return Path(hf_hub_download(repo_id, filename, revision=settings.revision))
    except (OSError, ValueError) as error:  # what the hub's library raises is one of them
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ProviderError(
            f"{filename} of {repo_id} could not be downloaded: {reason}",
            hint="Check provider.repo_id, provider.filename and the network; a repository that is not public needs "
            "HF_TOKEN in the environment. A file downloaded otherwise: provider.model_path.",
        ) from error
