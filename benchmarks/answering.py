"""A chat server on 127.0.0.1 whose answers are as long as the prompts ask for: `with Answering() as server: ... server.url`.

An answer is an instance of the request's JSON schema, drawn from a hash of its messages, of words that the prompt holds.  The longest
text of a step has the length that its prompt names ("80 to 150 words"), the others those of WORDS.  Tokens are bytes / 4, the schema's
too; `max_tokens` is honoured; cached are prefixes that were sent before, 1,024 tokens or more in steps of 128, the schema first.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from taskweave.report.economy import Prefixes

ASKED = re.compile(r"(\d+) to (\d+) words")
NAMED = re.compile(r"[Oo]ne of (?:these kinds: )?([^\n.;]+)")  # where a prompt names what may be chosen
LONGEST = frozenset({"plan", "content", "summary"})
WORDS = {
    "title": (4, 10),
    "goal": (10, 30),
    "need": (5, 15),
    "background": (18, 36),
    "description": (30, 55),
    "constraints": (10, 20),
    "text": (16, 36),
    "measure": (8, 16),
    "focus": (3, 6),
    "risks": (8, 16),
    "changes": (14, 26),
    "deviations": (12, 24),
    "blockers": (10, 20),
}
OTHERWISE = (6, 12)
SPARE = 3  # items of a list beyond those that it must have
_SENTENCE = 14  # words


def instance(schema: Mapping[str, Any], draw: random.Random, words: list[str], asked: tuple[int, int], said: str, name: str = "") -> Any:
    """A value that the schema allows, and the prompt's end `said`; `asked` are the least and the most words of the longest text."""
    if "enum" in schema:
        named = {name for found in NAMED.findall(said) for name in found.split(", ")}
        return draw.choice([legal for legal in schema["enum"] if legal in named] or schema["enum"])
    if "anyOf" in schema:
        return instance(draw.choice(list(schema["anyOf"])), draw, words, asked, said, name)
    match schema["type"]:
        case "object":
            return {key: instance(part, draw, words, asked, said, key) for key, part in schema["properties"].items()}
        case "array":
            least, choices = schema.get("minItems", 0), schema["items"].get("enum")
            most = min(schema.get("maxItems", least + SPARE), least + (1 if choices else SPARE))
            items = [instance(schema["items"], draw, words, asked, said, name) for _ in range(draw.randint(least, most))]
            return list(dict.fromkeys(items)) if choices else items
        case "number" | "integer":
            low = schema.get("minimum", 1)
            return round(draw.uniform(low, schema.get("maximum", low + 10)) * 4) / 4 or low
    least, most = asked if name in LONGEST else WORDS.get(name, OTHERWISE)
    return text(draw, words, draw.randint(least, most))


def text(draw: random.Random, words: list[str], count: int) -> str:
    """So many words, in sentences."""
    chosen = draw.choices(words, k=count)
    return " ".join(" ".join(chosen[at : at + _SENTENCE]).capitalize() + "." for at in range(0, count, _SENTENCE))


def counted(content: str) -> int:
    """Tokens of a text."""
    return -(-len(content.encode()) // 4)


class Answering:
    """The server, running while the context is open."""

    def __init__(self, handler: type[Handler] | None = None) -> None:
        """`handler` answers otherwise than well."""
        self._lock, self._prefixes = threading.Lock(), Prefixes()
        self._server = _Server(("127.0.0.1", 0), type("Own", (handler or Handler,), {"answering": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Answering:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def completion(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a chat completion."""
        said = [message["content"] for message in request["messages"]]
        schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
        draw = random.Random(hashlib.sha256(json.dumps([said, request.get("seed")]).encode()).digest())
        words = re.findall(r"[^\W\d_]{2,14}", " ".join(said)) or ["work"]
        end = said[-1].rpartition("Today is")[2]
        found = ASKED.search(end)
        asked = (int(found[1]), int(found[2])) if found else OTHERWISE
        answer = text(draw, words, 40) if schema is None else json.dumps(instance(schema, draw, words, asked, end), separators=(",", ":"))
        finish, most = "stop", request.get("max_tokens") or request.get("max_completion_tokens")
        if most is not None and counted(answer) > most:
            answer, finish = answer[: 4 * most], "length"
        form = "" if schema is None else json.dumps(schema, sort_keys=True, separators=(",", ":"))
        with self._lock:
            cached = self._prefixes.covered((form + "".join(said)).encode())
        read, written = counted(form) + sum(map(counted, said)), counted(answer)
        return {
            "id": "chatcmpl-" + hashlib.sha256(answer.encode()).hexdigest()[:12],
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": answer, "refusal": None}, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
                "prompt_tokens_details": {"cached_tokens": min(cached, read)},
            },
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet where whoever asked has gone; all else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one piece
    answering: Answering

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self.send(200, {"object": "list", "data": [{"id": "answering", "object": "model", "created": 0, "owned_by": "benchmarks"}]})

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/chat/completions"):
            self.send(200, self.answering.completion(body))
        else:
            self.send(404, {"error": {"message": f"no route {self.path}", "code": "not_found"}})

    def send(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        """Send a body as JSON."""
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()
