"""Each tool does something that can be read back, within bounds, and refuses with a reason: one test a group, and the paper's count."""

from __future__ import annotations

import email
import email.policy
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest

from taskweave.tools import office
from taskweave.tools import world as worlds
from taskweave.tools.shelf import KITS, MOST_IN_A_KIT, TOOLS, fails_with
from taskweave.tools.sql import KEPT
from tests.tool_world import BO, INES, a_world, call, done, effect_of

# App. K.2 equips agents with 63 tools of three categories, and Table 12 names the products they are of: these are ours of each.
TABLE_12 = {
    "SQLite": "sql_query sql_tables sql_describe sql_profile sql_write sql_create sql_insert",
    "MotherDuck": "duckdb_query sql_tables sql_describe",
    "Word": """document_write document_append document_add_section document_add_table document_section document_replace_section
        document_delete_section document_replace_text document_table document_comment document_comments document_read document_list
        document_search document_info document_copy""",
    "Excel": """sheet_write sheet_append sheet_read sheet_names sheet_add sheet_set sheet_find sheet_sort sheet_delete_rows sheet_rename
        sheet_remove sheet_format sheet_formula sheet_total sheet_group sheet_chart document_read document_list""",
    "Email": """mail_send mail_read mail_open mail_thread mail_reply mail_reply_all mail_forward mail_announce mail_search mail_sent
        mail_folder mail_mark mail_move""",
    "Twitter": """feed_post feed_reply feed_edit feed_read feed_boost feed_favourite feed_follow feed_unfollow feed_timeline feed_thread
        feed_notifications feed_account feed_search""",
}


def refused(*args: Any, **given: Any) -> str:
    called = call(*args, **given)
    assert not called.ok, called.said
    return str(called.said)


# ---------------------------------------------------------------- what there is
def test_the_products_of_table_12_have_at_least_the_papers_63_operations() -> None:
    of_the_paper = {name for names in TABLE_12.values() for name in names.split()}
    assert of_the_paper <= set(TOOLS)
    assert len(of_the_paper) >= 63
    for product, names in TABLE_12.items():
        kit = KITS[product.casefold()]
        assert set(kit) <= set(names.split()), product


def test_kits_are_small_and_a_tool_fails_with_the_kit_that_it_belongs_to() -> None:
    assert max(map(len, KITS.values())) <= MOST_IN_A_KIT
    assert "email" in fails_with(TOOLS["mail_mark"])
    assert "mastodon" in fails_with(TOOLS["feed_follow"])
    assert "email" not in fails_with(TOOLS["chat_search"])


def test_every_table_of_a_new_world_is_kept_from_sql() -> None:
    tables = {name for (name,) in a_world()._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == KEPT


# ---------------------------------------------------------------- SQL
def test_tables_are_made_filled_described_and_summed_up_without_sql() -> None:
    world = a_world()
    done(world, "sql_create", table="costs", columns=["what text", "sum real"])
    assert done(world, "sql_insert", table="Costs", rows=[["it's a seat", 10], ["desk", 30.5], [None, None]])["rows_added"] == 3
    described = call(world, "sql_describe", table="costs").said
    assert described["columns"] == [{"column": "what", "type": "TEXT"}, {"column": "sum", "type": "REAL"}]
    assert (described["rows"], described["own"]) == (3, True)
    told = call(world, "sql_profile", table="costs", column="sum").said
    assert (told["values"], told["least"], told["most"], told["mean"]) == (2, 10, 30.5, 20.25)
    assert "2 columns" in refused(world, "sql_insert", table="costs", rows=[[1]])
    assert "kept by other tools" in refused(world, "sql_insert", table="follows", rows=[["hr", "hr", "x"]])
    assert "no table 'mails' that you may read" in refused(world, "sql_describe", table="mails")
    assert "columns.0" in refused(world, "sql_create", table="x", columns=['a" text); DROP TABLE costs; --'])


# ---------------------------------------------------------------- Word
def test_a_word_document_is_changed_part_by_part(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    done(
        world, "document_write", name="plan", title="Plan", text="# Purpose\nLess churn.\n# Steps\n- Call ten firms.\n# Open\nWho reads it."
    )
    later = {"at": "2026-02-04 10:15", "actor": BO.id}
    done(world, "document_replace_section", name="plan", heading="steps", text="- Call twenty firms.\n- Write it down.", **later)
    done(world, "document_append", name="plan.docx", text="Seen by two.", **later)
    done(world, "document_add_section", name="plan", heading="Costs", text="None.", **later)
    done(world, "document_add_table", name="plan", columns=["Who", "Hours"], rows=[["Ines", 4], ["Bo", None]], **later)
    done(world, "document_replace_text", name="plan", old="churn", new="loss", **later)
    done(world, "document_comment", name="plan", quote="twenty firms", text="Why twenty?", **later)
    done(world, "document_delete_section", name="plan", heading="Open", **later)
    document = docx.Document(str(tmp_path / "documents/plan.docx"))
    said = ["Plan", "Purpose", "Less loss.", "Steps", "Call twenty firms.", "Write it down.", "Costs", "None."]
    assert [p.text for p in document.paragraphs] == said
    assert document.core_properties.created.isoformat()[:16] == "2026-02-03T09:30"
    assert document.core_properties.modified.isoformat()[:16] == "2026-02-04T10:15"
    assert document.core_properties.last_modified_by == BO.name
    assert call(world, "document_section", name="plan", heading="Steps").said["text"] == "Call twenty firms.\nWrite it down."
    assert call(world, "document_table", name="plan", number=1).said["rows"] == [["Ines", "4"], ["Bo", ""]]
    comments = call(world, "document_comments", name="plan").said["comments"]
    assert comments == [{"author": BO.name, "at": "2026-02-04 10:15", "text": "Why twenty?"}]
    info = call(world, "document_info", name="plan").said
    assert (info["revision"], info["headings"]) == (8, ["Plan", "Purpose", "Steps", "Costs"])
    assert "its headings: 'Plan'" in refused(world, "document_section", name="plan", heading="Nowhere")
    assert "is the title" in refused(world, "document_delete_section", name="plan", heading="Plan")
    assert "already" in refused(world, "document_add_section", name="plan", heading="Costs", text="x")


def test_documents_are_found_and_copied() -> None:
    world = a_world()
    done(world, "document_write", name="plan", title="Plan", text="Twenty firms leave.")
    done(world, "sheet_write", name="costs", columns=["what"], rows=[["twenty seats"]])
    assert {hit["name"] for hit in call(world, "document_search", text="TWENTY").said["found"]} == {"plan.docx", "costs.xlsx"}
    assert done(world, "document_copy", name="plan.docx", to="plan two")["name"] == "plan two.docx"
    assert "Twenty firms" in call(world, "document_read", name="plan two.docx").said["text"]
    assert "already" in refused(world, "document_copy", name="plan.docx", to="plan two")
    assert "no Excel document" in refused(world, "sheet_names", name="plan.docx")


# ---------------------------------------------------------------- Excel
def test_a_workbook_is_changed_sheet_by_sheet_and_computes(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    columns = ["step", "state", "hours"]
    done(world, "sheet_write", name="steps", columns=columns, rows=[["a", "open", 3], ["b", "done", 5]])
    done(world, "sheet_append", name="steps", sheet="", rows=[["c", "open", 10], ["d", "open", "later"]])
    done(world, "sheet_add", name="steps", sheet="People", columns=["who"], rows=[["Ines"]])
    done(world, "sheet_set", name="steps", sheet="people", cell="a2", value="Bo")
    done(world, "sheet_sort", name="steps", sheet="", column="Hours", order="falling")
    done(world, "sheet_formula", name="steps", sheet="", cell="E1", formula="=round(sum(C2:C5)/2, 1)")
    done(world, "sheet_chart", name="steps", sheet="", title="Hours", kind="bar", values="B1:C4")
    done(world, "sheet_format", name="steps", sheet="", area="C2:C5", numbers="two decimals", bold=True)
    done(world, "sheet_rename", name="steps", sheet="Sheet", to="Steps")
    book = openpyxl.load_workbook(tmp_path / "documents/steps.xlsx")
    page = book["Steps"]
    assert [[cell.value for cell in row[:3]] for row in page.iter_rows(min_row=2)] == [
        ["c", "open", 10],
        ["b", "done", 5],
        ["a", "open", 3],
        ["d", "open", "later"],
    ]
    assert (page["E1"].value, page["E1"].data_type) == ("=ROUND(SUM(C2:C5)/2, 1)", "f")
    assert (page["C2"].number_format, page["C2"].font.bold, len(page._charts)) == ("0.00", True, 1)
    assert book["People"]["A2"].value == "Bo"
    assert call(world, "sheet_read", name="steps", sheet="Steps", area="A1:B2").said["rows"] == [["step", "state"], ["c", "open"]]
    assert call(world, "sheet_total", name="steps", sheet="", area="C2:C5", function="average").said["average"] == 6
    groups = call(world, "sheet_group", name="steps", sheet="", by="state", column="hours", function="sum").said["groups"]
    assert groups == [{"state": "done", "sum": 5}, {"state": "open", "sum": 13}]
    assert [hit["cell"] for hit in call(world, "sheet_find", name="steps", text="open").said["found"]] == ["B2", "B4", "B5"]
    assert done(world, "sheet_delete_rows", name="steps", sheet="", first=5, count=1)["rows"] == 3
    assert done(world, "sheet_remove", name="steps", sheet="People")["sheets"] == ["Steps"]
    assert [sheet["charts"] for sheet in call(world, "sheet_names", name="steps").said["sheets"]] == [1]
    assert "only sheet" in refused(world, "sheet_remove", name="steps", sheet="Steps")
    assert "it has step" in refused(world, "sheet_sort", name="steps", sheet="", column="none", order="rising")
    done(world, "sheet_formula", name="steps", sheet="", cell="C9", formula="=SUM(C2:C4)")
    assert "has formulas" in refused(world, "sheet_sort", name="steps", sheet="", column="step", order="rising")


@pytest.mark.parametrize(
    "formula",
    [
        '=HYPERLINK("http://x")',
        "=cmd|' /C calc'!A0",
        "=Other!A1",
        "=[x.xlsx]S!A1",
        "=WEBSERVICE(A1)",
        "=SUM(A1:A2",
        "SUM(A1:A2)",
        "=A9+1",
        "=",
    ],
)
def test_a_formula_that_reaches_out_of_its_sheet_is_refused(formula: str) -> None:
    world = a_world()
    done(world, "sheet_write", name="x", columns=["a"], rows=[[1]])
    assert re.search("formula|bracket|names the cell", refused(world, "sheet_formula", name="x", sheet="", cell="A9", formula=formula))


def test_documents_that_are_made_twice_have_the_same_bytes() -> None:
    made = []
    for _ in range(2):
        world = a_world()
        done(world, "document_write", name="a", title="A", text="# One\ntext", key="k1")
        done(world, "document_comment", name="a", quote="text", text="Why?", at="2026-03-01 10:00", key="k2")
        done(world, "sheet_write", name="a", columns=["n", "v"], rows=[["x", 1], ["y", 2]], key="k3")
        done(world, "sheet_chart", name="a", sheet="", title="V", kind="pie", values="A1:B3", at="2026-03-01 10:00", key="k4")
        made.append([bytes(data) for (data,) in world._db.execute("SELECT data FROM documents ORDER BY name")])
    assert made[0] == made[1]
    for data in made[0]:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            core = package.read("docProps/core.xml")
            assert re.findall(rb"<dcterms:[a-z]+[^>]*>([^<]+)<", core) == [b"2026-02-03T09:30:00Z", b"2026-03-01T10:00:00Z"]


def test_a_document_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_DATA", 40_000)
    monkeypatch.setattr(office, "MOST_DOCUMENTS", 1)
    world = a_world()
    done(world, "document_write", name="a", title="A", text="x")
    assert "no more are kept" in refused(world, "document_write", name="b", title="B", text="x")
    text = " ".join(f"{number * 7919 % 100_003}" for number in range(1_300))
    why = ""
    for _ in range(20):
        called = call(world, "document_append", name="a", text=text)
        if not called.ok:
            why = str(called.said)
            break
        world.land(1, [effect_of(called)])
    assert "a document holds 40,000 at the most" in why
    assert call(world, "document_read", name="a.docx").ok


# ---------------------------------------------------------------- mail
def test_a_thread_holds_together_in_every_mail_program(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    first = done(world, "mail_send", to=["HR", "press@paper.example"], subject="Prices", text="Ten?")["id"]
    second = done(world, "mail_reply", id=first, text="Nine.", actor=BO.id, at="2026-02-03 11:00")["id"]
    third = done(world, "mail_reply_all", id=second, text="Agreed.", at="2026-02-03 12:00")["id"]
    done(world, "mail_forward", id=third, to=["press@paper.example"], text="For print.", at="2026-02-03 13:00")
    messages = {}
    for file in sorted((tmp_path / "mail").rglob("*.taskweave*")):
        message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        assert message.defects == []
        assert all(header.defects == () for header in message.values()), list(message.items())
        messages[message["Message-ID"]] = message
    assert len(messages) == 4
    answers = [message for message in messages.values() if message["In-Reply-To"]]
    assert len(answers) == 3
    for message in answers:
        assert message["In-Reply-To"] in messages
        assert message["References"].split()[-1] == message["In-Reply-To"]
        assert message["References"].split()[0] == f"<{first}@acme.example>"
    assert messages[f"<{third}@acme.example>"]["Subject"] == "Re: Prices"
    assert [mail["text"] for mail in call(world, "mail_thread", id=third).said["mails"]][:3] == ["Ten?", "Nine.", "Agreed."]


def test_a_mailbox_is_ones_own_and_is_kept_in_order(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    number = done(world, "mail_send", to=["HR"], subject="Prices", text="Ten?")["id"]
    mine = done(world, "mail_announce", department="strategy", subject="News", text="All well.")
    assert mine["told"] == 1
    done(world, "mail_mark", id=number, mark="read", actor=BO.id)
    done(world, "mail_move", id=number, folder="Waiting", actor=BO.id)
    (file,) = (tmp_path / "mail/hr/.Waiting/cur").iterdir()
    assert file.name.endswith("2,S")
    assert sorted(path.name for path in (tmp_path / "mail/hr/new").iterdir()) == [f"{1770111000}.{mine['id']}.taskweave"]
    assert [mail["id"] for mail in call(world, "mail_read", actor=BO.id).said["mails"]] == [mine["id"]]
    assert [mail["id"] for mail in call(world, "mail_folder", folder="waiting", actor=BO.id).said["mails"]] == [number]
    assert [mail["id"] for mail in call(world, "mail_search", text="TEN", actor=BO.id).said["mails"]] == [number]
    assert len(call(world, "mail_sent").said["mails"]) == 2
    assert call(world, "mail_open", id=number).said["text"] == "Ten?"
    own = done(world, "mail_send", to=[BO.id], subject="To myself", text="x", actor=BO.id)["id"]
    for tool, more in (
        ("mail_open", {}),
        ("mail_thread", {}),
        ("mail_reply", {"text": "x"}),
        ("mail_forward", {"text": "x", "to": ["HR"]}),
    ):
        assert "you have no e-mail" in refused(world, tool, id=own, **more)
    assert "no e-mail" in refused(world, "mail_move", id=own, folder="x")
    assert "folder" in refused(world, "mail_move", id=number, folder="../out", actor=BO.id)
    assert "any more" in refused(world, "mail_send", to=["gone@acme.example"], subject="x", text="x")


# ---------------------------------------------------------------- feed
def test_people_boost_follow_and_answer_each_other_on_the_feed(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    number = done(world, "feed_post", text="Release 4 is out. #release", in_reply_to="")["id"]
    done(world, "feed_follow", person="Ines Roux", actor=BO.id)
    done(world, "feed_boost", id=number, actor=BO.id)
    done(world, "feed_favourite", id=number, actor=BO.id)
    answer = done(world, "feed_reply", id=number, text="Well done!", actor=BO.id)["id"]
    done(world, "feed_edit", id=number, text="Release 4.1 is out. #release")
    status = json.loads((tmp_path / f"feed/{number}.json").read_text(encoding="utf-8"))
    counts = (status["reblogs_count"], status["favourites_count"], status["replies_count"])
    assert counts == (1, 1, 1)
    assert status["edited_at"] == "2026-02-03T09:30:00.000Z"
    assert status["tags"] == [{"name": "release", "url": "https://acme.example/tags/release"}]
    replied = json.loads((tmp_path / f"feed/{answer}.json").read_text(encoding="utf-8"))
    assert [one["id"] for one in replied["mentions"]] == [INES.id]
    assert replied["in_reply_to_id"] == number
    told = {one["type"] for one in call(world, "feed_notifications").said["notifications"]}
    assert told == {"follow", "reblog", "favourite", "mention"}
    assert {one["id"] for one in call(world, "feed_timeline", actor=BO.id).said["statuses"]} == {number, answer}
    assert [one["id"] for one in call(world, "feed_thread", id=number).said["descendants"]] == [answer]
    assert call(world, "feed_account", person=INES.id).said["account"]["followers_count"] == 1
    assert [one["id"] for one in call(world, "feed_search", text="#Release").said["statuses"]] == [number]
    assert done(world, "feed_unfollow", person=INES.id, actor=BO.id)["following"] is False
    assert "already" in refused(world, "feed_boost", id=number, actor=BO.id)
    assert "own posts only" in refused(world, "feed_edit", id=number, text="x", actor=BO.id)
    assert "do not follow" in refused(world, "feed_unfollow", person=INES.id, actor=BO.id)


# ---------------------------------------------------------------- chat, calendar, tickets, wiki
def test_a_message_is_answered_in_its_thread_and_reacted_to(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    first = done(world, "chat_post", channel="general", text="Lunch?", key="m1")["id"]
    done(world, "chat_post", channel="general", text="The build is red.", key="m2", at="2026-02-03 10:00")
    done(world, "chat_reply", id=first, text="At noon.", actor=BO.id, key="m3", at="2026-02-03 11:00")
    assert done(world, "chat_react", id=first, reaction="thumbs up", actor=BO.id)["reactions"] == {"thumbs up": 1}
    text = (tmp_path / "chat/general.md").read_text(encoding="utf-8")
    assert text.index("Lunch?") < text.index("> At noon.") < text.index("The build is red.")
    assert "(thumbs up 1)" in text
    thread = call(world, "chat_thread", id=first).said
    assert [one["text"] for one in thread["messages"]] == ["Lunch?", "At noon."]
    assert call(world, "chat_channels").said["channels"][0]["messages"] == 3
    assert [one["text"] for one in call(world, "chat_search", text="BUILD").said["messages"]] == ["The build is red."]
    assert "no message" in refused(world, "chat_reply", id="x", text="x")


def test_a_meeting_is_moved_answered_and_cancelled(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    number = done(world, "calendar_add", title="Sync", day="2026-02-04", start="10:00", minutes=60, people=[])["id"]
    assert done(world, "calendar_invite", id=number, people=["HR"])["invited"] == [BO.id]
    done(world, "calendar_answer", id=number, answer="accepted", actor=BO.id)
    free = call(world, "calendar_free", people=["HR"], day="2026-02-04", minutes=60).said["free"]
    assert ("09:00" in free, "09:30" in free, "10:30" in free, "11:00" in free) == (True, False, False, True)
    done(world, "calendar_move", id=number, day="2026-02-05", start="14:00")
    people = {one["person"]: one["answer"] for one in call(world, "calendar_meeting", id=number).said["people"]}
    assert people == {BO.id: "asked", INES.id: "accepted"}
    assert "who alone may change it" in refused(world, "calendar_cancel", id=number, actor=BO.id)
    done(world, "calendar_answer", id=number, answer="declined", actor=BO.id)
    assert "14:00" in call(world, "calendar_free", people=[], day="2026-02-05", minutes=30, actor=BO.id).said["free"]
    done(world, "calendar_cancel", id=number)
    ics = (tmp_path / "calendar/hr.ics").read_bytes().replace(b"\r\n ", b"").decode()
    assert "STATUS:CANCELLED" in ics
    assert "DTSTART:20260205T140000" in ics
    assert 'ATTENDEE;CN="Bo Lindqvist";PARTSTAT=DECLINED:mailto:bo.lindqvist@acme.example' in ics
    assert "is cancelled" in refused(world, "calendar_answer", id=number, answer="accepted", actor=BO.id)


def test_tickets_are_assigned_linked_labelled_and_found(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    one, two = (done(world, "ticket_open", title=t, text="x", assignee="", priority="low", key=t)["id"] for t in ("First", "Second"))
    done(world, "ticket_assign", id=one, assignee="HR")
    done(world, "ticket_comment", id=one, text="Seen at Acme.", actor=BO.id)
    done(world, "ticket_priority", id=one, priority="high")
    assert done(world, "ticket_label", id=one, label="Billing")["labels"] == ["billing"]
    done(world, "ticket_link", id=one, relation="blocks", other=two)
    ticket = call(world, "ticket_read", id=one).said
    assert (ticket["assignee"], ticket["priority"], ticket["status"], ticket["revision"]) == (BO.id, "high", "open", 4)
    assert call(world, "ticket_read", id=two).said["links"] == [{"relation": "is blocked by", "other": one}]
    for text in ("acme", "BILLING", "first"):
        assert [found["id"] for found in call(world, "ticket_search", text=text).said["tickets"]] == [one]
    written = (tmp_path / f"tickets/{one}.md").read_text(encoding="utf-8")
    assert "Labels: billing" in written
    assert f"- blocks {two}" in written
    assert "itself" in refused(world, "ticket_link", id=one, relation="blocks", other=one)


def test_a_page_has_a_history_and_goes_back_in_it(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    done(world, "wiki_write", title="Prices", text="Ten for a seat. See [[Plans]].")
    done(world, "wiki_append", title="prices", text="Nine from May on.", actor=BO.id)
    done(world, "wiki_replace", title="Prices", old="Ten", new="Eleven")
    done(world, "wiki_comment", title="Prices", text="Since when?", actor=BO.id)
    assert [one["revision"] for one in call(world, "wiki_history", title="Prices").said["revisions"]] == [3, 2, 1]
    assert call(world, "wiki_revision", title="Prices", revision=1).said["text"].startswith("Ten for a seat")
    assert call(world, "wiki_links", title="Prices").said["missing"] == ["Plans"]
    assert [one["title"] for one in call(world, "wiki_search", text="eleven").said["pages"]] == ["Prices"]
    assert done(world, "wiki_revert", title="Prices", revision=1)["revision"] == 4
    written = (tmp_path / "wiki/Prices.md").read_text(encoding="utf-8")
    assert "Ten for a seat" in written
    assert "Since when?" in written
    assert "no revision 9" in refused(world, "wiki_revision", title="Prices", revision=9)


def test_people_figures_and_deliverables_are_looked_up() -> None:
    world = a_world()
    world.land(1, [], readings=[(1, "churn", 3.1)], deliverables=[("t1", "Price review", "report", "Ines Roux", "2026-02-03 10:00")])
    world.land(2, [], readings=[(2, "churn", 2.8)])
    assert [one["id"] for one in call(world, "people_search", text="strat").said["people"]] == [BO.id]
    assert call(world, "people_read", person="Ines Roux").said["made"][0]["title"] == "Price review"
    assert call(world, "people_department", department="technology").said["people"][0]["id"] == INES.id
    assert call(world, "figure_list").said["figures"] == [{"figure": "churn", "week": 2, "value": 2.8, "change": -0.3}]
    assert [one["value"] for one in call(world, "figure_series", figure="Churn", weeks=9).said["readings"]] == [3.1, 2.8]
    assert call(world, "deliverable_search", text="REPORT").said["deliverables"][0]["id"] == "t1"
    assert call(world, "deliverable_recent", person="HR").said["deliverables"] == []
    assert "there are churn" in refused(world, "figure_series", figure="x", weeks=1)


# ---------------------------------------------------------------- bounds of a run
def grow(world: worlds.World, make: Callable[[int], dict[str, Any]], tool: str) -> str:
    """What a tool says when it is called until it refuses."""
    for number in range(200):
        called = call(world, tool, **make(number))
        if not called.ok:
            return str(called.said)
        world.land(number, [effect_of(called)])
    raise AssertionError("never refused")


def test_the_number_of_files_and_their_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worlds, "MOST_FILES", 5)
    world = a_world(tmp_path)
    assert "there is no room: 5 files" in grow(world, lambda n: {"title": f"p{n}", "text": "x"}, "wiki_write")
    assert call(world, "wiki_read", title="p0").ok
    monkeypatch.setattr(worlds, "MOST_BYTES", 30_000)
    monkeypatch.setattr(worlds, "MOST_FILES", 100)
    assert "there is no room" in grow(a_world(), lambda n: {"title": f"p{n}", "text": "x" * 7_000}, "wiki_write")
    monkeypatch.setattr(worlds, "MOST_FILE", 20_000)
    monkeypatch.setattr(worlds, "MOST_BYTES", 2**30)
    assert "chat/general.md would hold" in grow(a_world(), lambda n: {"channel": "general", "text": "x" * 7_000}, "chat_post")
