"""Servers on 127.0.0.1 for tests of what leaves the machine: a real mail server, one that plays foul, and one with Mastodon's API.

`python -m tests.outside mail FOLDER` keeps a mail server running that writes each message it has accepted into FOLDER, and prints its URL.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

GREETING = b"220 foul.example ESMTP\r\n"


class Post:
    """What aiosmtpd calls: it keeps every message it accepts; `answers` are given by recipient, or to DATA under "data"."""

    def __init__(self, answers: dict[str, str] | None = None, then: Callable[[Envelope], None] | None = None) -> None:
        self.answers, self.then = answers or {}, then
        self.received: list[Envelope] = []

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the name that aiosmtpd calls
        if "data" in self.answers:
            return self.answers["data"]
        self.received.append(envelope)
        if self.then is not None:
            self.then(envelope)
        return "250 taken"


class _Controller(Controller):
    """On a port of the system's choice."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextlib.contextmanager
def mail_server(post: Post, **more: Any) -> Iterator[str]:
    """A real mail server's URL."""
    controller = _Controller(post, hostname="127.0.0.1", port=0, **more)
    controller.start()
    try:
        yield f"smtp://127.0.0.1:{controller.port}"
    finally:
        controller.stop()


@contextlib.contextmanager
def foul_server(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[str, list[bytes]]]:
    """The port ("127.0.0.1:N") of a server that does `talk` on each connection, and what it has heard so far."""
    closing, heard = threading.Event(), [b""]

    def serve() -> None:
        while not closing.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            talk(_Heard(connection, heard), closing)  # type: ignore[arg-type]  # it has the two methods that are used

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}", heard
        finally:
            closing.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(2)


class _Heard:
    """A connection of which all that comes in is kept."""

    def __init__(self, connection: socket.socket, heard: list[bytes]) -> None:
        self._connection, self._heard = connection, heard

    def sendall(self, data: bytes) -> None:
        self._connection.sendall(data)

    def recv(self, most: int) -> bytes:
        data = self._connection.recv(most)
        self._heard[0] += data
        return data


class Mastodon:
    """A server with the part of Mastodon's API that publishes: POST /api/v1/statuses, with its idempotency keys and its errors.

    `faults` are met in order, one a request: an HTTP status, "hang", "made" (published, and the connection closed), "redirect",
    "garbage" (200 and no JSON) or "drip" (a header, letter by letter).  `headers` are kept of every request.
    """

    def __init__(
        self, *, token: str = "the-token-of-a-test", faults: tuple[int | str, ...] = (), tls: ssl.SSLContext | None = None
    ) -> None:
        self.token, self.faults = token, list(faults)
        self.statuses: dict[str, dict[str, Any]] = {}  # by idempotency key
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        outer = self

        class Handler(_Handler):
            mastodon = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads, self._server.block_on_close = True, False
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Mastodon:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def publish(self, key: str, fields: dict[str, list[str]]) -> dict[str, Any]:
        """The Status of this key: the one that is there, or a new one."""
        if key not in self.statuses:
            number = str(103254962155278888 + len(self.statuses))
            self.statuses[key] = {
                "id": number,
                "created_at": "2026-01-12T09:00:00.000Z",
                "in_reply_to_id": fields.get("in_reply_to_id", [None])[0],
                "visibility": fields.get("visibility", ["public"])[0],
                "content": f"<p>{fields['status'][0]}</p>",
                "text": fields["status"][0],
                "url": f"{self.url}/@acme/{number}",
                "uri": f"{self.url}/users/acme/statuses/{number}",
            }
        return self.statuses[key]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mastodon: Mastodon

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the requests are kept instead."""

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        server = self.mastodon
        fields = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        fault = server.faults.pop(0) if server.faults else None
        if self.path != "/api/v1/statuses":
            self._send(404, {"error": "Record not found"})
        elif self.headers.get("authorization") != f"Bearer {server.token}":
            self._send(401, {"error": f"The access token is invalid: {self.headers.get('authorization')}"})
        elif fault == "hang":
            self.close_connection = True
            server.closing.wait()
        elif fault == "drip":
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not server.closing.wait(0.05):
                self.wfile.write(b"x")
        elif fault == "made":
            server.publish(self.headers["idempotency-key"], fields)
            self.close_connection = True
        elif fault == "redirect":
            self._send(308, {}, {"location": "http://127.0.0.2:9/api/v1/statuses"})
        elif fault == "garbage":
            self._send(200, "<html>" + "x" * 1_000_000)
        elif fault == 422:
            self._send(422, {"error": "Validation failed: Text can't be blank"})
        elif fault == 429:
            self._send(429, {"error": "Too many requests"}, {"retry-after": "300"})
        elif isinstance(fault, int):
            self._send(fault, {"error": f"trouble {fault}"})
        else:
            self._send(200, server.publish(self.headers["idempotency-key"], fields))

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(raw)


def main() -> None:
    """Keep a mail server until it is killed; each message is a file of its own before it is taken."""
    folder, count = Path(sys.argv[2]), iter(range(1_000_000))

    def keep(envelope: Envelope) -> None:
        assert isinstance(envelope.content, bytes)
        (folder / f"{next(count):04}.eml").write_bytes(envelope.content)

    with mail_server(Post(then=keep)) as url:
        print(url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
