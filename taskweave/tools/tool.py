"""What is a tool?  A typed function on a `Hand`: its signature is the schema that a model, an endpoint or an MCP client sees.

Entry points: `tool` (makes one of a function), `Tool`.  Who acts, when, and under which key comes from the hand and is no argument: an
agent cannot act as another.  Refuses to know what any tool does.
"""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError, create_model

from taskweave.errors import ToolRefused
from taskweave.records import Json

if TYPE_CHECKING:
    from taskweave.tools.hand import Hand

MOST_LINE, MOST_PROSE = 200, 8_000  # characters of an argument
MOST_WHOLE = 2**53  # a larger number is no longer whole in a sheet, nor in most readers of JSON
_NO_CHARACTERS = "\ufffe\uffff"  # which XML, and so no document, can hold


def _printable(text: str, also: str) -> str:
    for character in text:
        if character in _NO_CHARACTERS or (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character not in also):
            raise ValueError(f"holds the character U+{ord(character):04X}, which is not allowed here")
    return text


def _one_line(text: str) -> str:
    return _printable(text, "")


def _prose(text: str) -> str:
    return _printable(text.replace("\r\n", "\n"), "\n\t")


def _whole(number: int) -> int:
    if abs(number) > MOST_WHOLE:
        raise ValueError("is too large a number")
    return number


# One line, and text of many: neither holds control characters, so that a header, a file's name or a fence cannot be broken out of.
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_LINE), AfterValidator(_one_line)]
MaybeLine = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MOST_LINE), AfterValidator(_one_line)]
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_PROSE), AfterValidator(_prose)]
Value = MaybeLine | float | Annotated[int, AfterValidator(_whole)] | None  # of a cell


@dataclass(frozen=True)
class Tool:
    """A function `(hand, **arguments) -> JSON` under a name; `writes` says whether it changes the world.

    `needs` is the extra (`pip install "taskweave[EXTRA]"`) without which it cannot work, "" for none; a `personal` one is about whoever
    calls it.
    """

    name: str
    function: Callable[..., Json]
    writes: bool
    needs: str = ""
    personal: bool = False

    @property
    def summary(self) -> str:
        """Its first line: what it does."""
        return self.description.splitlines()[0]

    @cached_property
    def description(self) -> str:
        """All that a caller is told."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model that checks its arguments: exactly those of its signature after the hand."""
        hints = get_type_hints(self.function, include_extras=True)
        named = list(inspect.signature(self.function).parameters.values())[1:]
        fields: dict[str, Any] = {p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in named}
        return create_model(self.name, __config__=ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False), **fields)

    @cached_property
    def schema(self) -> dict[str, Json]:
        """The JSON schema of its arguments; every one is required, as strict endpoints want it."""
        plain: dict[str, Json] = _plain(self.arguments.model_json_schema())
        return {"type": "object", "properties": {}, **plain, "required": list(plain.get("properties", {})), "additionalProperties": False}

    def for_openai(self) -> dict[str, Json]:
        """Its entry in the `tools` of a chat completion."""
        function = {"name": self.name, "description": self.description, "parameters": self.schema, "strict": True}
        return {"type": "function", "function": function}

    def for_mcp(self) -> dict[str, Json]:
        """Its entry in the answer to MCP's `tools/list`."""
        hints = {"readOnlyHint": not self.writes, "openWorldHint": False}
        return {"name": self.name, "description": self.description, "inputSchema": self.schema, "annotations": hints}

    def checked(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """The arguments as JSON values, defaults filled in; raises ToolRefused naming each that is wrong."""
        return self._parsed(arguments).model_dump(mode="json")

    def __call__(self, hand: Hand, arguments: Mapping[str, Json]) -> Json:
        """What the function says; raises ToolRefused."""
        parsed = self._parsed(arguments)
        return self.function(hand, **{name: getattr(parsed, name) for name in type(parsed).model_fields})

    def _parsed(self, arguments: Mapping[str, Json]) -> BaseModel:
        try:
            return self.arguments.model_validate(dict(arguments))
        except ValidationError as wrong:
            takes = ", ".join(self.arguments.model_fields) or "nothing"
            found = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in wrong.errors(include_url=False)[:8]]
            raise ToolRefused(f"{self.name}: {'; '.join(found)}. It takes: {takes}") from None


def tool(*, writes: bool = False, needs: str = "", personal: bool = False) -> Callable[[Callable[..., Json]], Tool]:
    """Make a tool of a function, under the function's own name."""
    return lambda function: Tool(name=function.__name__, function=function, writes=writes, needs=needs, personal=personal)


def _plain(schema: Json) -> Json:
    """The schema without what pydantic adds for people: titles and defaults."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # Below `properties` the keys are names of arguments, one of which may well be "title".
    return {
        key: {name: _plain(value) for name, value in found.items()} if key == "properties" else _plain(found)
        for key, found in schema.items()
        if key not in ("title", "default", "description")
    }
