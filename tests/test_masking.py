"""A key never comes back: whatever a server makes of it, and wherever it puts it."""

from __future__ import annotations

import base64
import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taskweave as tw
from taskweave.backbones.masking import HIDDEN, LEAST, Mask
from taskweave.backbones.openai import OTHER, OpenAI
from taskweave.errors import Refused
from tests.loopback import Loopback
from tests.simulated import WORKSHOP
from tests.test_openai_backbone import complete

KEY = "sk-proj-" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=44))
FORMS = {
    "whole": KEY,
    "less its last 4": KEY[:-4],
    "less its first 5": KEY[5:],
    "from its middle": KEY[20:30],
    "upper case": KEY.upper(),
    "spaced": " ".join(KEY),
    "in lines": "\n".join(KEY[at : at + 5] for at in range(0, len(KEY), 5)),
    "joined by zero widths": "\u200b".join(KEY),
    "joined by soft hyphens and byte order marks": "\u00ad\ufeff".join(KEY),
    "escaped": "".join(f"\\u{ord(letter):04x}" for letter in KEY),
    "escaped in part": KEY[:3] + "".join(f"\\u{ord(letter):04X}" for letter in KEY[3:9]) + KEY[9:],
    "escaped lines": "\\n".join(KEY),
    "escaped zero widths": "\\u200b".join(KEY),
    "in a URL": "".join(f"%{ord(letter):02x}" for letter in KEY),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 of a header": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64 of a pair": base64.b64encode(f"me:{KEY}:".encode()).decode(),
}


def runs_left(text: str, key: str = KEY) -> list[str]:
    """Runs of the key that can still be read in a text, whatever stands between their characters."""
    plain = "".join(letter for letter in text.lower() if letter.isascii() and not letter.isspace())
    return [run for at in range(len(key) - LEAST + 1) if (run := key[at : at + LEAST].lower()) in plain]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_form_of_a_key_is_left_and_the_words_around_it_are(form: str) -> None:
    told = Mask(KEY).masked(f"Incorrect key: {form}. Ask us.")
    assert told.startswith("Incorrect key: ")
    assert told.endswith(". Ask us.")
    assert HIDDEN in told
    left = told.removeprefix("Incorrect key: ").removesuffix(". Ask us.")
    assert len(left) <= len("QmVhcmVyIH") + 4, "what stands before the key in base64, and no more"


@given(st.integers(0, len(KEY) - LEAST), st.integers(LEAST, len(KEY)), st.text(), st.text(), st.text(" \t\n\u200b\u2060\ufeff", max_size=2))
def test_any_run_of_a_key_is_hidden_in_any_text(first: int, length: int, before: str, after: str, between: str) -> None:
    told = Mask(KEY).masked(before + between.join(KEY[first : first + length]) + after)
    assert not runs_left(told)


@given(st.text())
def test_a_text_without_the_key_stays_as_it_is(text: str) -> None:
    assert Mask(KEY).masked(text) == text
    assert Mask("").masked(text) == text


def test_fewer_characters_than_a_run_are_no_secret() -> None:
    ending = f"the key that ends in {KEY[-(LEAST - 1) :]}"
    assert Mask(KEY).masked(ending) == ending


def test_whatever_is_no_models_key_is_a_secret_also_when_it_is_a_word() -> None:
    assert Mask("opensesame").masked("535 not opensesame") == f"535 not {HIDDEN}"
    assert Mask("sesame").masked("535 not sesame") == f"535 not {HIDDEN}"


@pytest.mark.parametrize("word", ["x", "none", "EMPTY", "no-key-required", "lm-studio", "a.b"])
def test_a_word_in_the_place_of_a_key_changes_no_answer(word: str) -> None:
    answer = f'{{"text": "an EMPTY box, goal none, a key is required: no-key-required, lm-studio, {word}"}}'
    assert Mask(word, words=True).masked(answer) == answer


@pytest.mark.parametrize("word", ["x", "none", "EMPTY", "lm-studio", "a.b"])
def test_a_word_in_the_place_of_a_key_is_hidden_in_errors_where_it_is_a_word(word: str) -> None:
    assert Mask(word, words=True).line(f"the key {word}, not {word}y or x{word}") == f"the key {HIDDEN}, not {word}y or x{word}"


def test_a_short_key_with_a_digit_or_a_long_one_without_is_a_secret() -> None:
    for key in ("abcdefg1", "Abcdefghijklmnopqrstuv"):
        assert Mask(key, words=True).masked(f"it is {key}") == f"it is {HIDDEN}"


def test_two_keys_in_one_text_are_both_hidden_and_what_stands_between_them_is_not() -> None:
    assert Mask(KEY).masked(f"{KEY[:20]} or {KEY[9:]}?") == "… or …?"


def test_a_line_of_an_error_is_short_and_hides_other_keys_too() -> None:
    line = Mask(KEY).line(f"no:\n{KEY[:-4]} nor sk-another-0123456789 " + "x" * 400)
    assert line.startswith("no: … nor … xxx")
    assert len(line) == 300


# ---------------------------------------------------------------- where a server can put it
class Leaky(Loopback):
    """Puts a form of the key into each text of an answer, one after another."""

    places = ("finish", "model", "fingerprint", "refusal", "content")

    def __init__(self, form: str, faults: Any = ()) -> None:
        super().__init__(faults=faults)
        self.form = form

    def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
        body = super().completion(request, fault)
        choice, place = body["choices"][0], self.places[len(self.requests) % len(self.places)]
        if place == "finish":
            choice["finish_reason"] = self.form
        elif place == "model":
            body["model"] = self.form
        elif place == "fingerprint":
            body["system_fingerprint"] = self.form
        elif place == "refusal":
            choice["message"]["refusal"] = self.form
        else:
            choice["message"]["content"] = f"I know {self.form}, and will not answer."
        return body


@pytest.mark.parametrize("form", [FORMS["whole"], FORMS["less its last 4"], FORMS["upper case"], FORMS["spaced"]])
def test_a_run_holds_no_part_of_the_key_wherever_the_server_puts_it(tmp_path: Path, form: str) -> None:
    faults = [None] * 6 + [json.dumps({"error": {"message": f"response_format is not for {form}"}}).encode(), 500]
    with Leaky(form, faults) as server:
        backbone = OpenAI("any", server.url, api_key=KEY)
        run = tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "run", until="week:1", backbone=backbone, style="full", look=False)
    assert run.finished
    for file in sorted((tmp_path / "run").rglob("*")):
        if file.is_file():
            assert not runs_left(file.read_bytes().decode("utf-8", "replace")), file.name
    finishes = {json.loads(outcome)["finish"] for outcome in _outcomes(run)}
    assert finishes == {"stop", OTHER}


@pytest.mark.parametrize("form", [FORMS["less its last 4"], FORMS["less its first 5"], FORMS["upper case"], FORMS["spaced"]])
def test_a_refusal_says_no_part_of_the_key(form: str) -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {form}", "code": form, "type": form}}).encode()
    with Loopback(faults=[body]) as server, pytest.raises(Refused, match="said 400: Incorrect API key provided: …") as caught:
        complete(server, api_key=KEY)
    assert not runs_left(str(caught.value))


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        (None, "stop"),
        ("", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("overflow", OTHER),
        ("a word of its own", OTHER),
        (["stop"], "stop"),
        (7, "stop"),
    ],
)
def test_why_an_answer_ended_is_told_in_words_of_ours(said: Any, finish: str) -> None:
    class Ends(Loopback):
        def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
            body = super().completion(request, fault)
            body["choices"][0]["finish_reason"] = said
            return body

    with Ends() as server:
        assert complete(server).finish == finish


def _outcomes(run: tw.Run) -> list[str]:
    import sqlite3

    with sqlite3.connect(run.folder.journal_path) as journal:
        return [value for (value,) in journal.execute("SELECT value FROM outcomes WHERE kind = 'complete'")]


def test_a_secret_with_a_backslash_is_hidden_in_json_too() -> None:
    secret = "abcdef\\ghijk"
    assert "ghijk" not in Mask(secret).masked(json.dumps({"tok": secret}))
    assert "ghijk" not in Mask(secret).masked(f"tok {secret}")
