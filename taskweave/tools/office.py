"""Word and Excel files as bytes: read only within bounds, written with simulated timestamps, so that equal runs leave equal bytes.

Entry points: `opened`, `saved`, `keep`, `checked`.  A document from elsewhere is unpacked only within bounds.  What is in them is not
known here.
"""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.files import file_name
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, Value

SCHEMA = "CREATE TABLE documents (name TEXT PRIMARY KEY COLLATE NOCASE, revision INTEGER, author TEXT, changed TEXT, data BLOB);"
EXTRA = "tools"
WORD, EXCEL = ".docx", ".xlsx"
MOST_COLUMNS, MOST_ROWS = 20, 200  # of what one call writes or shows
MOST_DATA = 2**20  # bytes of a document that tools have made
MOST_DOCUMENTS = 2_000
MOST_MEMBERS, MOST_UNPACKED = 500, 16 * 2**20  # of a document's zip file
MOST_RATIO, SMALL = 200, 2**18  # how far a part may have been compressed, if it is not small: office files reach 20
MOST_PARTS = 100  # sheets of a workbook
_MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*")
_WRONG = (KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError, RecursionError, zipfile.BadZipFile)

Row = Annotated[list[Value], Field(max_length=MOST_COLUMNS)]
Columns = Annotated[list[Line], Field(min_length=1, max_length=MOST_COLUMNS)]
Rows = Annotated[list[Row], Field(max_length=MOST_ROWS)]


def package(name: str) -> Any:
    """python-docx or openpyxl, which are loaded where they are used."""
    try:
        if name == "docx":
            import docx

            return docx
        import openpyxl

        return openpyxl
    except ImportError:
        raise ToolRefused(f'documents need packages that are not installed: pip install "taskweave[{EXTRA}]"') from None


def loaded(data: bytes, name: str) -> Any:
    """A document's bytes as python-docx's or openpyxl's; raises ToolRefused for what is none, or would not stay small when unpacked."""
    checked(data, name)
    try:
        if name.casefold().endswith(WORD):
            return package("docx").Document(io.BytesIO(data))
        return package("openpyxl").load_workbook(io.BytesIO(data))
    except _WRONG as error:
        raise ToolRefused(f"{name!r} cannot be read: {error}") from None


def found(hand: Hand, name: str, ending: str = "") -> tuple[str, int, str, str, bytes]:
    """Name, revision, author, time of change and bytes of a document; its name may lack the ending.

    Raises ToolRefused with what there is.
    """
    columns = "SELECT name, revision, author, changed, data FROM documents WHERE name = ?"
    called = (name, *(name + one for one in ((ending,) if ending else (WORD, EXCEL))))
    rows = next((rows for one in called if (rows := hand.rows(columns, one))), [])
    if not rows:
        known = [n for (n,) in hand.rows("SELECT name FROM documents WHERE name LIKE ? ORDER BY changed DESC, name LIMIT 8", f"%{ending}")]
        raise ToolRefused(
            f"there is no document {name!r}; " + (f"among those there are: {', '.join(known)}" if known else "there is none yet")
        )
    if not rows[0][0].casefold().endswith(ending):
        raise ToolRefused(f"{rows[0][0]!r} is no {'Word' if ending == WORD else 'Excel'} document: its name must end in {ending}")
    return rows[0]


def opened(hand: Hand, name: str, ending: str) -> tuple[str, Any]:
    """A document of the company to look into or change: its full name, and what it is for its library."""
    called, _, _, _, data = found(hand, name, ending)
    return called, loaded(data, called)


def keep(hand: Hand, name: str, ending: str, document: Any) -> Json:
    """Make the document the next revision of that name; raises ToolRefused where it, or their number, would be too large."""
    name = file_name(name, ending)
    rows = hand.rows("SELECT name, revision FROM documents WHERE name = ?", name)
    kept, before = rows[0] if rows else (name, 0)
    data = saved(document, hand.moment)
    if len(data) > MOST_DATA:
        raise ToolRefused(f"{kept!r} would hold {len(data):,} bytes; a document holds {MOST_DATA:,} at the most. Begin another one")
    checked(data, kept)  # what nobody could open again is not kept
    if not rows and hand.rows("SELECT count(*) FROM documents")[0][0] >= MOST_DOCUMENTS:
        raise ToolRefused(f"there are {MOST_DOCUMENTS} documents, and no more are kept. Change one that there is")
    hand.based_on("document", kept, before)
    hand.rows("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)", kept, before + 1, hand.me.name, hand.moment, data)
    hand.touch("document", kept)
    return {"name": kept, "revision": before + 1}


def saved(document: Any, moment: str) -> bytes:
    """The document's bytes, with the time of change that its library took from the clock set to the simulated moment."""
    at = datetime.fromisoformat(moment)
    stream, out = io.BytesIO(), io.BytesIO()
    document.save(stream)
    with zipfile.ZipFile(stream) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as made:
        for name in given.namelist():
            data = given.read(name)
            if name == "docProps/core.xml":
                data = _MODIFIED.sub(rb"\g<1>" + at.strftime("%Y-%m-%dT%H:%M:%SZ").encode(), data)
            entry = zipfile.ZipInfo(name, (max(at.year, 1980), at.month, at.day, at.hour, at.minute, 0))
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            made.writestr(entry, data)
    return out.getvalue()


# ---------------------------------------------------------------- what is no document
def checked(data: bytes, name: str) -> None:
    """Raises ToolRefused for a zip bomb, for XML that defines entities, and for a workbook of more sheets than anybody opens."""
    if not name.casefold().endswith((WORD, EXCEL)):
        raise ToolRefused(f"{name!r} is no Word or Excel document: its name must end in {WORD} or {EXCEL}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as given:
            members = given.infolist()
            if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_UNPACKED:
                raise ToolRefused(f"{name!r} unpacks to more than {MOST_MEMBERS} parts or {MOST_UNPACKED // 2**20} MiB and is not read")
            for member in members:
                if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
                    raise ToolRefused(f"{name!r} holds a part packed to less than 1/{MOST_RATIO} of its size and is not read")
                # What a member says of its size may be a lie: the reader takes no more than that, and then checks its sum.
                _check_part(given.read(member), member.filename.casefold(), name)
    except (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError) as error:
        raise ToolRefused(f"{name!r} is damaged, or no document: {error}") from None
    except zipfile.zlib.error as error:  # type: ignore[attr-defined]  # zipfile's own zlib, which it does not export
        raise ToolRefused(f"{name!r} is damaged: {error}") from None


def _check_part(part: bytes, called: str, name: str) -> None:
    if called.endswith((".xml", ".rels", ".vml")) and _defines(part):
        raise ToolRefused(f"{name!r} holds XML with definitions of its own and is not read")
    if called == "xl/workbook.xml" and len(re.findall(rb"<(?:\w+:)?sheet[\s/>]", part)) > MOST_PARTS:
        raise ToolRefused(f"{name!r} has more than {MOST_PARTS} sheets and is not read")


def _defines(part: bytes) -> bool:
    """Whether XML has a document type, in whatever encoding: those with one byte a character keep ASCII, all others are refused too."""
    return b"<!DOCTYPE" in part or b"<!ENTITY" in part or b"\0" in part or part.startswith((b"\xfe\xff", b"\xff\xfe"))
