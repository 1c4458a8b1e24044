"""What answers a request: a scripted stand-in, a model in this process, or one behind an API.

`backbone(spec)` makes the one that a person named.  Each has one method, `async complete(request)`; what they need is loaded here.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from taskweave.errors import BadInput
from taskweave.records import Backbone

_POSSIBLE = (
    "'scripted' (no network, no key), 'local:FILE.gguf' (a model in this process; 'local' alone is a small one from a package), "
    "'openai:MODEL' (an OpenAI-compatible endpoint; the key is read from OPENAI_API_KEY) "
    "or 'replay:RUN' (the answers of another run)"
)


def backbone(spec: str, *, base_url: str | None = None) -> Backbone:
    """The backbone called `spec`: "scripted", "local", "local:FILE.gguf", or "openai:MODEL".

    Raises BadInput naming what is possible.
    """
    kind, _, model = spec.partition(":")
    if spec == "scripted":
        _no_url(spec, base_url)
        from taskweave.backbones.scripted import Scripted

        return Scripted()
    if kind == "local":
        _no_url(spec, base_url)
        from taskweave.backbones.local import Local, model_file

        return Local(model_file(spec), style=None if model else "compact")  # the packaged one is small
    if kind == "openai":
        if not model.strip():
            raise BadInput(f"backbone {spec!r} names no model; write for example 'openai:gpt-4o-mini'")
        if base_url is not None and not _is_url(base_url):
            raise BadInput(f"base URL {base_url!r} is not one; write for example 'http://127.0.0.1:8000/v1'")
        if base_url is not None and "@" in urlsplit(base_url).netloc:
            place = base_url.rpartition("@")[2]
            raise BadInput(f"the base URL of {place!r} holds a user or a password, and a run keeps its URL: give the key as OPENAI_API_KEY")
        from taskweave.backbones.openai import OpenAI

        return OpenAI(model.strip(), base_url)
    if kind == "replay":
        raise BadInput(f"the backbone {spec!r} answers a whole run, and nothing else beside it: name it with --backbone alone")
    raise BadInput(f"unknown backbone {spec!r}; possible are {_POSSIBLE}")


def lasting(spec: str) -> str:
    """The same backbone as a later process, in another folder, has to name it: a model file by its whole path."""
    kind, _, file = spec.partition(":")
    return f"local:{Path(file).expanduser().absolute()}" if kind == "local" and file else spec


def _no_url(spec: str, base_url: str | None) -> None:
    if base_url is not None:
        raise BadInput(f"the base URL {base_url!r} has no meaning for the backbone {spec!r}; leave it out, or use 'openai:MODEL'")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.netloc.endswith(":") and parts.port != 0
    except ValueError:  # a port that is none
        return False
