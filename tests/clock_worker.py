"""A worker whose database clock a test sets forward, so that hours pass in seconds: started in place of the usual one.

Every time the rows hold is the database's. Here it is the real one plus what stands in a table `test_clock` of the
test's own (`prepare`, `forward`), so all processes on that database share it, whenever they were started.
"""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.compiler import compiles

from orchestrator.store import database
from orchestrator.store.database import Database

_AHEAD = "(SELECT ahead FROM test_clock)"


_REAL = {
    "postgresql": "CAST(extract(epoch from clock_timestamp()) * 1000 AS bigint)",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}


def install() -> None:
    """Puts that clock in place of the database's own, in this process."""
    for dialect, real in _REAL.items():

        def compiled(element: Any, compiler: Any, real: str = real, **_: Any) -> str:
            return f"({real} + {_AHEAD})"

        compiles(database.now_ms, dialect)(compiled)


def prepare(rows: Database) -> None:
    """Makes the clock, at no difference."""
    rows.write(lambda c: c.execute(text("CREATE TABLE test_clock (ahead BIGINT NOT NULL)")))
    rows.write(lambda c: c.execute(text("INSERT INTO test_clock VALUES (0)")))


def forward(rows: Database, ms: int) -> None:
    """Lets time pass. This process's own clock stays the real one."""
    rows.write(lambda c: c.execute(text("UPDATE test_clock SET ahead = ahead + :ms"), {"ms": ms}))


if __name__ == "__main__":
    from workers.commands import child

    install()
    child.main()
