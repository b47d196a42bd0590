"""PostgreSQL databases for one test after the other: copying the migrated one anew takes longer than most tests do."""

from itertools import count

import psycopg

from tests import services

#: What a schema is: its relations (indexes, too) with their columns, and its constraints.
_SCHEMA = """
SELECT md5(string_agg(line, '|' ORDER BY line)) FROM (
    SELECT concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull, a.atthasdef) AS line
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
) AS lines
"""
#: Rows go without triggers and foreign keys looking at each; only what holds any is touched.
_EMPTY = """
DO $$
DECLARE one regclass; holds boolean;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
               AND relname <> 'alembic_version' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one) INTO holds;
        IF holds THEN EXECUTE format('DELETE FROM %s', one); END IF;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
        FROM pg_sequences WHERE last_value IS NOT NULL;
END $$
"""
#: More rows than this leave a file behind whose emptiness is slower to read than a new one is to make.
_MOST_PAGES = 2_000


class Databases:
    """Copies of the migrated database of one server. Each test gets one under a name that no other had, so that what a
    test left running finds nothing under its own."""

    def __init__(self, server: str, migrated: str) -> None:
        self._server, self._migrated = server, migrated
        self._idle: list[str] = []
        self._numbers = count(1)
        with psycopg.connect(self._address("migrated")) as copied:
            self._schema = copied.execute(_SCHEMA).fetchone()

    def take(self) -> str:
        """The URL of an empty, migrated database."""
        name = f"test_{next(self._numbers)}"
        if not self._idle:
            return services.make_database(self._server, name, template=self._migrated)
        with psycopg.connect(self._address("postgres"), autocommit=True) as server:
            server.execute(f"ALTER DATABASE {self._idle.pop()} RENAME TO {name}")  # type: ignore[call-overload]
        return self._url(name)

    def give_back(self, url: str) -> None:
        """Takes the database from whoever still uses it, and keeps it for another test if it can be as it was."""
        services.close_connections(url)
        name = url.partition("?")[0].rpartition("/")[2]
        idle = f"idle_{name}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as server:
            server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")  # type: ignore[call-overload]
            server.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", (name,)
            ).fetchall()
            server.execute(f"ALTER DATABASE {name} RENAME TO {idle}")  # type: ignore[call-overload]
            server.execute(f"ALTER DATABASE {idle} ALLOW_CONNECTIONS true")  # type: ignore[call-overload]
        if self._as_new(idle):
            self._idle.append(idle)
        else:
            services.drop_database(self._server, idle)

    def _as_new(self, name: str) -> bool:
        with psycopg.connect(self._address(name)) as database:
            pages = database.execute(
                "SELECT max(pg_relation_size(oid)) / 8192 FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            ).fetchone()
            if database.execute(_SCHEMA).fetchone() != self._schema or (pages and pages[0] > _MOST_PAGES):
                return False
            database.execute(_EMPTY)
        return True

    def _url(self, name: str) -> str:
        return self._server.replace("/postgres?", f"/{name}?")

    def _address(self, name: str) -> str:
        return self._url(name).replace("+psycopg", "")
