"""Completions from an OpenAI-compatible endpoint: `OpenAI(model, base_url)`, one answer a call.

A parameter that the endpoint refuses is left out, for all calls from then on, and the request sent anew at once: `dialect.py`.  Beyond
that nothing is repeated here.  What may pass with time (429, 5xx, no connection, no answer in time) is Transient, and the gateway decides
when to try again; what cannot (a wrong key, an unknown model, no quota) is Refused, in the provider's words.
The key goes into the request's header and nowhere else: every text that comes back goes through `masking.py`, every token count through
`usage.py`.  The package `openai` is loaded by the first call.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

from taskweave.backbones import calling
from taskweave.backbones.dialect import TOOLS, Dialect, Trouble, Wire, too_long
from taskweave.backbones.masking import Mask
from taskweave.backbones.usage import usage_of
from taskweave.errors import BadInput, Refused, Transient
from taskweave.records import Completion, Json, Request

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_DEFAULT_URL = "https://api.openai.com/v1"
_NO_KEY = "none"  # what endpoints that want no key are sent
_HEADER = re.compile(r"[\x21-\x7e]+")
_LIKE_AN_OUTAGE = (408, 409, 425, 429)
# Of the HTTP library, by name: `openai` has come with one and with another.  What fails so has sent no whole request.
_NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol", "LocalProtocolError"}
# These answer this request and say nothing of the endpoint: outcomes, to be journaled like any answer.
_OUTCOMES = {
    "context_length_exceeded": "overflow",
    "exceed_context_size_error": "overflow",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
}
BYTES_A_TOKEN = 64  # more than any tokenizer puts into one
Answer = Mapping[str, Json]  # a response's JSON object
# Words for finish_reason, and what it is called here; any other is OTHER.
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "token_limit"), "length"),
    **{word: word for word in ("content_filter", "tool_calls", "function_call")},
}
OTHER = "other"
_NOT_WHOLE = ("length", "content_filter")
_REDIRECTS = range(300, 400)
_KEPT_ON = (307, 308)  # redirects after which the same is asked at another address: they are followed


class OpenAI:
    """A backbone behind the chat completions API.  `timeout` is in seconds and covers a whole call."""

    origin: Literal["model", "scripted"] = "model"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 180.0,
        transport: Any = None,
    ) -> None:
        """The key is `api_key`, else that of OPENAI_API_KEY; `transport`, one of the HTTP library that `openai` uses, takes the place of
        the network.

        Raises BadInput where the provider itself would be asked without a key.
        """
        self.name = f"openai:{model}"
        self.model = model
        given_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.base_url = given_url or _DEFAULT_URL
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._key and given_url is None:
            raise BadInput(
                f"backbone {self.name!r} needs a key: set OPENAI_API_KEY, or name an endpoint that wants none (base URL), or use 'scripted'"
            )
        if self._key and not _HEADER.fullmatch(self._key):
            raise BadInput("OPENAI_API_KEY holds blanks or characters that no key has; set it anew")
        self._mask = Mask(self._key, words=True)
        self._timeout, self._transport = timeout, transport
        self._connect_timeout = min(10.0, timeout / 2)  # well before the whole call's, which cannot tell whether anything was sent
        self._dialect = Dialect()
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: Request) -> Completion:
        """One request, one answer.  Raises Transient or Refused."""
        while True:
            wire = self._dialect.wire(self.model, request)
            answer = await self._sent(wire)
            if isinstance(answer, Completion):
                return answer
            if not isinstance(answer, Trouble):
                return self._completion(answer, wire)
            if not self._dialect.learn(answer, wire.body):
                raise Refused(self._said(answer)) from None

    async def _sent(self, wire: Wire) -> Answer | Completion | Trouble:
        """What one HTTP request comes to: an answer, an outcome, or a refusal of which something may be learnt."""
        import openai

        client = self._connected()
        try:
            async with asyncio.timeout(self._timeout):
                # As it was sent: the package's own reading makes numbers of `true` and of texts.
                raw = await client.chat.completions.with_raw_response.create(**wire.body)
                return self._read(raw.http_response)
        except TimeoutError:
            raise Transient(f"no answer within {self._timeout:g} s", billed=True) from None
        except openai.APITimeoutError as late:
            if not _was_sent(late):
                raise Transient(f"no connection to {self._host()} within {self._connect_timeout:g} s") from None
            raise Transient(f"no answer within {self._timeout:g} s", billed=True) from None
        except openai.APIStatusError as trouble:
            return self._outcome_of(trouble, wire)
        except openai.APIConnectionError as trouble:
            words = self._words(trouble.__cause__ or trouble)
            if type(trouble.__cause__).__name__ == "TooManyRedirects":
                raise Refused(f"{self._host()}: {words} (check the base URL)") from None
            if not _was_sent(trouble):
                raise Transient(f"no connection to {self._host()}: {words}") from None
            raise Transient(f"the connection to {self._host()} broke: {words}", billed=True) from None
        except (openai.APIResponseValidationError, ValueError) as trouble:
            raise Transient(f"{self._host()} answered with no chat completion: {self._words(trouble)}", billed=True) from None
        except openai.OpenAIError as trouble:
            raise Refused(f"{self._host()}: {self._words(trouble)}") from None

    async def models(self) -> list[str] | None:
        """Ids of the models that the endpoint lists; None where it lists none.  Raises Transient where nothing answers."""
        import openai

        try:
            async with asyncio.timeout(min(10.0, self._timeout)):
                listed = await self._connected().models.list()
            return [self._mask.masked(str(model.id)) for model in listed.data] or None
        except (TimeoutError, openai.APIConnectionError) as trouble:
            raise Transient(f"no connection to {self._host()}: {self._words(trouble.__cause__ or trouble)}") from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            return None  # whoever lists nothing, or something else, may answer all the same

    async def close(self) -> None:
        """Close the connections of the running loop."""
        client, self._client, self._loop = self._client, None, None
        if client is not None:
            await client.close()

    def _connected(self) -> AsyncOpenAI:
        """The client of the running loop: connections cannot pass from one loop to another."""
        import openai

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            timeout = openai.Timeout(self._timeout, connect=self._connect_timeout)
            http = None
            if self._transport is not None:
                http = openai.DefaultAsyncHttpxClient(transport=self._transport, timeout=timeout)
            self._client = openai.AsyncOpenAI(
                api_key=self._key or _NO_KEY, base_url=self.base_url, max_retries=0, timeout=timeout, http_client=http
            )
            self._loop = loop
        return self._client

    def _read(self, response: Any) -> Answer:
        """The JSON object in an HTTP response.  Raises Transient where there is none, Refused where it is of somewhere else."""
        self._refuse_redirect(response)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._no_completion(response.text)
        return answer

    def _completion(self, answer: Answer, wire: Wire) -> Completion:
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise self._no_completion(json.dumps(answer, ensure_ascii=False))
        finish = _finish(choice.get("finish_reason"))
        called = calling.text_of(message) if wire.rung == TOOLS else None
        if called is not None and finish not in _NOT_WHOLE:
            finish = calling.CALLED
        text, refusal = _whole(message.get("content") if called is None else called), _whole(message.get("refusal"))
        usage = usage_of(
            answer.get("usage"),
            sent=len(json.dumps(wire.body, ensure_ascii=False).encode("utf-8", "surrogatepass")),
            limit=wire.body.get("max_tokens", wire.body.get("max_completion_tokens")),
            answered=len((text or "").encode()) + len((refusal or "").encode()),
        )
        text, most = self._told(text), BYTES_A_TOKEN * wire.limit
        if text is not None and len(text) > most:  # it has not kept to the limit: what there is of it is a part
            text, finish = text[:most], "length"
        return Completion(
            text=text,
            finish=finish,
            refusal=self._told(refusal) or None,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            cached_tokens=usage.cached,
            model=self._told(_name(answer.get("model"))),
            fingerprint=self._told(_name(answer.get("system_fingerprint"))),
            rung=wire.rung,
            omitted=wire.omitted,
        )

    def _outcome_of(self, trouble: APIStatusError, wire: Wire) -> Completion | Trouble:
        """What an HTTP error means: an outcome of this request, a refusal of its form, else Transient or Refused is raised."""
        self._refuse_redirect(trouble.response)
        status, body = trouble.status_code, trouble.body if isinstance(trouble.body, dict) else {}
        code, kind = str(body.get("code") or ""), str(body.get("type") or "")
        words = str(body.get("message") or body.get("detail") or body.get("error") or trouble.response.text.strip() or trouble.message)
        if 400 <= status < 500:
            outcome = _OUTCOMES.get(code) or _OUTCOMES.get(kind) or ("overflow" if status in (400, 413, 422) and too_long(words) else None)
            if outcome is not None:
                return Completion(text=None, finish=outcome, rung=wire.rung, omitted=wire.omitted)
        refused = Trouble(status=status, words=words, parameter=str(body.get("param") or ""))
        if "insufficient_quota" in (code, kind):
            raise Refused(f"{self._said(refused)} (no quota)") from None
        if status in _LIKE_AN_OUTAGE or (status >= 500 and not self._dialect.refused_form(refused, wire.body)):
            raise Transient(self._said(refused), retry_after(trouble.response.headers)) from None
        if status in (400, 422) or status >= 500 or (status == 404 and self._dialect.refused_form(refused, wire.body)):
            return refused
        todo = {401: "check OPENAI_API_KEY", 403: "check what the key may do", 404: f"check the model {self.model!r} and the base URL"}
        raise Refused(f"{self._said(refused)} ({todo[status]})" if status in todo else self._said(refused)) from None

    def _said(self, trouble: Trouble) -> str:
        return f"{self._host()} said {trouble.status}: {self._words(trouble.words)}"

    def _host(self) -> str:
        return self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2]

    def _refuse_redirect(self, response: Any) -> None:
        """Refused where the endpoint led elsewhere, and not to ask the same there: what came of that answers no request."""
        gone = [one for one in response.history if one.status_code not in _KEPT_ON]
        gone += [response] if response.status_code in _REDIRECTS else []
        if gone:
            left = gone[0]
            where = self._words(left.headers.get("location") or "nowhere that it names")
            todo = f"check the base URL {self._words(self.base_url)!r}: it is to be where the API itself listens"
            raise Refused(f"{self._host()} said {left.status_code}: a redirect to {where} ({todo})") from None

    def _no_completion(self, what: str) -> Transient:
        return Transient(f"{self._host()} answered with no chat completion: {self._words(what)}", billed=True)

    def _told(self, text: str | None) -> str | None:
        """A text of an answer, without the key where the endpoint gives that back."""
        return None if text is None else self._mask.masked(text)

    def _words(self, what: object) -> str:
        """The provider's words in one line, without the key."""
        return self._mask.line(what)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """Seconds that the provider asks to wait: retry-after-ms, or Retry-After in seconds or as a date; 0 where it names none."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = headers.get(name, "").strip()
        if not given:
            continue
        try:
            seconds = float(given) * scale
        except ValueError:
            try:
                moment = parsedate_to_datetime(given)
            except ValueError:
                continue
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = (moment - (now or datetime.now(UTC))).total_seconds()
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return 0.0


def _was_sent(trouble: BaseException) -> bool:
    """Whether a request may have reached the endpoint before its connection broke, or nobody waited any longer."""
    return type(trouble.__cause__ or trouble.__context__ or trouble).__name__ not in _NOT_SENT


def _whole(text: Json) -> str | None:
    """A text without half characters, which JSON can escape and a file cannot hold; some endpoints give it in parts."""
    if isinstance(text, list):
        parts = [part.get("text") if isinstance(part, dict) else getattr(part, "text", part) for part in text]
        text = "".join(part for part in parts if isinstance(part, str))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(text, str) else None


def _finish(reason: Json) -> str:
    """Why an answer ended, in a word of ours: what is written down is none of the endpoint's."""
    return _FINISHES.get(reason.lower(), OTHER) if isinstance(reason, str) and reason else "stop"


def _name(text: Json) -> str | None:
    return _whole(text) if isinstance(text, str) and text else None
