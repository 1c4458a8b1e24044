"""How does one post reach a server with Mastodon's API?  Entry point: `publish`: one request, one attempt.

Source: https://docs.joinmastodon.org/methods/statuses/#create (POST /api/v1/statuses with `Idempotency-Key`).  No redirect is followed, no
proxy is taken from the environment, certificates are checked.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from taskweave.records import Json
from taskweave.tools.outside.bounded import ALTOGETHER, MOST_HEARD, SILENCE, Deadline, plain
from taskweave.tools.outside.leaving import Post
from taskweave.tools.outside.servers import MASTODON_TOKEN

PATH = "/api/v1/statuses"


def publish(
    post: Post, url: str, key: str, *, reply_to: str | None = None, silence: float = SILENCE, altogether: float = ALTOGETHER
) -> dict[str, Json]:
    """{"sent": {id, url}}, or {"refused": why}; `reply_to` is the server's id of the post that it answers.

    Raises OSError where nobody can know whether the server has published it.
    """
    token = os.environ.get(MASTODON_TOKEN, "")
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        return {"refused": f"{MASTODON_TOKEN} holds no token"}
    fields = {"status": post.text, "visibility": "public", **({"in_reply_to_id": reply_to} if reply_to else {})}
    headers = {
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": key,
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "User-Agent": "taskweave",
        "Connection": "close",
    }
    connection = _connection(url, silence)
    with contextlib.closing(connection):
        try:
            connection.connect()
        except OSError as trouble:
            return {"refused": plain(f"no connection: {trouble}", token)}
        status, later, body = _exchanged(connection, urlencode(fields).encode(), headers, altogether, token)
    return _outcome(status, later, body, token)


def _exchanged(
    connection: http.client.HTTPConnection, fields: bytes, headers: Mapping[str, str], altogether: float, token: str
) -> tuple[int, str, bytes]:
    """Send the request; the answer's status, when it would take more, and the beginning of its body."""
    open_one = connection.sock  # which the connection forgets once the answer begins
    with Deadline(lambda: open_one, altogether) as deadline:
        try:
            connection.request("POST", PATH, fields, dict(headers))
            answer = connection.getresponse()
            later = answer.headers.get("Retry-After") or answer.headers.get("X-RateLimit-Reset") or ""
            return answer.status, later, answer.read(MOST_HEARD)
        except (OSError, http.client.HTTPException) as trouble:
            why = f"the server took more than {altogether:g} s" if deadline.over else plain(str(trouble) or type(trouble).__name__, token)
            raise OSError(f"the post was sent, and then: {why}") from None


def _connection(url: str, silence: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=silence, context=ssl.create_default_context())
    return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=silence)


def _outcome(status: int, later: str, body: bytes, token: str) -> dict[str, Json]:
    """What a server's answer means; OSError for one after which the post may or may not stand there."""
    said = _read(body)
    if 200 <= status < 300:
        if not isinstance(said.get("id"), str) or not said["id"]:
            raise OSError(f"the server answered {status} with what is no post")
        return {"sent": {name: plain(said[name], token) for name in ("id", "url") if isinstance(said.get(name), str)}}
    error = said.get("error")
    why = f"{status} {plain(error, token)}" if isinstance(error, str) else str(status)
    if 300 <= status < 400:
        return {"refused": f"{status}: the server sends elsewhere, and nothing is sent there"}
    if status == 429 and later:
        return {"refused": f"{why} (takes more after {plain(later, token)})"}
    if 400 <= status < 500:
        return {"refused": why}
    raise OSError(f"the server answered {why}")


def _read(body: bytes) -> Mapping[str, Json]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
