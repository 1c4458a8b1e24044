"""What a span says, in the words of the GenAI conventions: `chat`, `agent`, `plan`, `retrieval`, `tool`, `workflow`.

Texts of prompts and answers only where `captured`; what an endpoint said of an error never, since it may repeat either of them.
`taskweave.*` is what the conventions have no word for.  Knows requests and completions, and nothing of spans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from taskweave.errors import TaskWeaveError
from taskweave.records import Completion, Request

Attributes = dict[str, Any]

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
ERROR = "error.type"
CANCELLED = "cancelled"
OVERFLOW = "context_length_exceeded"
POOL = "pool"


def workflow(organization: str) -> Attributes:
    """Of a whole session.  The workflow's own name attribute was given up for the agent's; readers of 1.41 look for the former."""
    return {OPERATION: "invoke_workflow", AGENT: organization, "gen_ai.workflow.name": organization}


def agent(role: str, identity: str, site: str) -> Attributes:
    """Of one work.  `identity` is the same in every run of the organization; both are "" where nobody has asked yet."""
    said: Attributes = {OPERATION: "invoke_agent", "taskweave.site": site}
    if role:
        said |= {AGENT: role, "gen_ai.agent.id": identity}
    return said


def plan(role: str, site: str) -> Attributes:
    """Of the part of a work in which a plan is made."""
    return {OPERATION: "plan", "taskweave.site": site} | ({AGENT: role} if role else {})


def chat(request: Request, completion: Completion | None, called: str, server: tuple[str, int] | None, *, captured: bool) -> Attributes:
    """Of one request and what it was answered, None where it was not; `called` is its backbone's kind and model."""
    provider, _, model = called.partition(":")
    omitted = completion.omitted if completion is not None else ()
    sent = {"temperature": request.sampling.temperature, "max_tokens": request.sampling.max_tokens, "seed": request.seed}
    said: Attributes = {
        OPERATION: "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "gen_ai.output.type": "text" if request.schema is None else "json",
        "gen_ai.prompt.name": request.prompt,
        "gen_ai.prompt.version": str(request.version),
    }
    said |= {f"gen_ai.request.{name}": value for name, value in sent.items() if name not in omitted}
    if server is not None:
        said["server.address"], said["server.port"] = server
    if captured:
        said["gen_ai.input.messages"] = structured([message(role, text) for role, text in request.messages])
    return said if completion is None else said | answered(request, completion, provider, captured=captured)


def answered(request: Request, completion: Completion, provider: str, *, captured: bool) -> Attributes:
    """What an answer adds: its tokens are those that are journaled, and budgets count."""
    prompt, answer = completion.tokens(request)
    said: Attributes = {
        "gen_ai.response.finish_reasons": (writable(completion.finish),),
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": answer,
    }
    if completion.prompt_tokens is None or completion.completion_tokens is None:
        said["taskweave.usage.estimated"] = True
    if completion.cached_tokens is not None:
        said["gen_ai.usage.cache_read.input_tokens"] = completion.cached_tokens
    if completion.model is not None:
        said["gen_ai.response.model"] = writable(completion.model)
    if completion.fingerprint is not None and provider == "openai":
        said["openai.response.system_fingerprint"] = writable(completion.fingerprint)
    if completion.rung is not None:
        said["taskweave.rung"] = completion.rung
    if completion.finish == "overflow":
        said[ERROR] = OVERFLOW
    if captured:
        told = message("assistant", completion.text or completion.refusal or "") | {"finish_reason": completion.finish}
        said["gen_ai.output.messages"] = structured([told])
    return said


def retrieval(question: Mapping[str, Any], found: Any, *, captured: bool) -> Attributes:
    """Of a search in the pool."""
    said: Attributes = {OPERATION: "retrieval", "gen_ai.data_source.id": POOL}
    if isinstance(most := question.get("k"), int):
        said["gen_ai.retrieval.top_k"] = most
    if isinstance(found, Sequence):
        said["taskweave.retrieval.found"] = len(found)
    if captured and isinstance(text := question.get("text"), str):
        said["gen_ai.retrieval.query.text"] = writable(text)
    return said


def tool(name: str, question: str, found: Any, role: str, *, captured: bool) -> Attributes:
    """Of a tool's call; `question` is its arguments as JSON."""
    said: Attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
    if role:
        said[AGENT] = role
    if captured:
        said |= {"gen_ai.tool.call.arguments": writable(question), "gen_ai.tool.call.result": structured(found)}
    return said


def trouble_kind(trouble: BaseException) -> str:
    """An error's kind, of which there are few: the HTTP status, "timeout", else the name of the exception that a backbone met."""
    chain = [trouble]
    while (before := chain[-1].__cause__ or chain[-1].__context__) is not None and before not in chain:
        chain.append(before)
    for one in chain:
        if isinstance(status := getattr(one, "status_code", None), int):
            return str(status)
    if any("timeout" in type(one).__name__.lower() for one in chain):
        return "timeout"
    # Ours says what to do about it; the client's own, from which it was made, says what it was.
    return type(chain[1] if isinstance(trouble, TaskWeaveError) and len(chain) > 1 else trouble).__name__


def server_of(base_url: str | None) -> tuple[str, int] | None:
    """Host and port of an endpoint, without user, path or key; None where there is none."""
    parts = urlsplit(base_url or "")
    if not parts.hostname:
        return None
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def step_of(site: str) -> str:
    """ "Y1@head:formulate.2" -> "formulate"."""
    return site.rpartition(":")[2].partition(".")[0]


def message(role: str, text: str) -> Attributes:
    """One message in the conventions' form."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def structured(value: Any) -> str:
    """A value as JSON in ASCII, which any exporter can encode."""
    return json.dumps(value, ensure_ascii=True)


def writable(text: str) -> str:
    """A text without half characters, which no exporter can encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
