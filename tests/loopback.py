"""An OpenAI-compatible server on 127.0.0.1 that answers from the request's JSON schema, for tests that need real HTTP.

    with Loopback(latency=0.02) as server: OpenAI("any", server.url)

The answer is a valid instance of the schema, or a native call of one of the `tools` with valid arguments, drawn from a hash of the
messages: equal requests are answered equally, and none is longer than `max_tokens`.  It reports usage (with cached tokens for a prefix
it has seen), adds it up in `used` (so many `answers` were made), counts what is in flight and its peak, and keeps every request.
`faults` are met in order, one a request, before it answers well: an HTTP status, or "quota", "key", "tools", "overflow", "garbage" (200
and no JSON), "html" (200, no JSON type), "empty" (no choices), "null" (no content), "refusal", "truncated", "prose" (JSON in a fence, or
a call in a tag, with talk), "nonsense" (no JSON in it), "drop" (the connection is closed), "made" (it is closed once the answer has been
made), "hang" (no answer while the server lives), "redirect" (302 to a page that is no chat) and "moved" (308 to another path of the
same); bytes are the body of an HTTP 400.
`python tests/loopback.py --latency 0.02` serves until it is interrupted and prints its address.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PREFIX_BYTES = 512  # 128 tokens, the step in which providers cache
_LEAST_CACHED = 8  # steps
_LONG = {"plan": 90, "summary": 60, "content": 100, "description": 30, "background": 20, "text": 18, "goal": 16, "need": 8, "title": 6}
ERRORS: dict[str, tuple[int, dict[str, str]]] = {
    "tools": (400, {"message": "This model does not support tools.", "param": "tools"}),
    "form": (400, {"message": "response_format is not supported by this server.", "param": "response_format"}),
    "quota": (429, {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"}),
    "key": (401, {"message": "Incorrect API key provided: {key}.", "type": "invalid_request_error", "code": "invalid_api_key"}),
    "overflow": (400, {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}),
}


def instance(schema: Mapping[str, Any], draw: random.Random, words: list[str], name: str = "") -> Any:
    """A value that the schema allows."""
    if "enum" in schema:
        return draw.choice(list(schema["enum"]))
    if "anyOf" in schema:
        return instance(draw.choice(list(schema["anyOf"])), draw, words, name)
    kind = schema.get("type")
    if kind == "object":
        return {key: instance(part, draw, words, key) for key, part in schema["properties"].items()}
    if kind == "array":
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 2), least + 2)
        items = [instance(schema["items"], draw, words, name) for _ in range(draw.randint(least, most))]
        return list(dict.fromkeys(items)) if "enum" in schema["items"] else items
    if kind in ("number", "integer"):
        low = schema.get("minimum", 0)
        value = draw.uniform(low, schema.get("maximum", low + 10))
        return round(value, 2) if kind == "number" else int(value)
    if kind == "string" and "format" in schema:
        return {"date": f"2026-02-{draw.randint(1, 28):02}", "time": f"{draw.randint(8, 17):02}:30:00"}[schema["format"]]
    if kind == "string":
        count = _LONG.get(name, 5)
        return " ".join(draw.choice(words) for _ in range(draw.randint(max(1, count - 3), count + 3))).capitalize()
    if kind == "boolean":
        return draw.random() < 0.5
    raise AssertionError(f"a schema that this server cannot answer: {schema!r}")


class Loopback:
    """The server, running while the context is open."""

    def __init__(
        self, *, latency: float = 0.0, faults: Iterable[int | str | bytes | None] = (), retry_after: str | None = None, port: int = 0
    ) -> None:
        self.latency, self.faults, self.retry_after = latency, list(faults), retry_after
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.in_flight = self.peak = 0
        self.used = {"answers": 0, "prompt": 0, "cached": 0, "completion": 0}
        self._lock, self._closing, self._prefixes = threading.Lock(), threading.Event(), set[bytes]()
        outer = self

        class Handler(_Handler):
            loopback = outer

        self._server = _Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def enter(self, request: dict[str, Any], key: str) -> int | str | bytes | None:
        """Count a request in, and the fault it is to meet."""
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            return self.faults.pop(0) if self.faults else None

    def leave(self) -> None:
        with self._lock:
            self.in_flight -= 1

    def wait(self, fault: int | str | bytes | None) -> None:
        if fault == "hang":
            self._closing.wait()
        elif self.latency:
            time.sleep(self.latency)

    def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
        """The body of a chat completion."""
        prompt = "\n".join(m["content"] for m in request["messages"])
        schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
        draw = random.Random(hashlib.sha256(json.dumps([prompt, request.get("seed")]).encode()).digest())
        words = re.findall(r"[a-z]{3,12}", prompt) or ["work"]
        text: str | None = "Done." if schema is None else json.dumps(instance(schema, draw, words))
        finish, refusal, called = "stop", None, None
        if "tools" in request:
            function = draw.choice(request["tools"])["function"]
            called = {"name": function["name"], "arguments": json.dumps(instance(function["parameters"], draw, words))}
            text, finish = json.dumps(called), "tool_calls"
        if fault == "truncated":
            text, finish = str(text)[: len(str(text)) // 2], "length"
        elif fault == "prose":
            text = f"<think>Perhaps {{this}}.</think>Here it is:\n```json\n{text}\n```\nI hope it helps."
            if called is not None:
                text = f"I will do it.\n<tool_call>\n{json.dumps({**called, 'arguments': json.loads(called['arguments'])})}\n</tool_call>"
        elif fault == "nonsense":
            text = "I would rather talk about the weather."
        elif fault == "null":
            text = None
        elif fault == "refusal":
            text, refusal = None, "I cannot help with that."
        most = request.get("max_tokens", request.get("max_completion_tokens"))
        if text is not None and most is not None and len(text.encode()) > 4 * most:
            text, finish = text.encode()[: 4 * most].decode(errors="ignore"), "length"
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
        if finish == "tool_calls" and fault is None:
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": called}]}
        spent = -(-len((text or "").encode()) // 4)
        read = -(-len(prompt.encode()) // 4)
        cached = self._cached(prompt.encode())
        with self._lock:
            for name, number in (("answers", 1), ("prompt", read), ("cached", cached), ("completion", spent)):
                self.used[name] += number
        return {
            "id": "chatcmpl-" + hashlib.sha256(prompt.encode()).hexdigest()[:12],
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "system_fingerprint": "fp_loopback",
            "choices": [] if fault == "empty" else [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": spent,
                "total_tokens": read + spent,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }

    def _cached(self, prompt: bytes) -> int:
        """Tokens of the longest prefix seen before, in steps of 128 from 1,024."""
        seen = 0
        with self._lock:
            for step in range(1, len(prompt) // _PREFIX_BYTES + 1):
                prefix = hashlib.sha256(prompt[: step * _PREFIX_BYTES]).digest()
                if prefix in self._prefixes and seen == step - 1:
                    seen = step
                self._prefixes.add(prefix)
        return seen * _PREFIX_BYTES // 4 if seen >= _LEAST_CACHED else 0


@contextlib.contextmanager
def unreachable() -> Iterator[str]:
    """The URL of a port that takes no more connections: whoever wants one waits in vain."""
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # more than the system queues
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    loopback: Loopback

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the requests are kept instead."""

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
        self._send(200, {"object": "list", "data": [{"id": "loopback", "object": "model", "created": 0, "owned_by": "tests"}]})

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            self._send(404, {"error": {"message": f"no route {self.path}", "code": "not_found"}})
            return
        key = self.headers.get("authorization", "").removeprefix("Bearer ")
        fault = self.loopback.enter(body, key)
        try:
            self.loopback.wait(fault)
        finally:
            self.loopback.leave()  # before the answer leaves: its reader may send the next request at once
        self._answer(body, key, fault)

    def _answer(self, body: dict[str, Any], key: str, fault: int | str | bytes | None) -> None:
        if fault == "made":
            self.loopback.completion(body, None)
        if fault in ("drop", "made", "hang"):
            self.close_connection = True
        elif isinstance(fault, bytes):
            self._send_bytes(400, fault, "application/json" if fault.startswith(b"{") else "text/plain")
        elif fault in ("redirect", "moved"):
            self.send_response(302 if fault == "redirect" else 308)
            self.send_header("location", self.path.replace("/v1/", "/v2/") if fault == "moved" else "/login")
            self.send_header("content-length", "0")
            self.end_headers()
        elif isinstance(fault, int):
            self._send(fault, {"error": {"message": f"trouble {fault}", "type": "test", "code": None}})
        elif fault in ERRORS:
            status, error = ERRORS[str(fault)]
            self._send(status, {"error": error | {"message": error["message"].replace("{key}", key)}})
        elif fault == "garbage":
            self._send_bytes(200, b'{"choices": [', "application/json")
        elif fault == "html":
            self._send_bytes(200, b"<html>Welcome to the proxy</html>", "text/html")
        else:
            self._send(200, self.loopback.completion(body, fault))

    def _send(self, status: int, body: object) -> None:
        self._send_bytes(status, json.dumps(body).encode(), "application/json")

    def _send_bytes(self, status: int, raw: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(raw)))
        if status >= 400 and self.loopback.retry_after is not None:
            self.send_header("retry-after", self.loopback.retry_after)
        self.end_headers()
        self.wfile.write(raw)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with Loopback(latency=options.latency, port=options.port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(json.dumps({"requests": len(server.requests), "peak": server.peak}), flush=True)


if __name__ == "__main__":
    main()
