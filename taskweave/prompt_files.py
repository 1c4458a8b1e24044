"""One prompt file: its head parsed, its body compiled, every problem found with its line.

`PromptFile(path)` has the `prompt`, or `problems`.  A file is a YAML head between `---` lines (id, version, schema, temperature,
max_tokens, budget) and a Jinja2 body: the system message, then after lines `=== user` and `=== assistant` demonstrations, if any, and the
message that is answered.  Templates see JSON values and nothing else: no attribute of a Python object, no other file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import yaml
from jinja2 import Environment, StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import LoopContext

from taskweave.cutting import Kept
from taskweave.errors import Problem, PromptInvalid
from taskweave.records import Json, Sampling

TURN = re.compile(r"=== (user|assistant)")
STEADY = "organization"  # the input with which most prompts begin, the same all year
LONGEST = 1_000_000  # characters of one message
_NUMBER = (int, float)
_HEAD: dict[str, type | tuple[type, ...]]
_HEAD = {"id": str, "version": int, "schema": str, "temperature": _NUMBER, "max_tokens": int, "budget": dict}
_MEANING: dict[object, str] = {str: "text", int: "a whole number", _NUMBER: "a number", dict: "a mapping of variable to tokens"}
_LOOP = frozenset({"index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "depth", "depth0"})
_FILTERS = (
    *("abs", "capitalize", "count", "default", "first", "float", "int", "last", "length", "list", "lower", "max", "min"),
    *("replace", "round", "sort", "sum", "title", "trim", "unique", "upper", "wordcount"),
)


# ---------------------------------------------------------------- templates
def _join(items: Iterable[Json], between: str = "") -> str:
    """Jinja2's own, without its costs."""
    return between.join(map(str, items))


def _bullets(items: Sequence[str], none: str = "none") -> str:
    """One line an item, or the word for an empty list."""
    return "\n".join(f"- {item}" for item in items) if items else f"- {none}"


def quoted(text: str) -> str:
    """Foreign text as one JSON string: it cannot end its own quotation, nor begin a line of the prompt."""
    return json.dumps(" ".join(str(text).split()), ensure_ascii=False)


def _more(items: Sequence[Json]) -> str:
    """ "- … and 4 more" after a list of records that was cut, else nothing."""
    rest = items[-1].get("more") if items and isinstance(items[-1], dict) else None
    return f"- … and {rest} more" if rest else ""


def _measured_in(value: float, unit: str) -> str:
    """A figure and its unit: "365 trials a month", "3.1% a month", "12" where there is no unit."""
    return f"{value}{unit}" if str(unit).startswith("%") else f"{value} {unit}".rstrip()


_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
_SETTING: tuple[type[nodes.Node], ...] = (nodes.Assign, nodes.AssignBlock, nodes.Macro, nodes.CallBlock)
_ATTRIBUTE = re.compile(r"has no (?:attribute|element) '([^']+)'")
_OWN = {"join": _join, "bullets": _bullets, "quoted": quoted, "more": _more, "measured_in": _measured_in}


class _Code(CodeGenerator):
    """Compiles, notes the variables that a template does not set itself, and lets it name no other file."""

    environment: _Templates

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        self.environment.undeclared.update(name for what, name in frame.symbols.loads.values() if what == "resolve" and name)

    def _foreign(self, node: nodes.Node, frame: Frame) -> NoReturn:
        self.fail("a prompt stands alone, it cannot include, import or extend another file", node.lineno)

    def get_visitor(self, node: nodes.Node) -> Any:
        """What compiles a node of this kind."""
        return self._foreign if isinstance(node, _OTHER_FILES) else super().get_visitor(node)


class _Templates(Environment):
    """Jinja2 over JSON values: a name after a dot is a key, never a Python attribute."""

    code_generator_class = _Code

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        self.undeclared: set[str] = set()
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in _FILTERS} | _OWN

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in _LOOP:
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return obj[argument] if isinstance(obj, (dict, list, tuple, str)) else self.undefined(obj=obj, name=argument)
        except (LookupError, TypeError):
            return self.undefined(obj=obj, name=argument)


@lru_cache(maxsize=1)
def _environment() -> _Templates:
    return _Templates()


class Section(NamedTuple):
    """A piece of a message.  A steady one uses no input but STEADY: what it renders to is remembered with what is kept of that."""

    template: Template
    steady: bool

    def render(self, inputs: Mapping[str, Json]) -> str:
        if not self.steady or not isinstance(kept := inputs[STEADY], Kept):
            return self.template.render(inputs)
        if self.template not in kept.rendered:
            kept.rendered[self.template] = self.template.render(inputs)
        return kept.rendered[self.template]


_COMPILING = Lock()  # the one environment notes the variables of what it compiles


@lru_cache(maxsize=256)
def _compiled(text: str) -> tuple[tuple[Section, ...], frozenset[str]]:
    """The template of a text and the variables that it uses: a run loads its prompts twice, when it is made and when it is driven."""
    with _COMPILING:
        environment = _environment()
        sections, variables = [], set[str]()
        for part in _parted(environment.parse(text)):
            environment.undeclared.clear()
            template = environment.from_string(part)
            sections.append(Section(template, environment.undeclared == {STEADY}))
            variables |= environment.undeclared
    return tuple(sections), frozenset(variables)


def _parted(whole: nodes.Template) -> list[nodes.Template]:
    """The beginning that names nothing but STEADY, and the rest; one whole where a text sets variables, which both may use."""
    pieces: list[nodes.Node] = []
    for node in whole.body:
        pieces += (nodes.Output([part], lineno=part.lineno) for part in node.nodes) if isinstance(node, nodes.Output) else [node]
    first = next((place for place, piece in enumerate(pieces) if _names(piece) - {STEADY}), len(pieces))
    if any(whole.find_all(_SETTING)) or not any(map(_names, pieces[:first])):
        return [whole]
    parts = [nodes.Template(part, lineno=1) for part in (pieces[:first], pieces[first:]) if part]
    for part in parts:
        part.set_environment(_environment())
    return parts


def _names(node: nodes.Node) -> set[str]:
    """The names in a piece of a template that it does not set itself."""
    names = list(node.find_all(nodes.Name))
    return {name.name for name in names} - {name.name for name in names if name.ctx == "store"}


# ---------------------------------------------------------------- one file
@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """One prompt file: what its head says, what its body needs, and the templates ready to render."""

    id: str
    version: int
    schema: str
    sampling: Sampling
    budget: Mapping[str, int]
    variables: frozenset[str]
    digest: str
    file: str
    text: str
    parts: tuple[tuple[str, tuple[Section, ...], int], ...]  # (role, its sections, lines of the file before it)

    def render(self, inputs: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
        """The messages for inputs that are already cut.

        Raises PromptInvalid with the line of a value that is not there, and for a text that is endless.
        """
        messages = []
        for role, sections, before in self.parts:
            try:
                text = "".join(section.render(inputs) for section in sections).strip()
                if len(text) > LONGEST:
                    raise ValueError(f"the text grows beyond {LONGEST:,} characters")
                while "\n\n\n" in text:  # several times faster than a regular expression
                    text = text.replace("\n\n\n", "\n\n")
                if not text and role != "system" and len(self.parts) > 2:
                    raise ValueError(f"the {role} message of a demonstration, or the one after it, is empty")
                messages.append((role, text))
            except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError) as trouble:
                line = _line(trouble, before)
                what = self._path(trouble, line) + (str(trouble) or type(trouble).__name__)
                raise PromptInvalid(str(Problem(file=self.file, line=line, what=what))) from None
        return tuple((role, text) for role, text in messages if text)

    def demonstrations(self) -> list[tuple[str, str]]:
        """The turns of its demonstrations, (role, text as it stands in the file)."""
        lines = self.text.split("\n")
        turns = [(role, before) for role, _, before in self.parts]
        ends = [before - 1 for _, before in turns[1:]]
        return [(role, "\n".join(lines[before:end]).strip()) for (role, before), end in zip(turns[1:-1], ends[1:], strict=True)]

    def _path(self, trouble: BaseException, line: int | None) -> str:
        """The path that is not there, as the template writes it; nothing where its line does not tell."""
        named = _ATTRIBUTE.search(str(trouble)) if isinstance(trouble, UndefinedError) else None
        if named is None or line is None:
            return ""
        here = self.text.split("\n")[line - 1]
        written = re.search(rf"[\w.\[\]'\"]+(\.{re.escape(named[1])}\b|\[['\"]{re.escape(named[1])}['\"]\])", here)
        return f"{written[0]!r}: " if written else ""


def _line(trouble: BaseException, before: int) -> int | None:
    """The line of the file in which a template failed: the innermost frame that Jinja2 has rewritten to it."""
    line, step = None, trouble.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<template>":
            line = before + step.tb_lineno
        step = step.tb_next
    return line


def normalized(text: str) -> str:
    """The text that is rendered and digested: no byte order mark, LF line ends, no blanks at line ends, one newline at the end."""
    lines = [line.rstrip() for line in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


class PromptFile:
    """A prompt file while it is read: collects every problem with its line."""

    def __init__(self, path: Path) -> None:
        self.file, self.stem, self.problems = str(path), path.stem, list[Problem]()
        self.prompt: Prompt | None = None
        self.budget_lines: dict[str, int] = {}  # budgeted variable -> line of the head
        try:
            raw = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as trouble:
            self.wrong(None, f"cannot be read as UTF-8 text: {trouble}")
            return
        self.text = normalized(raw)
        self.prompt = self._read()

    def wrong(self, line: int | None, what: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, what=what))

    def line_of(self, variable: str) -> int | None:
        """The line that first uses a variable."""
        use = re.compile(rf"{{[{{%].*\b{re.escape(variable)}\b")
        return next((n for n, line in enumerate(self.text.split("\n"), 1) if use.search(line)), None)

    def _read(self) -> Prompt | None:
        lines = self.text.split("\n")
        ends = [n for n, line in enumerate(lines) if line == "---"]
        if len(ends) < 2 or ends[0] != 0:
            self.wrong(1, f"no head; a prompt file begins with a YAML head between two lines '---' ({', '.join(_HEAD)})")
            return None
        head = self._head("\n".join(lines[1 : ends[1]]))
        parts, variables = self._body(lines, ends[1] + 1)
        for name, line in self.budget_lines.items():
            if variables is not None and name not in variables:
                self.wrong(line, f"budget for {name!r}, which the body does not use; it uses {sorted(variables)}")
        if head is None or variables is None or self.problems:
            return None
        return Prompt(
            id=head["id"],
            version=head["version"],
            schema=head["schema"],
            sampling=Sampling(temperature=float(head["temperature"]), max_tokens=head["max_tokens"]),
            budget=MappingProxyType(dict(head.get("budget") or {})),
            variables=frozenset(variables),
            digest=hashlib.sha256(self.text.encode()).hexdigest(),
            file=self.file,
            text=self.text,
            parts=parts,
        )

    def _head(self, text: str) -> dict[str, Any] | None:
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            head = loader.construct_document(node) if node is not None else None
        except (yaml.YAMLError, ValueError) as trouble:
            mark = getattr(trouble, "problem_mark", None)
            self.wrong(mark.line + 2 if mark else 1, f"the head is not YAML: {getattr(trouble, 'problem', None) or trouble}")
            return None
        if not isinstance(head, dict) or not isinstance(node, yaml.MappingNode):
            self.wrong(1, f"the head must be a mapping with the keys {', '.join(_HEAD)}")
            return None
        at: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 2
            if name in at:
                self.wrong(line, f"{name!r} is given twice in the head, first in line {at[name]}")
            at.setdefault(name, line)
            if name == "budget" and isinstance(value, yaml.MappingNode):
                self.budget_lines = {str(k.value): k.start_mark.line + 2 for k, _ in value.value}
        for name, line in at.items():
            if name not in _HEAD:
                self.wrong(line, f"unknown key {name!r} in the head{nearest(name, _HEAD)}; it may have {', '.join(_HEAD)}")
        for name, kind in _HEAD.items():
            if name not in head:
                if name != "budget":
                    self.wrong(1, f"the head lacks {name!r} ({_MEANING[kind]})")
            elif not isinstance(head[name], kind) or isinstance(head[name], bool):
                self.wrong(at[name], f"{name!r} must be {_MEANING[kind]}, not {head[name]!r}")
        if self.problems:
            return None
        if head["id"] != self.stem:
            self.wrong(at["id"], f"id is {head['id']!r} in a file named {self.stem + '.md'!r}; they must be the same")
        if head["version"] < 1 or head["max_tokens"] < 1:
            self.wrong(at["version" if head["version"] < 1 else "max_tokens"], "version and max_tokens must be at least 1")
        if not 0 <= head["temperature"] <= 2:
            self.wrong(at["temperature"], f"temperature must be between 0 and 2, not {head['temperature']!r}")
        for name, most in (head.get("budget") or {}).items():
            if not isinstance(most, int) or isinstance(most, bool) or most < 1:
                self.wrong(self.budget_lines[str(name)], f"the budget of {name!r} must be a whole number of tokens above 0, not {most!r}")
        return head

    def _body(self, lines: list[str], start: int) -> tuple[tuple[tuple[str, tuple[Section, ...], int], ...], set[str] | None]:
        """The templates, and the variables that they use."""
        turns = self._turns(lines, start)
        if turns is None:
            return (), None
        parts, variables = [], set[str]()
        for (role, first), (_, last) in zip(turns, [*turns[1:], ("", len(lines) + 1)], strict=True):
            try:
                sections, undeclared = _compiled("\n".join(lines[first : last - 1]))
            except TemplateSyntaxError as trouble:
                self.wrong(first + trouble.lineno, f"not a template: {trouble.message}")
                return (), None
            except (TemplateError, RecursionError, MemoryError, OverflowError, ValueError, SyntaxError) as trouble:
                self.wrong(None, f"not a template: {trouble}")
                return (), None
            parts.append((role, sections, first))
            variables |= undeclared
        return tuple(parts), variables

    def _turns(self, lines: list[str], start: int) -> list[tuple[str, int]] | None:
        """(role, its first line, counted from 0) of each message: the system's, then user and assistant in turn, a user's the last."""
        turns = [("system", start)]
        for at in range(start, len(lines)):
            if (marked := TURN.fullmatch(lines[at])) is None:
                continue
            role, before = marked[1], turns[-1][0]
            if role != (needed := "assistant" if before == "user" else "user"):
                self.wrong(at + 1, f"'=== {role}' after the {before} message, where '=== {needed}' is needed: they take turns")
                return None
            turns.append((role, at + 1))
        if turns[-1][0] == "system":
            self.wrong(None, "the body needs a line '=== user' between system and user message")
            return None
        if turns[-1][0] == "assistant":
            self.wrong(turns[-1][1], "the last message is the assistant's; what is to be answered comes after one more line '=== user'")
            return None
        return turns


def nearest(name: str, names: Iterable[str]) -> str:
    """ "; did you mean ...?" with the nearest of `names`, or nothing."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
