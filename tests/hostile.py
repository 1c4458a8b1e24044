"""A server that deals every trap at random, one answer in three, and one that knows only plain chat.

    with Hostile(seed=1) as server: OpenAI("any", server.url)

Which trap a request meets is drawn from its content and from how often it was seen.  A request without a schema is answered from what
its words ask for, as a model would: `schema_of` reads the shape from the prompt.  `server.dealt` counts the traps.
`python -m tests.hostile --seed 1` serves until it is interrupted and prints its address; `--plain` refuses every form but plain chat.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import threading
from collections import Counter
from typing import Any

from taskweave.simulation import answers
from tests.loopback import ERRORS, Loopback, instance

SHARE = 1 / 3
REFUSALS: dict[str, tuple[int, dict[str, str]]] = {
    "no json_schema": (400, {"message": "This model does not support response_format json_schema.", "param": "response_format"}),
    "no json_object": (400, {"message": "response_format: 'json_object' is not supported."}),
    "no max_tokens": (
        400,
        {"message": "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "param": "max_tokens"},
    ),
    "no temperature": (400, {"message": "Unsupported value: 'temperature' does not support 0.7.", "param": "temperature"}),
    "no seed": (422, {"message": "Unknown field: seed"}),
    "no system": (400, {"message": "System role not supported"}),
}
ERRORS |= REFUSALS  # type: ignore[arg-type]  # statuses and bodies of the same form
ANSWERS = (
    *(
        "null",
        "blank",
        "refusal",
        "truncated",
        "shorter",
        "prose",
        "thinking",
        "several",
        "trailing",
        "list",
        "texts",
        "invented",
        "shouted",
    ),
    *("halves", "nonsense", "filtered", "parts", "overflow"),
)


def schema_of(prompt: str) -> dict[str, Any]:
    """The schema that a prompt's last line asks for in words, with the counts and names that stand in it."""
    shape = prompt.rpartition("Answer with one JSON object:")[2]
    activities = tuple((re.search(r"activity: one of ([^;\n]+)", prompt) or ["", "write"])[1].split(", "))
    if '"objectives"' in shape:
        return answers.partition(tuple(re.findall(r"^- ([a-z0-9-]+): ", prompt.rpartition("# Recipients")[2], re.MULTILINE)[:8]), ())
    if '"subtasks"' in shape:
        steps = re.findall(r"^s\d+: ([^,\n]+)", prompt, re.MULTILINE)
        return answers.decomposition(len(steps), tuple(dict.fromkeys(steps)), (), activities, 40.0)
    if '"urgent"' in shape or '"tasks"' in shape:
        count = int((re.search(r"exactly (\d+) (?:composite|urgent) tasks", prompt) or ["", "1"])[1])
        return answers.response(count, activities, ()) if '"urgent"' in shape else answers.week_partition(count, activities, ())
    kinds = {
        '"focus"': answers.formulation(),
        '"artifact"': answers.deliverable(()),
        '"deviations"': answers.diagnosis(),
        '"changes"': answers.alignment(),
        '"requests"': answers.reconciliation(("nobody",)),
        '"content"': answers.merged(),
        '"summary"': answers.roll_up(),
    }
    return next((schema for name, schema in kinds.items() if name in shape), {"type": "object", "properties": {"text": {"type": "string"}}})


class Plain(Loopback):
    """Knows only plain chat: every response_format is refused, and the answer comes in prose."""

    def trap(self, request: dict[str, Any], draw: random.Random) -> str | None:
        form = request.get("response_format", {}).get("type")
        return f"no {form}" if form else "prose"

    def enter(self, request: dict[str, Any], key: str) -> int | str | None:
        told = super().enter(request, key)
        if told is not None:
            return told
        body = json.dumps(request, sort_keys=True)
        with self._lock:
            self.seen[body] += 1
            draw = random.Random(hashlib.sha256(f"{self.seed} {self.seen[body]} {body}".encode()).digest())
            trap = self.trap(request, draw)
            if trap is not None:
                self.dealt[trap] += 1
            return trap

    def __init__(self, *, seed: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.seed, self.seen, self.dealt = seed, Counter[str](), Counter[str]()

    def completion(self, request: dict[str, Any], fault: int | str | None) -> dict[str, Any]:
        prompt = "\n".join(m["content"] for m in request["messages"])
        schema = request.get("response_format", {}).get("json_schema", {}).get("schema") or schema_of(prompt)
        draw = random.Random(hashlib.sha256(prompt.encode()).digest())
        good = instance(schema, draw, re.findall(r"[a-z]{3,12}", prompt) or ["work"])
        made = super().completion({**request, "response_format": {"json_schema": {"schema": schema}}}, None)
        choice = made["choices"][0]
        choice["message"]["content"], choice["finish_reason"], choice["message"]["refusal"] = _dealt(good, fault)
        return made


class Hostile(Plain):
    """Deals every trap, one answer in three."""

    def trap(self, request: dict[str, Any], draw: random.Random) -> str | None:
        if draw.random() >= SHARE:
            return None
        form = request.get("response_format", {}).get("type")
        refusals = [f"no {name}" for name in ("max_tokens", "temperature", "seed") if name in request]
        refusals += ["no system"] * (request["messages"][0]["role"] == "system") + [f"no {form}"] * (form is not None)
        return draw.choice([*ANSWERS, *refusals])


def _dealt(good: Any, trap: int | str | None) -> tuple[Any, str, str | None]:
    """(content, finish_reason, refusal) of an answer that falls into a trap."""
    text = json.dumps(good)
    match trap:
        case "null" | "filtered":
            return None, "stop" if trap == "null" else "content_filter", None
        case "blank" | "nonsense":
            return "  \n" if trap == "blank" else "I would rather talk about the weather.", "stop", None
        case "refusal":
            return None, "stop", "I cannot help with that."
        case "truncated":
            return text[: len(text) // 2], "length", None
        case "shorter":  # complete, but cut off: its lists end early
            return json.dumps(_walked(good, lambda v: v[:1] if isinstance(v, list) else v)), "length", None
        case "prose":
            return f"Here it is:\n```json\n{text}\n```\nI hope {{this}} helps [1].", "stop", None
        case "thinking":
            return f'<think>Perhaps {{"plan": "this"}}?\n</think>\n\n{text}', "stop", None
        case "several":
            return f'{{"draft": "no"}}\nBetter:\n{text}', "stop", None
        case "trailing":
            return f'{text}\nNote: {{"confidence": 0.9}}', "stop", None
        case "list":
            return (
                json.dumps(next(iter(good.values())) if len(good) == 1 and isinstance(next(iter(good.values())), list) else [good]),
                "stop",
                None,
            )
        case "texts":
            return json.dumps(_walked(good, lambda v: f"about {v} h" if isinstance(v, int | float) else v)), "stop", None
        case "invented":
            names = ("role", "owner", "to", "activity", "artifact", "priority")
            return json.dumps(_named(good, lambda name, v: f"Senior {v} of Dreams" if name in names else v)), "stop", None
        case "shouted":
            names = ("role", "owner", "to", "activity", "artifact", "priority")
            return json.dumps(_named(good, lambda name, v: f" {v.upper()} " if name in names else v)), "stop", None
        case "halves":
            return json.dumps(_walked(good, lambda v: f"{v} \ud83d \x00 😀" if isinstance(v, str) and " " in v else v)), "stop", None
        case "parts":
            return [{"type": "text", "text": text[:7]}, {"type": "text", "text": text[7:]}], "stop", None
    return text, "stop", None


def _walked(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {name: _walked(part, change) for name, part in value.items()}
    value = change(value)
    return [_walked(part, change) for part in value] if isinstance(value, list) else value


def _named(value: Any, change: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _named(part, change, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_named(part, change, name) for part in value]
    return change(name, value) if isinstance(value, str) else value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    with (Plain if options.plain else Hostile)(seed=options.seed, port=options.port) as server:
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(json.dumps({"requests": len(server.requests), "dealt": dict(server.dealt)}), flush=True)


if __name__ == "__main__":
    main()
