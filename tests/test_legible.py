"""What cannot be seen is no text: it neither counts as an answer nor stays in one."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taskweave as tw
from taskweave.backbones.legible import is_blank, legible
from taskweave.backbones.masking import Mask
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.reading import Unusable, values
from taskweave.backbones.scripted import Scripted
from taskweave.driving import Organization
from taskweave.records import Completion, Request
from tests.loopback import Loopback
from tests.simulated import WORKSHOP, simulated

INVISIBLE = {
    "zero width space": "\u200b",
    "joiner": "\u200d",
    "non-joiner": "\u200c",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "bidi override": "\u202e",
    "bidi isolate": "\u2067",
    "left-to-right mark": "\u200e",
    "Arabic letter mark": "\u061c",
    "tag": "\U000e0041",
    "control": "\x1b",
}
FILLERS = {"Hangul filler": "\u3164", "blank of Braille": "\u2800", "variation selector": "\ufe0f", "grapheme joiner": "\u034f"}


@pytest.mark.parametrize("unseen", (INVISIBLE | FILLERS).values(), ids=INVISIBLE | FILLERS)
def test_a_text_of_which_nothing_can_be_seen_is_empty(unseen: str) -> None:
    assert legible(unseen) == legible(f" {unseen}\n{unseen}{unseen}") == ""
    assert not is_blank(f"{unseen}a")
    with pytest.raises(Unusable, match="the answer is empty"):
        values(Completion(text=f"{unseen} {unseen}"), 50)


@pytest.mark.parametrize("unseen", INVISIBLE.values(), ids=INVISIBLE)
def test_it_is_taken_out_of_values_and_names_and_before_and_behind_words(unseen: str) -> None:
    said = json.dumps({f"title{unseen}": [f"{unseen}Draft {unseen}of terms{unseen}."]})
    for text in (said, json.dumps(json.loads(said), ensure_ascii=False)):
        assert values(Completion(text=text), 50)[0].value == {"title": ["Draft of terms."]}


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "API\u200cها",
        "क्\u200dष",
        "👨\u200d👩\u200d👧",
        "❤\ufe0f\u200d🔥",
        "👩🏽\u200d🔬",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    ],
)
def test_joiners_stay_within_words_and_emoji_that_are_written_with_them(text: str) -> None:
    assert legible(f"One {text}, two") == f"One {text}, two"
    assert legible(f"\u200d{text}\u200c") == text


def test_of_several_joiners_one_stays_and_one_beside_no_letter_goes() -> None:
    assert legible("می\u200c\u200c\u200bخواهم") == "می\u200cخواهم"
    assert legible("a \u200db, 1\u200d2, c\u200c.") == "a b, 12, c."


def test_every_line_ends_alike() -> None:
    assert legible("a\r\nb\rc\u2028d\u2029e\nf\tg") == "a\nb\nc\nd\ne\nf\tg"
    assert values(Completion(text=r'{"content": "a\r\nb\rc"}'), 50)[0].value == {"content": "a\nb\nc"}


@given(st.text())
def test_what_is_legible_stays_so_and_holds_nothing_that_steers_a_terminal(text: str) -> None:
    seen = legible(text)
    assert legible(seen) == seen
    assert not [one for one in seen if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") and one not in "\t\n"]
    assert not set(seen) & (set("\u200b\ufeff\u00ad\u2060\r") | {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))})


def test_an_error_of_a_server_steers_no_terminal() -> None:
    assert Mask("").line("\x1b[2Jno\r\nsuch \u202ething\x07\ud83d") == "[2Jno such thing"


def test_half_a_character_in_an_error_ends_no_run(tmp_path: Path) -> None:
    with Loopback(faults=[b'{"error": {"message": "no \\ud83d such field"}}']) as server:
        run = tw.simulate(Organization(WORKSHOP), out=tmp_path / "r", until="week:1", backbone=OpenAI("any", server.url), look=False)
    assert run.outcome is not None
    assert (run.outcome.stop, "no such field" in run.outcome.cause) == ("refused", True)


# ---------------------------------------------------------------- in a run
@pytest.mark.parametrize("unseen", ["\u200b\ufeff", "\u2067\u2069 \u00ad", "\u3164"])
def test_deliverables_that_cannot_be_seen_are_fallbacks_as_empty_ones_are(tmp_path: Path, unseen: str) -> None:
    def blank(request: Request) -> Any:
        return Scripted().answer(request) | {"content": unseen}

    def empty(request: Request) -> Any:
        return Scripted().answer(request) | {"content": ""}

    run, other = (
        simulated(tmp_path / "a", until="week:1", stubs={"execute": blank}),
        simulated(tmp_path / "b", until="week:1", stubs={"execute": empty}),
    )
    assert {row["quality"] for row in run.table("results") if row["subtask"]} == {"fallback"}
    assert [row["content"] for row in run.table("results")] == [row["content"] for row in other.table("results")]


def test_titles_and_contents_are_written_without_what_cannot_be_seen(tmp_path: Path) -> None:
    def hidden(request: Request) -> Any:
        answer = Scripted().answer(request)
        return answer | {
            "title": f"\u202e{answer['title']}\u200b",
            "content": answer["content"].replace("\n", "\r\n").replace(" ", "\u2060 "),
        }

    run, plain = simulated(tmp_path / "a", until="week:1", stubs={"execute": hidden}), simulated(tmp_path / "b", until="week:1", stubs={})
    assert [(row["title"], row["content"]) for row in run.table("results")] == [(r["title"], r["content"]) for r in plain.table("results")]
