"""Full text on both databases: an FTS5 table on SQLite, a `tsvector` column with a GIN index on PostgreSQL.

Both are given words that we part ourselves, so that texts of every script are found alike, and both are asked for words
in quotes: nothing a query holds is ever read as syntax. Each text carries a mark of whose it is as one more word: the
index then finds one's own at once, however much others keep.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Table, Text, TypeDecorator, bindparam, event, text

from registry.words import words

#: Characters of a word that count, and words of a query.
MAX_CHARS: Final = 64
MAX_WORDS: Final = 64
#: Passages the index gives for a question, to be ranked anew.
CANDIDATES: Final = 100


class Terms(TypeDecorator[Any]):
    """The words of a text in order, as the index of the database wants them; written, never read."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Any) -> Any:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(Text())
        from sqlalchemy.dialects.postgresql import TSVECTOR

        return dialect.type_descriptor(TSVECTOR())

    def process_bind_param(self, value: Sequence[str] | None, dialect: Any) -> str | None:
        if value is None or dialect.name != "postgresql":
            return None if value is None else " ".join(value)
        places: dict[str, list[str]] = {}
        for place, word in enumerate(value, start=1):
            places.setdefault(word, []).append(str(min(place, 16_383)))
        return " ".join(f"'{word}':{','.join(at[:255])}" for word, at in places.items())


def parted(content: str) -> list[str]:
    """The words of a text as they are indexed: letters, digits and marks only."""
    return [word[:MAX_CHARS] for word in words(content)]


def sought(query: str) -> list[str]:
    """The words of a question, each once: the first of them, where it has very many."""
    return list(dict.fromkeys(parted(query)))[:MAX_WORDS]


def mark(space: str) -> str:
    """The word every text of a space carries."""
    return f"s{space}"


def find(
    connection: Connection, spaces: Iterable[str], wanted: Sequence[str], *, thread_id: str | None = None
) -> list[Row[Any]]:
    """Passages of these spaces that have one of the words, those first that fit best by the database's own measure.

    Args:
        spaces: digests.
        wanted: as `sought` gives them.
    """
    mine = sorted(spaces)
    if not mine or not wanted:
        return []
    sqlite = connection.dialect.name == "sqlite"
    statement = _SQLITE if sqlite else _POSTGRES
    quote, also, either = ('"', " AND ", " OR ") if sqlite else ("'", " & ", " | ")
    whose = either.join(f"{quote}{mark(space)}{quote}" for space in mine)
    what = either.join(f"{quote}{word}{quote}" for word in wanted)
    given = {"query": f"({whose}){also}({what})", "spaces": mine, "thread": thread_id, "most": CANDIDATES}
    return list(connection.execute(statement, given))


_COLUMNS: Final = "p.number, p.source_id, p.run_id, p.thread_id, p.position, p.text, p.at"
_MINE: Final = "p.space IN :spaces AND (CAST(:thread AS TEXT) IS NULL OR p.thread_id = :thread)"
_SQLITE: Final = text(
    f"SELECT {_COLUMNS} FROM passages_fts f JOIN passages p ON p.number = f.rowid"
    f" WHERE passages_fts MATCH :query AND {_MINE} ORDER BY f.rank, p.number DESC LIMIT :most"
).bindparams(bindparam("spaces", expanding=True))
_POSTGRES: Final = text(
    f"SELECT {_COLUMNS} FROM passages p WHERE p.terms @@ CAST(:query AS tsquery) AND {_MINE}"
    " ORDER BY ts_rank(p.terms, CAST(:query AS tsquery)) DESC, p.number DESC LIMIT :most"
).bindparams(bindparam("spaces", expanding=True))

#: What makes the index beside the table, and on SQLite keeps it with the table. Its words are those we part: no accents
#: are taken off.
SQLITE: Final = (
    """
    CREATE VIRTUAL TABLE passages_fts USING fts5(
      terms, content='passages', content_rowid='number',
      tokenize="unicode61 remove_diacritics 0 categories 'L* N* M*'"
    )
    """,
    """
    CREATE TRIGGER passages_fts_new AFTER INSERT ON passages BEGIN
      INSERT INTO passages_fts(rowid, terms) VALUES (new.number, new.terms);
    END
    """,
    """
    CREATE TRIGGER passages_fts_gone AFTER DELETE ON passages BEGIN
      INSERT INTO passages_fts(passages_fts, rowid, terms) VALUES ('delete', old.number, old.terms);
    END
    """,
)
POSTGRES: Final = ("CREATE INDEX ix_passages_terms ON passages USING gin (terms)",)


def statements(dialect: str) -> Sequence[str]:
    """What makes the index beside the table of passages."""
    return SQLITE if dialect == "sqlite" else POSTGRES


def index(table: Table) -> None:
    """Gives the table of passages its index when it is made. No column of ours says so: each database has its own."""

    @event.listens_for(table, "after_create")
    def _after(_made: Table, connection: Connection, **_: Any) -> None:
        for statement in statements(connection.dialect.name):
            connection.exec_driver_sql(statement)


def is_part(name: str | None) -> bool:
    """Whether a table or an index of the database is a part of this one."""
    return name is not None and (name.startswith("passages_fts") or name == "ix_passages_terms")
