"""Who may come in over HTTP: keys for programs, sessions for people, one-time codes that a session is made of.

All three are 32 random bytes, so one fast keyed hash of them is stored and nothing else; the text is shown once. The
hash is keyed with this installation's secret, so that a copy of the table alone recognises nobody.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from orchestrator.settings import Settings
from orchestrator.store import access, audit
from orchestrator.store.database import get_database, shares_key
from registry.base import Json
from registry.errors import Fault, Refused, WrongUse
from registry.ids import new_id

#: What a key may be allowed; a person's session may do all of it, and is the only one that approves.
SCOPES: Final[dict[str, str]] = {
    "read": "look at everything its owner has",
    "write": "submit, cancel, retry and fork; save and delete agents, schedules, generators and memories",
    "answer": "answer questions and dismiss notices; never decisions, which are a person's",
    "invoke": "call skills as an agent does",
    "connections": "store and remove connections",
    "admin": "read the audit log",
}
#: What a key may do when nothing else is said.
USUAL: Final = ("read", "write", "answer", "invoke")

KEY, SESSION, CODE = "ofk_", "ofs_", "ofc_"
#: Milliseconds a one-time code waits to be used.
CODE_LIFE_MS: Final = 10 * 60_000
MAX_KEYS: Final = 100
#: The last moment a key may expire at: the end of the year 9999.
LAST_MS: Final = 253_402_300_799_999


@dataclass(frozen=True)
class Who:
    """Whoever a request comes from."""

    owner_id: str
    #: A session: a person's own act, which may approve; else a program with a key.
    person: bool
    scopes: frozenset[str]
    #: For the record: who did it.
    name: str
    #: Unix milliseconds from when on key or session are of no use; None: until they are taken away.
    until: int | None = None
    #: The row of the key or session; None: the token of the settings, which nobody can take away meanwhile.
    pass_id: str | None = None


def add(
    settings: Settings,
    name: str,
    scopes: list[str] | None = None,
    *,
    owner: str | None = None,
    expires_at: int | None = None,
) -> tuple[Json, str]:
    """Makes a key; gives how it looks in lists, and its text, which nobody sees again.

    Args:
        expires_at: Unix milliseconds from when on it is of no use; None: until it is revoked.

    Raises:
        WrongUse: an unknown scope, an unusable name, or an expiry that is no time to come.
        Refused: `quota`.
    """
    chosen = list(dict.fromkeys(scopes if scopes is not None else USUAL))
    faults = [
        Fault("scopes", "unknown_scope", f"{scope[:40]!r} is no scope; there are {', '.join(SCOPES)}")
        for scope in chosen
        if scope not in SCOPES
    ]
    if not name.strip() or len(name) > 80 or not name.isprintable():
        faults.append(Fault("name", "invalid_name", "a name is one line of 1 to 80 characters"))
    if not chosen:
        faults.append(Fault("scopes", "required", f"name one of {', '.join(SCOPES)} at least"))
    if expires_at is not None and not time.time() * 1000 < expires_at <= LAST_MS:
        faults.append(Fault("expiresAt", "invalid_expiry", "a key expires at a time to come, before the year 10000"))
    if faults:
        raise WrongUse(str(faults[0]), faults=faults)
    owner_id, text, id_ = owner or settings.owner, _text(KEY), new_id()
    row = {
        "id": id_,
        "owner_id": owner_id,
        "name": name.strip(),
        "digest": _digests(settings, text)[0],
        "scopes": chosen,
        "expires_at": expires_at,
    }

    said: dict[str, Json] = {"name": name.strip(), "scopes": chosen} | (
        {"expiresAt": expires_at} if expires_at is not None else {}
    )

    def write(connection: Any) -> Row[Any]:
        if access.in_force(connection, owner_id) >= MAX_KEYS:
            raise Refused(f"{MAX_KEYS} keys are in force already; revoke one first", code="quota")
        access.create_key(connection, row)
        audit.record(connection, owner_id, settings.by, "key.made", id_, **said)
        return next(one for one in access.keys_of(connection, owner_id) if one.id == id_)

    return view(get_database(settings).write(write)), text


def listed(settings: Settings, owner_id: str) -> list[Json]:
    """The owner's keys, without their texts."""
    with get_database(settings).read() as connection:
        return [view(row) for row in access.keys_of(connection, owner_id)]


def revoke(settings: Settings, owner_id: str, key_id: str) -> None:
    """A key is of no use from now on.

    Raises:
        Refused: `unknown_key`.
    """

    def write(connection: Connection) -> bool:
        done = access.revoke(connection, owner_id, key_id)
        if done:
            audit.record(connection, owner_id, settings.by, "key.revoked", key_id)
        return done

    if not get_database(settings).write(write):
        raise Refused(f"you have no key {key_id[:60]!r} in force", code="unknown_key")


def view(row: Row[Any]) -> dict[str, Json]:
    return {
        "id": row.id,
        "name": row.name,
        "scopes": row.scopes,
        "createdAt": row.created_at,
        "lastUsedAt": row.last_used_at,
        "revokedAt": row.revoked_at,
        "expiresAt": row.expires_at,
    }


def identify(settings: Settings, text: str) -> Who | None:
    """Whose key or session this is; None: nobody's.

    Raises:
        Refused: `key_expired`: it was a key once. Who knows its text may know that.
    """
    token = settings.api_token.get_secret_value() if settings.api_token else None
    if token is not None and hmac.compare_digest(token.encode(), text.encode("utf-8", "surrogatepass")):
        return Who(settings.owner, person=False, scopes=frozenset(SCOPES), name="OFFICINA_API_TOKEN")
    if not text.startswith((KEY, SESSION)) or len(text) > 100:
        return None
    database, digests = get_database(settings), _digests(settings, text)
    with database.read() as connection:
        if text.startswith(SESSION):
            found = access.session_by_digest(connection, digests)
            return found and _person(found.owner_id, found.id, found.expires_at)
        found = access.key_by_digest(connection, digests)
    if found is None:
        return None
    if found.expired:
        when = datetime.fromtimestamp(found.expires_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = f"this key expired at {when} UTC; `officina keys add` makes another"
        raise Refused(words, code="key_expired")
    if found.unnoted:
        database.write(lambda c: access.note_use(c, found.id))
    name, scopes = f"key {found.name}", frozenset(found.scopes)
    return Who(found.owner_id, person=False, scopes=scopes, name=name, until=found.expires_at, pass_id=found.id)


def _person(owner_id: str, session_id: str, until: int | None) -> Who:
    return Who(owner_id, person=True, scopes=frozenset(SCOPES), name=owner_id, until=until, pass_id=session_id)


def make_code(settings: Settings, owner: str | None = None) -> str:
    """A one-time code: whoever shows it first, within ten minutes, gets a session of the owner."""
    text = _text(CODE)
    row = {"id": new_id(), "owner_id": owner or settings.owner, "kind": "code", "digest": _digests(settings, text)[0]}
    get_database(settings).write(lambda c: access.open_session(c, row, CODE_LIFE_MS))
    return text


def redeem(settings: Settings, code: str) -> tuple[str, Who]:
    """A session for a one-time code: its token, and whose it is.

    Raises:
        Refused: `unknown_code`: it was used, is too old, or never was.
    """
    text, life_ms = _text(SESSION), round(settings.api.session_hours * 3_600_000)
    row = {"id": new_id(), "kind": "session", "digest": _digests(settings, text)[0]}

    def write(connection: Any) -> str | None:
        owner_id = access.redeem(connection, _digests(settings, code))
        if owner_id is not None:
            access.open_session(connection, row | {"owner_id": owner_id}, life_ms)
            audit.record(connection, owner_id, owner_id, "session.opened", row["id"])
        return owner_id

    owner_id = get_database(settings).write(write) if code.startswith(CODE) and len(code) <= 100 else None
    if owner_id is None:
        words = "that code is of no use (any more): each works once, for ten minutes; `officina keys code` makes one"
        raise Refused(words, code="unknown_code")
    return text, _person(owner_id, row["id"], None)


def end(settings: Settings, token: str) -> None:
    """Ends a session."""

    def write(connection: Connection) -> None:
        for session_id, owner_id in access.close_session(connection, _digests(settings, token)):
            audit.record(connection, owner_id, owner_id, "session.closed", session_id)

    get_database(settings).write(write)


def _text(kind: str) -> str:
    return kind + secrets.token_urlsafe(32)


def _digests(settings: Settings, text: str) -> list[str]:
    """The digest of a text under each key of this installation; the first is the one to store.

    Processes that do not share a key (a database for several machines, none set) hash under a constant: the text's 32
    random bytes need no more.
    """
    given = settings.secret_key.get_secret_value() if settings.secret_key else ""
    keys = [part.encode() for part in (one.strip() for one in given.split(",")) if part]
    if not keys and shares_key(settings):
        from orchestrator.vault import home_key

        keys = [home_key(settings).encode()]
    return [
        hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), key=key[:64], person=b"officina access", digest_size=32
        ).hexdigest()
        for key in [*keys, b"no key of its own"]
    ]
