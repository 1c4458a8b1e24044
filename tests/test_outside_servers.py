"""One mail and one post reach a server once, or are said not to have; whatever the server does, it takes bounded time and memory."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult

from taskweave.errors import BadInput
from taskweave.org.schema import parse
from taskweave.tools.outside import mastodon
from taskweave.tools.outside.leaving import Leaving, Mail, leaving
from taskweave.tools.outside.leaving import Post as FeedPost
from taskweave.tools.outside.servers import Servers, refuse_unready, servers_of
from taskweave.tools.outside.smtp import send
from tests.outside import GREETING, Mastodon, Post, foul_server, mail_server
from tests.tool_world import a_world, call, effect_of

ORGANIZATION = "name: Acme\nroles: {Head: {}, Joiner: {reports_to: Head}}\ntools: on\n"
KEY = "ab" * 32


@pytest.fixture(autouse=True)
def _no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SMTP_USER", "SMTP_PASSWORD", "MASTODON_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def mails(servers: Servers, **given: Any) -> list[Mail]:
    """What of one `mail_send` is to leave."""
    world = a_world()
    effect = effect_of(call(world, "mail_send", **{"subject": "Chairs", "text": "Forty are done.", **given}))
    return [one.what for one in leaving(world, world.land(1, [effect]), servers) if isinstance(one.what, Mail)]


def a_mail(**given: Any) -> Mail:
    (mail,) = mails(Servers(smtp="smtp://127.0.0.1:25"), **{"to": ["ada@example.com", "bo@example.org"], **given})
    return mail


# ------------------------------------------------------------ what leaves
def test_only_what_is_addressed_outside_leaves_and_only_where_a_server_is_named() -> None:
    named = Servers(smtp="smtp://127.0.0.1:25")
    assert mails(Servers(), to=["ada@example.com"]) == []
    assert mails(named, to=["Bo Lindqvist"]) == []
    (mail,) = mails(named, to=["Bo Lindqvist", "ada@example.com"])
    assert (mail.sender, mail.recipients) == ("ines.roux@acme.example", ("ada@example.com",))
    assert "bo.lindqvist@acme.example" in message_from_bytes(mail.data, policy=default)["To"]


def test_a_mail_leaves_as_it_lies_in_the_outbox_with_an_id_that_only_the_same_message_has() -> None:
    world = a_world()
    effect = effect_of(call(world, "mail_send", to=["ada@example.com"], subject="Stühle", text="Größe: 40\n.\n..\nFrom here"))
    (one,) = leaving(world, world.land(1, [effect]), Servers(smtp="smtp://127.0.0.1:25"))
    ((kept,),) = world.rows("SELECT message FROM mails")
    there, here = message_from_bytes(one.what.data, policy=default), message_from_bytes(kept, policy=default)  # type: ignore[union-attr]
    for name in ("From", "To", "Subject", "Date"):
        assert there[name] == here[name]
    number, _, domain = here["Message-ID"].partition("@")
    assert there["Message-ID"] == f"{number}.{hashlib.sha256(kept).hexdigest()[:16]}@{domain}"
    texts = [message.get_content().replace("\r\n", "\n") for message in (there, here)]
    assert texts == ["Größe: 40\n.\n..\nFrom here\n"] * 2
    assert one.what.data.isascii()  # type: ignore[union-attr]


def test_from_domain_stands_for_the_organizations_own_in_every_address_and_id_of_its_own() -> None:
    (mail,) = mails(Servers(smtp="smtp://127.0.0.1:25", from_domain="acme.test"), to=["Bo Lindqvist", "ada@example.com"])
    message = message_from_bytes(mail.data, policy=default)
    assert mail.sender == "ines.roux@acme.test"
    assert message["From"] == "Ines Roux <ines.roux@acme.test>"
    assert message["To"] == "Bo Lindqvist <bo.lindqvist@acme.test>, ada@example.com"
    assert message["Message-ID"].endswith("@acme.test>")
    assert "acme.example" not in mail.data.decode()


def test_mail_goes_to_the_domains_that_the_organization_allows_and_to_no_other() -> None:
    servers = Servers(smtp="smtp://127.0.0.1:25", to=("example.com",))
    (mail,) = mails(servers, to=["ada@example.com", "bo@example.org", "c@sub.example.com"])
    assert (mail.recipients, mail.kept) == (("ada@example.com",), ("bo@example.org", "c@sub.example.com"))


@pytest.mark.parametrize(
    "to", ["a@example.com\r\nRCPT TO:<b@example.com>", "a@example.com\nBcc: b@example.com", "<a@example.com>\r\nDATA", "a@b@example.com"]
)
def test_an_address_that_would_say_more_to_the_server_than_an_address_is_refused(to: str) -> None:
    assert not call(a_world(), "mail_send", to=[to], subject="x", text="y").ok


@pytest.mark.parametrize("subject", ["Hello\r\nReply-To: boss@example.com", "Hello\nBcc: all@example.com"])
def test_a_subject_that_would_add_a_header_is_refused(subject: str) -> None:
    assert not call(a_world(), "mail_send", to=["a@example.com"], subject=subject, text="y").ok


def test_what_looks_like_a_header_or_an_end_in_a_text_stays_text() -> None:
    text = "Reply-To: boss@example.com\n\n.\nMAIL FROM:<x@example.com>\n.\n"
    post = Post()
    with mail_server(post) as url:
        assert send(a_mail(text=text), url)["sent"] == ["ada@example.com", "bo@example.org"]
    (envelope,) = post.received
    assert isinstance(envelope.content, bytes)
    message = message_from_bytes(envelope.content, policy=default)
    assert message["Reply-To"] is None
    assert message.get_content().replace("\r\n", "\n") == text.strip() + "\n"


def test_a_reply_names_the_mail_it_answers_as_the_server_knows_it() -> None:
    world, named = a_world(), Servers(smtp="smtp://127.0.0.1:25", from_domain="acme.test")
    effects = [
        effect_of(call(world, "mail_send", to=["ada@example.com"], subject=subject, text="x")) for subject in ("Chairs", "Re: Chairs")
    ]
    landings = world.land(1, effects)
    ids = [
        str(message_from_bytes(data, policy=default)["Message-ID"]) for (data,) in world.rows("SELECT message FROM mails ORDER BY subject")
    ]
    reply = f"In-Reply-To: {ids[0]}\r\nReferences: <other@example.com> {ids[0]}\r\n".encode()
    world.rows("UPDATE mails SET message = CAST(? || message AS BLOB) WHERE subject = 'Re: Chairs'", reply.decode())
    first, second = (message_from_bytes(one.what.data, policy=default) for one in leaving(world, landings, named))  # type: ignore[union-attr]
    assert second["In-Reply-To"] == first["Message-ID"]
    assert second["References"] == f"<other@example.com> {first['Message-ID']}"
    assert first["Message-ID"].endswith("@acme.test>")


# ------------------------------------------------------------ SMTP
def test_a_server_takes_one_message_for_all_recipients() -> None:
    post = Post()
    with mail_server(post) as url:
        assert send(a_mail(), url) == {"sent": ["ada@example.com", "bo@example.org"]}
    (envelope,) = post.received
    assert (envelope.mail_from, envelope.rcpt_tos) == ("ines.roux@acme.example", ["ada@example.com", "bo@example.org"])


def test_a_recipient_that_the_server_does_not_take_is_said_and_the_others_get_theirs() -> None:
    post = Post({"ada@example.com": "550 no such user"})
    with mail_server(post) as url:
        assert send(a_mail(), url) == {"sent": ["bo@example.org"], "refused_for": {"ada@example.com": "550 no such user"}}
    assert post.received[0].rcpt_tos == ["bo@example.org"]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"ada@example.com": "550 no such user", "bo@example.org": "550 nor this one"}, "ada@example.com: 550 no such user; bo@"),
        ({"ada@example.com": "421 too busy"}, "421 too busy"),
        ({"data": "550 looks like spam"}, "550 looks like spam"),
        ({"data": "451 come back later"}, "451 come back later"),
    ],
)
def test_what_a_server_refuses_is_refused_with_its_reason(answers: dict[str, str], why: str) -> None:
    post = Post(answers)
    with mail_server(post) as url:
        assert send(a_mail(), url)["refused"].startswith(why)
    assert post.received == []


def test_no_server_at_all_is_a_refusal_since_nothing_was_sent() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    assert "no connection" in send(a_mail(), f"smtp://127.0.0.1:{port}")["refused"]


def _hangs(connection: Any, closing: threading.Event) -> None:
    closing.wait()


def _closes(connection: Any, closing: threading.Event) -> None:
    connection.sendall(GREETING)


def _is_busy(connection: Any, closing: threading.Event) -> None:
    connection.sendall(b"421 too busy\r\n")


def _shouts(connection: Any, closing: threading.Event) -> None:
    connection.sendall(b"220 " + b"x" * 10_000_000 + b"\r\n")


def _talks(connection: Any, closing: threading.Event) -> None:
    while not closing.is_set():
        connection.sendall(b"220-and another thing\r\n" * 1000)


def _drips(connection: Any, closing: threading.Event) -> None:
    while not closing.wait(0.05):
        connection.sendall(b"2")


def _mumbles(connection: Any, closing: threading.Event) -> None:
    connection.sendall(b"\xff\xfe\x1b[31m\r\n")


@pytest.mark.parametrize("talk", [_hangs, _closes, _is_busy, _shouts, _talks, _drips, _mumbles])
def test_a_server_that_goes_wrong_before_the_message_has_refused_it_within_bounds(talk: Any) -> None:
    with foul_server(talk) as (host, heard):
        outcome = send(a_mail(), f"smtp://{host}", silence=0.5, altogether=1.0)
    assert set(outcome) == {"refused"}
    assert len(outcome["refused"]) <= 200
    assert outcome["refused"].isprintable()
    assert b"DATA" not in heard[0].upper()


def _until_the_end(then: Any) -> Any:
    """A server that takes everything up to the last line of the message, and then does `then`."""

    def talk(connection: Any, closing: threading.Event) -> None:
        connection.sendall(GREETING)
        seen = b""
        while True:
            seen += connection.recv(65_536)
            if b"\r\n.\r\n" in seen:
                break
            while b"\r\n" in seen and not seen.upper().startswith((b"FROM", b"TO:", b"SUBJECT")):
                line, _, seen = seen.partition(b"\r\n")
                if line.upper() == b"DATA":
                    connection.sendall(b"354 go on\r\n")
                    break
                connection.sendall(b"250 fine\r\n")
        then(connection, closing)

    return talk


@pytest.mark.parametrize("then", [_hangs, lambda connection, closing: None, _shouts, _talks, _drips])
def test_silence_after_the_whole_message_leaves_open_whether_it_was_taken(then: Any) -> None:
    with foul_server(_until_the_end(then)) as (host, heard), pytest.raises(OSError, match="the mail was sent, and then"):
        send(a_mail(), f"smtp://{host}", silence=0.5, altogether=1.0)
    assert b"Forty are done." in heard[0]


def test_user_and_password_come_from_the_environment_and_are_in_nothing_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_USER", "acme-user")
    monkeypatch.setenv("SMTP_PASSWORD", "a-secret-of-ours")
    tried: list[Any] = []

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        tried.append((given.login, given.password))
        return AuthResult(
            success=len(tried) == 1, handled=False, message=None if len(tried) == 1 else "535 not a-secret-of-ours, acme-user"
        )

    more = {"authenticator": authenticate, "auth_require_tls": False}
    post = Post()
    with mail_server(post, **more) as url:
        assert "sent" in send(a_mail(), url)
        refused = send(a_mail(), url)
    assert tried[0] == (b"acme-user", b"a-secret-of-ours")
    assert "secret" not in str(refused)
    assert len(post.received) == 1


def test_a_password_goes_over_tls_or_to_this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_USER", "acme-user")
    monkeypatch.setenv("SMTP_PASSWORD", "a-secret-of-ours")
    monkeypatch.setattr("taskweave.tools.outside.smtp.local", lambda url: False)
    post = Post()
    with mail_server(post) as url:
        assert "not sent without it" in send(a_mail(), url)["refused"]
    assert post.received == []


# ------------------------------------------------------------ Mastodon
A_POST = FeedPost(id="17", text="Forty chairs & more: ästhetisch!", in_reply_to=None)


def test_a_post_is_published_once_under_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with Mastodon() as server:
        monkeypatch.setenv("MASTODON_TOKEN", server.token)
        outcome = mastodon.publish(A_POST, server.url, KEY)
        again = mastodon.publish(A_POST, server.url, KEY, reply_to="5")
    assert outcome == again
    assert outcome["sent"]["id"] == server.statuses[KEY]["id"]
    assert [status["text"] for status in server.statuses.values()] == [A_POST.text]
    assert server.headers[0]["idempotency-key"] == KEY


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (422, "422 Validation failed: Text can't be blank"),
        (429, "429 Too many requests (takes more after 300)"),
        (403, "403 trouble 403"),
        ("redirect", "308: the server sends elsewhere, and nothing is sent there"),
    ],
)
def test_what_mastodon_refuses_is_refused_with_its_reason(fault: int | str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Mastodon(faults=(fault,)) as server:
        monkeypatch.setenv("MASTODON_TOKEN", server.token)
        assert mastodon.publish(A_POST, server.url, KEY) == {"refused": why}
    assert server.statuses == {}
    assert len(server.headers) == 1


def test_a_token_that_is_wrong_is_refused_and_stands_in_nothing_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTODON_TOKEN", "another-token-altogether")
    with Mastodon() as server:
        (why,) = mastodon.publish(A_POST, server.url, KEY).values()
    assert why.startswith("401 The access token is invalid")
    assert "altogether" not in why
    assert server.headers[0]["authorization"] == "Bearer another-token-altogether", "the server did get it"


@pytest.mark.parametrize("fault", [500, 503, "hang", "drip", "made", "garbage"])
def test_an_answer_that_says_nothing_leaves_open_whether_it_was_published(fault: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Mastodon(faults=(fault,)) as server:
        monkeypatch.setenv("MASTODON_TOKEN", server.token)
        with pytest.raises(OSError, match="the server answered|the post was sent, and then"):
            mastodon.publish(A_POST, server.url, KEY, silence=0.5, altogether=1.0)
        assert len(server.headers) == 1, "it is not asked twice"


def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Mastodon() as server:
        monkeypatch.setenv("MASTODON_TOKEN", server.token)
        assert "sent" in mastodon.publish(A_POST, server.url, KEY)


@pytest.mark.parametrize("token", ["", "two words", "a\r\nX-Evil: 1", "tökén"])
def test_a_token_that_is_none_is_not_sent(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Mastodon() as server:
        monkeypatch.setenv("MASTODON_TOKEN", token)
        assert mastodon.publish(A_POST, server.url, KEY) == {"refused": "MASTODON_TOKEN holds no token"}
    assert server.headers == []


# ------------------------------------------------------------ which servers
def test_the_organization_file_names_servers_and_the_command_line_goes_before_it() -> None:
    org = parse(
        ORGANIZATION + "mail: {smtp: smtp://mail.example.com, from_domain: acme.example.com, to: example.org}\nfeed: https://a.example", "o"
    )
    own = servers_of(org)
    assert own == Servers(
        smtp="smtp://mail.example.com:25", mastodon="https://a.example:443", from_domain="acme.example.com", to=("example.org",)
    )
    assert servers_of(org, smtp="smtps://other.example", mastodon="off").smtp == "smtps://other.example:465"
    assert servers_of(org, mastodon="OFF").mastodon is None
    assert not servers_of(parse(ORGANIZATION, "o")), "nothing leaves the machine unless a server is named"


def test_an_organization_whose_tools_are_off_reaches_nothing() -> None:
    off = parse("name: Acme\nroles: {Head: {}}\nmail: smtp://127.0.0.1:2525\n", "o")
    assert not servers_of(off)
    with pytest.raises(BadInput, match="--smtp: Acme sends nothing, its tools are off"):
        servers_of(off, smtp="smtp://127.0.0.1:2525")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("smtp://user:hunter2@mail.example.com", "no user and no password"),
        ("http://mail.example.com", "no server's address"),
        ("smtp://mail.example.com/inbox", "goes on after the host"),
        ("smtp://mail.example.com:99999", "no server's address"),
        ("smtp://mail_example", "no server's address"),
        ("smtp://mail.example.com\r\nDATA", "no server's address"),
        ("mail.example.com", "no server's address"),
    ],
)
def test_what_is_no_mail_servers_address_is_refused_without_repeating_a_password(url: str, why: str) -> None:
    with pytest.raises(BadInput, match=why) as refused:
        servers_of(parse(ORGANIZATION, "o"), smtp=url)
    assert "hunter2" not in str(refused.value)


def test_a_social_server_is_asked_over_tls_or_on_this_machine() -> None:
    org = parse(ORGANIZATION, "o")
    with pytest.raises(BadInput, match="everybody on the way can read"):
        servers_of(org, mastodon="http://social.example.com")
    assert servers_of(org, mastodon="http://[::1]:3000").mastodon == "http://[::1]:3000"


def test_a_wrong_address_in_the_organization_file_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"o:4: mail\.smtp: 'ftp://x' is no server's address"):
        parse(ORGANIZATION + "mail: {smtp: 'ftp://x'}\n", "o")


def test_what_is_missing_in_the_environment_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="MASTODON_TOKEN is not set"):
        refuse_unready(Servers(mastodon="http://127.0.0.1:3000"))
    monkeypatch.setenv("SMTP_USER", "only")
    with pytest.raises(BadInput, match="belong together"):
        refuse_unready(Servers(smtp="smtp://127.0.0.1:2525"))
    monkeypatch.setenv("SMTP_PASSWORD", "both")
    refuse_unready(Servers(smtp="smtp://127.0.0.1:2525"))


def test_what_leaves_knows_whose_call_it_was() -> None:
    world = a_world()
    effect = effect_of(call(world, "feed_post", text="Forty chairs", in_reply_to="", key="y/t1/s1:tool#1"))
    (one,) = leaving(world, world.land(1, [effect]), Servers(mastodon="http://127.0.0.1:3000"))
    assert isinstance(one, Leaving)
    assert (one.call, one.agent, one.what.question()["text"]) == ("y/t1/s1:tool#1", "backend-engineer", "Forty chairs")  # type: ignore[call-overload, index]


# ------------------------------------------------------------ TLS
CERTIFICATE = Path(__file__).parent / "tls" / "loopback.pem"  # of this machine, signed by itself; the key beside it guards nothing


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.mark.parametrize("trusted", [True, False])
def test_a_mail_server_over_tls_is_trusted_only_with_a_certificate_that_can_be_checked(
    trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    post = Post()
    with mail_server(post, ssl_context=_tls()) as url:
        outcome = send(a_mail(), url.replace("smtp:", "smtps:"))
    assert ("sent" in outcome, len(post.received)) == (trusted, int(trusted))
    assert trusted or "CERTIFICATE_VERIFY_FAILED" in outcome["refused"]


@pytest.mark.parametrize("trusted", [True, False])
def test_elsewhere_a_server_that_offers_tls_is_spoken_to_by_it_and_is_checked(trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskweave.tools.outside.smtp.local", lambda url: False)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    post = Post()
    with mail_server(post, tls_context=_tls(), require_starttls=True) as url:
        outcome = send(a_mail(), url)
    assert ("sent" in outcome, len(post.received)) == (trusted, int(trusted))
    assert trusted or "CERTIFICATE_VERIFY_FAILED" in outcome["refused"]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_social_server_gets_the_token_only_with_a_certificate_that_can_be_checked(trusted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Mastodon(tls=_tls()) as server:
        monkeypatch.setenv("MASTODON_TOKEN", server.token)
        outcome = mastodon.publish(A_POST, server.url, KEY)
    assert ("sent" in outcome, len(server.headers)) == (trusted, int(trusted))
    assert trusted or "CERTIFICATE_VERIFY_FAILED" in outcome["refused"]
