"""What people do with posts and with each other on the feed, in the shapes of Mastodon's API.

Entry points: `feed_boost`, `feed_favourite`, `feed_follow`, `feed_unfollow`, `feed_timeline`, `feed_thread`, `feed_notifications`,
`feed_account`, `feed_search`.
"""

from __future__ import annotations

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.feed import BOOST, COLUMNS, FAVOURITE, MOST_READ, account, at, post_of, status
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool

MOST_DEPTH = 20


@tool(writes=True)
def feed_boost(hand: Hand, id: Line) -> Json:
    """Boost a post, so that those who follow you see it."""
    return _mark(hand, id, BOOST)


@tool(writes=True)
def feed_favourite(hand: Hand, id: Line) -> Json:
    """Mark a post as one that you like."""
    return _mark(hand, id, FAVOURITE)


@tool(writes=True)
def feed_follow(hand: Hand, person: Line) -> Json:
    """Follow somebody on the feed: what they post and boost is in your timeline."""
    other = hand.person(person)
    if other.id == hand.me.id:
        raise ToolRefused("nobody follows oneself")
    hand.rows("INSERT OR IGNORE INTO follows VALUES (?, ?, ?)", hand.me.id, other.id, hand.moment)
    return {"id": other.id, "following": True, "followed_by": _follows(hand, other.id, hand.me.id)}


@tool(writes=True)
def feed_unfollow(hand: Hand, person: Line) -> Json:
    """Follow somebody no longer."""
    known = [id for (id,) in hand.rows("SELECT followed FROM follows WHERE person = ? ORDER BY followed", hand.me.id)]
    other = person if person in known else hand.person(person).id  # also one who has left since
    if other not in known:
        raise ToolRefused(f"you do not follow {person!r}; you follow {', '.join(known) or 'nobody'}")
    hand.rows("DELETE FROM follows WHERE person = ? AND followed = ?", hand.me.id, other)
    return {"id": other, "following": False, "followed_by": _follows(hand, other, hand.me.id)}


@tool(personal=True)
def feed_timeline(hand: Hand) -> Json:
    """Read your timeline: posts by you and those whom you follow, and what these boosted.

    The last 20.
    """
    circle = "(SELECT followed FROM follows WHERE person = ? UNION SELECT ?)"
    query = f"""SELECT {COLUMNS} FROM posts WHERE author IN {circle}
    OR id IN (SELECT post FROM post_marks WHERE kind = '{BOOST}' AND person IN {circle}) ORDER BY at DESC, id LIMIT ?"""
    return {"statuses": _statuses(hand.dicts(query, *(hand.me.id,) * 4, MOST_READ))}


@tool()
def feed_thread(hand: Hand, id: Line) -> Json:
    """Read what a post answers and what answers it (Mastodon's context)."""
    post = post_of(hand, id)
    above: list[dict[str, Json]] = []
    while len(above) < MOST_DEPTH and (above or [post])[-1]["in_reply_to"]:
        above.append(post_of(hand, (above or [post])[-1]["in_reply_to"]))
    query = f"""WITH RECURSIVE below(post, depth) AS (SELECT id, 1 FROM posts WHERE in_reply_to = ? UNION
    SELECT id, depth + 1 FROM posts JOIN below ON in_reply_to = post WHERE depth < {MOST_DEPTH})
    SELECT {COLUMNS} FROM posts WHERE id IN (SELECT post FROM below) ORDER BY at, id LIMIT ?"""
    return {"status": status(post), "ancestors": _statuses(above[::-1]), "descendants": _statuses(hand.dicts(query, id, MOST_READ))}


@tool(personal=True)
def feed_notifications(hand: Hand) -> Json:
    """Read who followed you, and who answered, named, boosted or liked your posts.

    The last 20, the newest first.
    """
    query = f"""SELECT at, kind, person, post FROM (
    SELECT at, CASE kind WHEN '{BOOST}' THEN 'reblog' ELSE kind END AS kind, person, post FROM post_marks
        WHERE post IN (SELECT id FROM posts WHERE author = ?1)
    UNION ALL SELECT at, 'follow', person, NULL FROM follows WHERE followed = ?1
    UNION ALL SELECT at, 'mention', author, id FROM posts WHERE author <> ?1
        AND (in_reply_to IN (SELECT id FROM posts WHERE author = ?1) OR instr(text || ' ', '@' || ?1 || ' '))
    ) WHERE person <> ?1 ORDER BY at DESC, kind, person, post LIMIT ?2"""
    told = [
        {
            "type": one["kind"],
            "created_at": at(one["at"]),
            "account": account(one["person"], hand.name_of(one["person"]), hand.domain),
            "status": status(post_of(hand, one["post"])) if one["post"] else None,
        }
        for one in hand.dicts(query, hand.me.id, MOST_READ)
    ]
    return {"notifications": told}


@tool()
def feed_account(hand: Hand, person: Line) -> Json:
    """Look at somebody's profile on the feed: counts, and the last posts."""
    who = hand.person(person)
    counts = """SELECT (SELECT count(*) FROM posts WHERE author = ?1) AS statuses_count,
    (SELECT count(*) FROM follows WHERE followed = ?1) AS followers_count,
    (SELECT count(*) FROM follows WHERE person = ?1) AS following_count"""
    (counted,) = hand.dicts(counts, who.id)
    posts = hand.dicts(f"SELECT {COLUMNS} FROM posts WHERE author = ? ORDER BY at DESC, id LIMIT 5", who.id)
    return {"account": {**account(who.id, who.name, hand.domain), **counted}, "statuses": _statuses(posts)}


@tool()
def feed_search(hand: Hand, text: Line) -> Json:
    """Find posts by words or a tag such as "#release": up to 20, the newest first."""
    query = f"SELECT {COLUMNS} FROM posts WHERE instr(lower(text), lower(?)) ORDER BY at DESC, id LIMIT ?"
    return {"statuses": _statuses(hand.dicts(query, text, MOST_READ))}


def _mark(hand: Hand, id: str, kind: str) -> Json:
    post_of(hand, id)
    if hand.rows("SELECT 1 FROM post_marks WHERE post = ? AND kind = ? AND person = ?", id, kind, hand.me.id):
        raise ToolRefused(f"the post {id!r} has your {kind} already")
    hand.rows("INSERT INTO post_marks VALUES (?, ?, ?, ?)", id, kind, hand.me.id, hand.moment)
    hand.touch("feed", id)
    post = post_of(hand, id)
    return {"id": id, "reblogs_count": post["boosts"], "favourites_count": post["favourites"]}


def _follows(hand: Hand, person: str, followed: str) -> bool:
    return bool(hand.rows("SELECT 1 FROM follows WHERE person = ? AND followed = ?", person, followed))


def _statuses(posts: list[dict[str, Json]]) -> list[Json]:
    """Statuses without what says nothing of a post, as a listing shows them."""
    kept = ("id", "created_at", "in_reply_to_id", "content", "account", "replies_count", "reblogs_count", "favourites_count", "tags")
    return [{name: value for name, value in status(post).items() if name in kept} for post in posts]
