"""Tools act on real things and on nothing else: what each leaves behind, and the ways out that are shut."""

from __future__ import annotations

import email
import email.policy
import io
import json
import mailbox
import os
import re
import sqlite3
import zipfile
from pathlib import Path

import pytest
from pydantic import BaseModel

from taskweave.errors import BadInput, ToolRefused
from taskweave.tools import documents
from taskweave.tools.files import file_name, write_below
from taskweave.tools.shelf import KITS, TOOLS, granted, kits_of
from taskweave.tools.world import Effect
from tests.tool_world import BO, INES, a_world, call, done, effect_of


# ---------------------------------------------------------------- what a tool is
def test_a_tools_signature_is_its_schema_for_an_endpoint_and_for_mcp() -> None:
    tool = TOOLS["ticket_open"]
    function = tool.for_openai()["function"]
    assert tool.for_mcp()["inputSchema"] == function["parameters"] == tool.schema
    assert function["parameters"]["required"] == ["title", "text", "assignee", "priority"]
    assert function["parameters"]["properties"]["title"] == {"type": "string", "minLength": 1, "maxLength": 200}
    assert function["parameters"]["properties"]["priority"]["enum"] == ["low", "normal", "high"]
    assert function["parameters"]["additionalProperties"] is False
    assert tool.for_mcp()["annotations"]["readOnlyHint"] is False


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_says_what_it_does_and_takes_only_what_its_schema_names(name: str) -> None:
    tool = TOOLS[name]
    assert tool.summary.endswith(".") or ";" in tool.summary
    assert kits_of(tool), "a role could not be given it"
    assert issubclass(tool.arguments, BaseModel)
    with pytest.raises(ToolRefused, match="author: Extra inputs are not permitted"):
        tool.checked({"author": BO.id})


def test_a_role_has_the_tools_of_its_kits_and_no_others() -> None:
    held = {tool.name for tool in granted(["SQLite", "excel"])}
    assert held == set(KITS["sqlite"]) | set(KITS["excel"])
    assert held >= {"sql_query", "sql_tables", "sql_write", "sheet_write", "document_read", "document_list"}
    assert not any(tool.writes for tool in granted(["sql", "motherduck"])), "analysis changes nothing"
    assert [tool.name for tool in granted(["wiki_read"])] == ["wiki_read"]
    assert {name for names in KITS.values() for name in names} == set(TOOLS)
    with pytest.raises(KeyError, match="did you mean 'excel'"):
        granted(["excell"])


# ---------------------------------------------------------------- reads and writes
def test_what_is_written_is_seen_by_the_writer_at_once_and_by_others_when_it_has_landed() -> None:
    world = a_world()
    written = effect_of(call(world, "wiki_write", title="Pricing", text="Ten a seat."))
    assert call(world, "wiki_read", title="pricing", after=[written]).said["text"] == "Ten a seat."
    assert not call(world, "wiki_read", title="Pricing", actor=BO.id).ok
    world.land(1, [written])
    assert call(world, "wiki_read", title="Pricing", actor=BO.id).said["author"] == "Ines Roux"


def test_an_effect_lands_once_however_often_it_is_applied() -> None:
    world = a_world()
    posted = effect_of(call(world, "chat_post", channel="General", text="Hello."))
    assert [len(world.land(week, [posted, posted])) for week in (1, 2)] == [1, 0]
    assert len(call(world, "chat_read", channel="general", after=[posted]).said["messages"]) == 1


def test_effects_land_in_order_of_site_whatever_the_order_in_which_they_come() -> None:
    pages = []
    for turned in (False, True):
        world = a_world()
        first = effect_of(call(world, "wiki_write", title="Pricing", text="One.", key="a"))
        second = effect_of(call(world, "wiki_write", title="Pricing", text="Two.", key="b", actor=BO.id))
        landings = world.land(1, [second, first] if turned else [first, second])
        assert [landing.effect.key for landing in landings] == ["a", "b"]
        assert landings[0].conflicts == ()
        assert landings[1].landed
        assert landings[1].conflicts == ("wiki page Pricing was at revision 0 when this was decided and is at 1",)
        pages.append((call(world, "wiki_read", title="Pricing").said["text"], world.database()))
    assert pages[0] == pages[1]
    assert pages[0][0] == "Two."


def test_what_can_no_longer_be_done_when_it_lands_is_a_conflict_and_changes_nothing() -> None:
    world = a_world()
    made = [effect_of(call(world, "sql_write", statement="CREATE TABLE plan (id INTEGER PRIMARY KEY)", key=key)) for key in "ab"]
    first, second = world.land(1, made)
    assert (first.landed, second.landed) == (True, False)
    assert "already exists" in second.conflicts[0]


def test_a_world_is_rebuilt_from_its_effects_to_the_same_bytes_with_any_reading_between(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    effects: list[Effect] = []
    for number, folder in enumerate(folders):
        world = a_world(folder)
        for week in (1, 2):
            if number == 0:
                made = [
                    call(world, "sql_write", statement=f"CREATE TABLE plan{week} (id INTEGER, t TEXT DEFAULT current_timestamp)"),
                    call(world, "mail_send", to=["HR"], subject="Prices", text=f"Wéek {week}", actor=INES.id),
                    call(world, "document_write", name="Review", title="Review", text="# One\nText\n- item"),
                    call(world, "sheet_write", name="Costs", columns=["what", "cost"], rows=[["a", 1], ["b", week], ["", "=SUM(B2:B3)"]]),
                    call(world, "ticket_open", title="Check", text="Do.", assignee="HR", priority="high"),
                    call(world, "calendar_add", title="Sync", day="2026-02-04", start="10:00", minutes=30, people=["Bo Lindqvist"]),
                    call(world, "feed_post", text="We <ship>.", in_reply_to=""),
                ]
                effects += [effect_of(called) for called in made]
                call(world, "sql_write", statement="CREATE TABLE never (x)")
            # From the journal: as JSON.
            back = [Effect.read(json.loads(json.dumps(effect.as_json()))) for effect in effects[7 * week - 7 : 7 * week]]
            world.land(week, back, readings=[(week, "churn", 3.1)])
    files = [{str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()} for folder in folders]
    assert files[0].keys() == files[1].keys()
    assert [name for name in files[0] if files[0][name] != files[1][name]] == []
    assert {name.split("/")[0] for name in files[0]} == {"calendar", "company.db", "documents", "feed", "mail", "tickets"}


# ---------------------------------------------------------------- SQL
def sql(statement: str, tool: str = "sql_query") -> str:
    world = a_world()
    done(world, "sql_write", statement="CREATE TABLE plan (id INTEGER PRIMARY KEY, cost REAL)")
    called = call(world, tool, statement=statement)
    assert not called.ok, called.said
    return str(called.said)


def test_a_query_answers_with_columns_and_rows_and_says_when_there_are_more() -> None:
    world = a_world()
    assert call(world, "sql_query", statement="SELECT id FROM people ORDER BY id").said == {
        "columns": ["id"],
        "rows": [["backend-engineer"], ["hr"]],
        "more": False,
    }
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 60) SELECT x FROM n"
    said = call(world, "sql_query", statement=many).said
    assert (len(said["rows"]), said["more"]) == (50, True)


def test_the_clock_of_sql_is_the_simulated_one_however_it_is_asked() -> None:
    asked = "SELECT date('now'), date('n' || 'ow'), datetime(), strftime('%Y'), current_date, CURRENT_TIMESTAMP"
    assert call(a_world(), "sql_query", statement=asked).said["rows"] == [
        ["2026-02-03", "2026-02-03", "2026-02-03 09:30:00", "2026", "2026-02-03", "2026-02-03 09:30:00"]
    ]
    assert "time zone" in sql("SELECT datetime('now', 'localtime')")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ATTACH 'elsewhere.db' AS other", "ATTACH"),
        ("VACUUM INTO 'elsewhere.db'", "VACUUM"),
        ("PRAGMA writable_schema = 1", "PRAGMA"),
        ("PRAGMA user_version", "PRAGMA"),
        ("SELECT * FROM pragma_table_info('mails')", "pragma_table_info"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT random()", "random"),
        ("SELECT hex(randomblob(4))", "randomblob"),
        ("SELECT writefile('/x', 'y')", "writefile"),
        ("SELECT total_changes()", "total_changes"),
        ("SELECT 1; DROP TABLE plan", "one statement"),
        ("BEGIN", "transaction"),
        ("SAVEPOINT x", "savepoint"),
        ("CREATE TRIGGER t AFTER INSERT ON plan BEGIN DELETE FROM people; END", "TRIGGER"),
        ("CREATE VIEW v AS SELECT * FROM mails", "VIEW"),
        ("CREATE TEMP TABLE t (x)", "TEMP"),
        ("CREATE VIRTUAL TABLE t USING fts5(x)", "VTABLE"),
        ("UPDATE sqlite_master SET sql = ''", "sqlite_master"),
        ("DETACH main", "DETACH"),
        ("COPY plan TO '/x'", "syntax"),
        ("SELECT text FROM mails", "private"),
        ("SELECT count(*) FROM MAILS", "private"),
        ("SELECT (SELECT data FROM documents)", "private"),
        ("INSERT INTO plan SELECT length(text), 1 FROM mails", "private"),
        ("INSERT INTO messages VALUES ('1', 'general', 'Bo Lindqvist', '', 'I quit.')", "kept by other tools"),
        ("UPDATE tickets SET reporter = 'hr'", "kept by other tools"),
        ("DROP TABLE people", "kept by other tools"),
        ("ALTER TABLE people RENAME TO nobody", "ALTER"),
        ("CREATE UNIQUE INDEX one ON tickets (status)", "kept by other tools"),
    ],
)
@pytest.mark.parametrize("tool", ["sql_query", "sql_write"])
def test_sql_does_not_leave_the_organizations_own_tables(statement: str, why: str, tool: str) -> None:
    said = sql(statement, tool)
    assert why.casefold() in said.casefold() or (tool == "sql_query" and "only SELECT is" in said)


@pytest.mark.parametrize("statement", ["INSERT INTO plan VALUES (1, 2)", "DELETE FROM plan", "CREATE TABLE x (y)", "DROP TABLE plan"])
def test_a_role_that_may_only_read_changes_nothing(statement: str) -> None:
    assert "only SELECT is" in sql(statement)
    assert call(a_world(), "sql_write", statement="CREATE TABLE x (y)").ok


@pytest.mark.parametrize(
    "statement",
    [
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 10000) SELECT count(*) FROM n AS a, n AS b WHERE a.x < b.x",
        "INSERT INTO plan WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, 1 FROM n",
    ],
)
def test_a_statement_without_end_is_ended(statement: str) -> None:
    assert "steps" in sql(statement, "sql_write")


def test_a_default_that_draws_by_chance_is_caught_when_it_is_used() -> None:
    world = a_world()
    done(world, "sql_write", statement="CREATE TABLE t (id INTEGER, r INTEGER DEFAULT (random()))")
    assert not call(world, "sql_write", statement="INSERT INTO t (id) VALUES (1)").ok


@pytest.mark.parametrize(
    "ending",
    [
        "INSERT OR ROLLBACK INTO plan VALUES (1, 1)",
        "INSERT INTO plan WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n) SELECT x, 1 FROM n",
    ],
)
def test_a_statement_that_ends_the_transaction_leaves_nothing_of_what_was_only_looked_at(ending: str) -> None:
    world = a_world()
    before = world.database()
    made = effect_of(call(world, "sql_write", statement="CREATE TABLE plan (id INTEGER PRIMARY KEY, cost REAL)", key="a"))
    row = effect_of(call(world, "sql_write", statement="INSERT INTO plan VALUES (1, 1)", after=[made], key="b"))
    bad = Effect(key="c", tool="sql_write", arguments={"statement": ending}, actor=INES.id, moment="2026-02-03 09:30", seen={})
    more = Effect(key="d", tool="sql_write", arguments={"statement": "INSERT INTO plan VALUES (5, 1)"}, actor=INES.id, moment="", seen={})
    called = call(world, "sql_query", statement="SELECT id FROM plan ORDER BY id", after=[made, row, bad, more])
    assert called.said["rows"] == [[1], [5]]
    assert not call(world, "sql_write", statement=ending, after=[made, row]).ok
    assert world.database() == before
    assert [landing.landed for landing in world.land(1, [made, row, bad, more])] == [True, True, False, True]


# ---------------------------------------------------------------- files
@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "con", "NUL.docx", "x" * 200, "a\0b", "a:b", "x."])
def test_a_name_that_is_a_path_or_a_device_makes_no_file(name: str) -> None:
    with pytest.raises(ToolRefused):
        file_name(name, ".docx")
    assert not call(a_world(), "document_write", name=name, title="T", text="x").ok
    assert not call(a_world(), "wiki_write", title=name, text="x").ok


def test_nothing_is_written_through_a_link_or_out_of_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    outside.mkdir()
    inside.mkdir()
    os.symlink(outside, inside / "wiki")
    os.symlink(outside / "file", inside / "file")
    for path in ("wiki/x.md", "file", "../out/x", "/x", "a/../../x", ""):
        with pytest.raises(BadInput):
            write_below(inside, path, b"x")
    assert list(outside.iterdir()) == []
    world = a_world(inside)
    done(world, "wiki_write", title="x", text="x")
    assert "is a link" in world.unwritten["wiki/x.md"]
    assert list(outside.iterdir()) == []
    (inside / "wiki").unlink()
    done(world, "chat_post", channel="general", text="It is written with what lands next.")
    assert world.unwritten == {}
    assert (inside / "wiki/x.md").is_file()


def test_documents_are_read_back_as_text() -> None:
    world = a_world()
    done(world, "document_write", name="Review.docx", title="Review of prices", text="# Findings\nToo high.\n- lower it")
    assert call(world, "document_read", name="review.docx").said["text"] == "Review of prices\nFindings\nToo high.\nlower it"
    assert [one["name"] for one in call(world, "document_list").said["documents"]] == ["Review.docx"]
    rows = [["seat", 10], ["=SUM(B2:B2)", '=HYPERLINK("http://x")']]
    done(world, "sheet_write", name="Costs", columns=["what", "cost"], rows=rows)
    text = call(world, "document_read", name="Costs.xlsx").said["text"]
    assert text.splitlines()[:2] == ["what | cost", "seat | 10"]


def test_a_document_holds_no_time_but_the_simulated_one(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    done(world, "document_write", name="a", title="A", text="x")
    done(world, "sheet_write", name="a", columns=["a"], rows=[])
    for file in (tmp_path / "documents/a.docx", tmp_path / "documents/a.xlsx"):
        with zipfile.ZipFile(file) as package:
            assert {entry.date_time for entry in package.infolist()} == {(2026, 2, 3, 9, 30, 0)}
            dates = re.findall(rb"<dcterms:[a-z]+[^>]*>([^<]+)<", package.read("docProps/core.xml"))
            assert dates
            assert set(dates) == {b"2026-02-03T09:30:00Z"}


def test_a_cell_that_reaches_out_of_its_sheet_is_text(tmp_path: Path) -> None:
    import openpyxl

    world = a_world(tmp_path)
    cells = ["=SUM(A1:A3)", '=WEBSERVICE("http://x")', "=cmd|' /C calc'!A0", "+1", "=SUM(A1:A2)+1"]
    done(world, "sheet_write", name="x", columns=["a"], rows=[[cell] for cell in cells])
    sheet = openpyxl.load_workbook(tmp_path / "documents/x.xlsx").active
    assert [sheet.cell(row, 1).data_type for row in range(2, 7)] == ["f", "s", "s", "s", "s"]


def zipped(**parts: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name.replace("__", "/") + ".xml", data)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (zipped(a=b"\0" * 20 * 2**20), "unpacks to more than"),
        (zipped(**{f"p{n}": b"" for n in range(600)}), "unpacks to more than"),
        (zipped(a=b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'), "definitions"),
        (zipped(a='<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x>'.encode("utf-16")), "definitions"),
        (b"no zip at all", "damaged"),
        (zipped(word__document=b"<x/>"), "cannot be read"),
    ],
)
@pytest.mark.parametrize("name", ["x.docx", "x.xlsx"])
def test_a_bomb_in_a_document_is_refused(data: bytes, why: str, name: str) -> None:
    with pytest.raises(ToolRefused, match=why):
        documents.text_of(data, name)


def test_a_bomb_that_lies_about_its_size_is_refused() -> None:
    data = bytearray(zipped(a=b"\0" * 20 * 2**20))
    where = data.rfind(b"PK\x01\x02")
    data[where + 24 : where + 28] = (1000).to_bytes(4, "little")
    with pytest.raises(ToolRefused, match="damaged"):
        documents.text_of(bytes(data), "x.docx")


# ---------------------------------------------------------------- mail, chat, calendar, feed, tickets
def test_mail_lies_in_the_recipients_maildir_as_a_message_from_who_sent_it(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    sent = done(world, "mail_send", to=["Bo Lindqvist", "press@paper.example"], subject="Prix révisés", text="Bonjour,\nles prix.")
    assert sent["to"] == [BO.email, "press@paper.example"]
    for box in (BO.id, "outbox", f"{INES.id}/.Sent"):
        (file,) = (tmp_path / "mail" / box / "new").iterdir()
        message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        assert (message["From"], message["Subject"]) == ("Ines Roux <ines.roux@acme.example>", "Prix révisés")
        assert message["Date"] == "Tue, 03 Feb 2026 09:30:00 +0000"
        assert message.get_content().splitlines() == ["Bonjour,", "les prix."]
    for part in ("cur", "tmp"):
        (tmp_path / "mail" / BO.id / part).mkdir()  # what a mail program makes when it opens the box
    assert len(mailbox.Maildir(tmp_path / "mail" / BO.id, create=False)) == 1


def test_everybody_reads_the_own_mail_only() -> None:
    world = a_world()
    done(world, "mail_send", to=["HR"], subject="Private", text="Between us.")
    assert call(world, "mail_read").said == {"mails": []}
    assert [mail["text"] for mail in call(world, "mail_read", actor=BO.id).said["mails"]] == ["Between us."]


@pytest.mark.parametrize("subject", ["Hi\r\nBcc: all@acme.example", "Hi\nFrom: boss@acme.example", "Hi\rX: y", "Hi\u2028X: y", "Hi\0"])
def test_a_header_cannot_be_injected_by_a_subject(subject: str) -> None:
    assert "not allowed" in str(call(a_world(), "mail_send", to=["HR"], subject=subject, text="x").said)


@pytest.mark.parametrize("to", ["a@b.example\nBcc: c@d.example", "a@b.example, c@d.example", "<a@b.example>", "a@b", "@", "nobody"])
def test_a_recipient_is_one_address_or_a_colleague(to: str) -> None:
    assert not call(a_world(), "mail_send", to=[to], subject="x", text="x").ok


def test_nobody_acts_as_another() -> None:
    world = a_world()
    for name, given in (
        ("chat_post", {"channel": "general", "text": "x"}),
        ("feed_post", {"text": "x", "in_reply_to": ""}),
        ("mail_send", {"to": ["HR"], "subject": "x", "text": "x"}),
    ):
        for claim in ("author", "actor", "sender", "hand", "me", "from"):
            assert not call(world, name, **given | {claim: BO.id}).ok if claim != "actor" else True
    assert "nobody here" in call(world, "chat_post", actor="stranger", channel="general", text="x").said
    done(world, "chat_post", channel="general", text="Bo Lindqvist: I agree.")
    assert call(world, "chat_read", channel="general").said["messages"][0]["author"] == "Ines Roux"


def test_tickets_are_worked_on_and_a_change_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    number = done(world, "ticket_open", title="Fix the total", text="Wrong by one.", assignee="Bo Lindqvist", priority="high")["id"]
    mine = effect_of(call(world, "ticket_update", id=number, status="done", note="Fixed.", key="x1"))
    other = effect_of(call(world, "ticket_update", id=number, status="rejected", note="No bug.", actor=BO.id, key="x2"))
    assert [landing.conflicts != () for landing in world.land(2, [mine, other])] == [False, True]
    (ticket,) = call(world, "ticket_list", status="any", mine=True, actor=BO.id).said["tickets"]
    assert ticket["status"] == "rejected"
    text = (tmp_path / f"tickets/{number}.md").read_text(encoding="utf-8")
    assert "Fixed." in text
    assert "No bug." in text
    assert "there is no ticket" in call(world, "ticket_update", id="T-0", status="done", note="x").said


def test_a_meeting_is_in_all_calendars_and_a_clash_is_said(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    meeting = {"day": "2026-02-04", "start": "10:00", "minutes": 60, "people": ["HR"]}
    assert done(world, "calendar_add", title="Budget; part 1, " + "é" * 60, **meeting)["clashes"] == []
    assert len(call(world, "calendar_add", title="Other", **meeting).said["clashes"]) == 2
    events = call(world, "calendar_read", person="Bo Lindqvist", first="2026-02-02", days=7).said["events"]
    assert [event["starts"] for event in events] == ["2026-02-04 10:00"]
    lines = (tmp_path / "calendar/hr.ics").read_bytes().split(b"\r\n")
    assert max(map(len, lines)) <= 75
    assert b"DTSTART:20260204T100000" in lines
    assert any(line.startswith(b"SUMMARY:Budget\\; part 1\\, ") for line in lines)
    assert "past" in call(world, "calendar_add", title="Late", **meeting | {"day": "2026-01-01"}).said


def test_a_post_has_mastodons_shape_and_its_text_is_no_markup(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    number = done(world, "feed_post", text="New <script>alert(1)</script> & more", in_reply_to="")["id"]
    done(world, "feed_post", text="Thanks!", in_reply_to=number, actor=BO.id)
    status = json.loads((tmp_path / f"feed/{number}.json").read_text(encoding="utf-8"))
    assert status["content"] == "<p>New &lt;script&gt;alert(1)&lt;/script&gt; &amp; more</p>"
    assert status["account"]["display_name"] == "Ines Roux"
    assert status["created_at"] == "2026-02-03T09:30:00.000Z"
    assert "no post" in call(world, "feed_post", text="x", in_reply_to="1").said


@pytest.mark.parametrize("text", ["x" * 8001, "", "a\0b", "a\x1b[2Jb", "\ud800"])
def test_a_text_is_bounded_and_holds_no_control_characters(text: str) -> None:
    assert not call(a_world(), "chat_post", channel="general", text=text).ok


def test_the_company_database_is_a_file_that_sqlite_opens(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    done(world, "sql_write", statement="CREATE TABLE plan (id INTEGER)")
    world.land(2, [], readings=[(1, "churn", 3.1)], deliverables=[("t1", "Plan", "report", "Ines Roux", "2026-02-03 10:00")])
    db = sqlite3.connect(tmp_path / "company.db")
    assert db.execute("SELECT kpi, value FROM readings").fetchall() == [("churn", 3.1)]
    db.close()
    tables = {table["table"]: table["rows"] for table in call(world, "sql_tables").said["tables"]}
    assert tables["deliverables"] == tables["readings"] == 1
    assert "mails" not in tables
