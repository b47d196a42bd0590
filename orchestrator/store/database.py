"""The database: one engine per process, transactions that retry as a whole, and the database's own clock.

SQLite (WAL, immediate write transactions, writers of one process queue here instead of polling the busy handler) and
Postgres run through the same code, and so does an SQLite that is in memory only (`memory.py`). Engines are made on
first use, never at import, and a forked child makes its own.
"""

import math
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, BigInteger, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidatePoolError, OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

from orchestrator.settings import Settings
from orchestrator.store import columns
from orchestrator.store.routing import ROUTES, Routes
from registry.errors import Unavailable

if TYPE_CHECKING:
    from orchestrator.vault import Vault

T = TypeVar("T")

#: Seconds a write waits for another process's transaction on the same SQLite file.
SQLITE_BUSY_S = 10
#: Connections a process holds at most; none is held during a model or tool call.
POOL_SIZE = 10
#: The same of a SQLite file, where one writes at a time: each keeps pages and prepared statements of its own.
SQLITE_POOL_SIZE = 6
#: KiB of pages such a connection keeps; the system keeps the file's pages as well.
SQLITE_CACHE_KIB = 256
#: Seconds a connection may lie idle before it is tried out at its next use.
IDLE_S = 1.0
RETRIES = 6
#: Postgres: serialization failure, deadlock, connection lost in various ways.
RETRYABLE = frozenset({"40001", "40P01", "57P01", "57P02", "57P03", "08006", "08003", "08001"})
#: Where an engine's dialect names the SQL function that is its clock; most have none and ask the database.
CLOCK = "officina_clock"


class now_ms(FunctionElement[int]):  # noqa: N801 - reads as the SQL function it is
    """Epoch milliseconds on the database's clock; it moves within a transaction."""

    type = BigInteger()
    inherit_cache = True
    name = "now_ms"


@compiles(now_ms, "postgresql")
def _now_postgres(element: Any, compiler: Any, **_: Any) -> str:
    return "CAST(extract(epoch from clock_timestamp()) * 1000 AS bigint)"


@compiles(now_ms, "sqlite")
def _now_sqlite(element: Any, compiler: Any, **_: Any) -> str:
    own: str | None = getattr(compiler.dialect, CLOCK, None)
    if own is not None:
        return f"{own}()"
    # unixepoch('subsec') needs SQLite 3.42; julianday is there everywhere and exact to the millisecond.
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


#: PostgreSQL 17, as its clients number it.
WITH_TRANSACTION_TIMEOUT = 170_000


class Database:
    """Transactions over one engine."""

    #: Whether it is gone with its process; its schema is then made with it.
    in_memory = False

    def __init__(self, url: str, *, idle_s: float = 30, silent_s: float = 15) -> None:
        """
        Args:
            url: as SQLAlchemy reads it.
            silent_s: seconds after which a connection to PostgreSQL is given up whose other side does not answer on the
                network; 0: when the system says so.
            idle_s: seconds after which PostgreSQL ends a transaction: its process is frozen or cut off, and others wait
                for the rows it has locked. Before PostgreSQL 17 only one in which nothing happens ends.
        """
        self.url = make_url(url)
        self._idle_ms = max(1_000, round(idle_s * 1000))
        self._silent_s = silent_s
        self.sqlite = self.url.get_backend_name() == "sqlite"
        #: What closes values that hold a secret; None: they are written as they are.
        self.seal: columns.Seal | None = None
        #: Which queue a run's wake-ups go to.
        self.routes = Routes()
        self._engine: Engine | None = None
        self._pid = 0
        self._make = threading.Lock()
        self._writers = threading.RLock()

    @property
    def engine(self) -> Engine:
        if self._engine is None or self._pid != os.getpid():
            with self._make:
                if self._engine is not None and self._pid != os.getpid():
                    self._engine.dispose(close=False)  # the parent's connections: ours to forget, not to close
                    self._engine = None
                if self._engine is None:
                    self._engine, self._pid = self._create(), os.getpid()
                    setattr(self._engine.dialect, columns.SEAL, self.seal)
                    self._engine.update_execution_options(**{ROUTES: self.routes})
                    self._writers = threading.RLock()
        return self._engine

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that only looks. On SQLite it sees the rows of one moment; on Postgres each statement sees what
        is committed when it begins, as it would in a transaction there, which is therefore spared.

        Raises:
            Unavailable: the database does not answer.
        """
        try:
            with self.engine.connect() as connection:
                if self.sqlite:
                    with connection.begin():
                        yield connection
                    return
                # As SQLAlchemy's isolation level AUTOCOMMIT does it, for a third of its time.
                driver: Any = connection.connection.driver_connection
                driver.autocommit = True
                try:
                    yield connection
                finally:
                    if not driver.closed:
                        driver.autocommit = False
        except DBAPIError as error:
            if _passing(error):
                raise Unavailable(f"the database does not answer: {error.orig}") from error
            raise

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in one transaction and commits; on a deadlock or a lost connection runs all of it again.

        `work` must be repeatable: it reads what it needs itself and has no effect outside the database.
        """
        for attempt in range(RETRIES):
            try:
                return self._write(work)
            except DBAPIError as error:
                if not _passing(error):
                    raise
                if attempt == RETRIES - 1:
                    raise Unavailable(f"the database does not answer: {error.orig}") from error
                time.sleep(random.uniform(0, 0.02 * 2**attempt))
        raise AssertionError("unreachable")

    def _write(self, work: Callable[[Connection], T]) -> T:
        engine = self.engine
        if not self.sqlite:
            with engine.begin() as connection:
                return work(connection)
        with self._writers, engine.connect().execution_options(officina_write=True) as connection, connection.begin():
            return work(connection)

    def dispose(self) -> None:
        """Closes every connection; the next use opens new ones."""
        if self._engine is not None:
            self._engine.dispose()

    def _create(self) -> Engine:
        if self.sqlite:
            Path(self.url.database or "").parent.mkdir(parents=True, exist_ok=True)
            return sqlite_engine(self.url, pool_size=SQLITE_POOL_SIZE, max_overflow=0, pool_use_lifo=True)
        return _postgres_engine(self.url, self._idle_ms, self._silent_s)


def liveness(silent_s: float) -> dict[str, int]:
    """libpq's options by which a connection ends that the network has cut, in so many seconds; 0: none of them.

    Two clocks are needed. What was sent and is not acknowledged is `tcp_user_timeout`; it says nothing of a connection
    that only waits for rows. That is asked by probes, first after half of the time and then three times in the other.
    """
    if not silent_s:
        return {}
    idle, between = max(1, round(silent_s / 2)), max(1, round(silent_s / 6))
    probes = {"keepalives": 1, "keepalives_idle": idle, "keepalives_interval": between, "keepalives_count": 3}
    return probes | {"tcp_user_timeout": max(1_000, round(silent_s * 1000))}


def _postgres_engine(url: URL, idle_ms: int, silent_s: float) -> Engine:
    from psycopg.pq import TransactionStatus

    engine = create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_use_lifo=True,  # few connections in steady use rather than many now and then
        connect_args={
            "connect_timeout": 10,
            # What the address says for itself wins.
            **{name: value for name, value in liveness(silent_s).items() if name not in url.query},
            "options": f"-c statement_timeout=30000 -c idle_in_transaction_session_timeout={idle_ms}",
        },
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        # A process frozen between the statements of one round trip is not idle for the server: its transaction ends by
        # its age, where the server knows that limit.
        if connection.info.server_version >= WITH_TRANSACTION_TIMEOUT:
            connection.execute(f"SET transaction_timeout = {idle_ms}")
            connection.commit()

    # Rows of one kind go as one statement of many VALUES; psycopg's `executemany` would send a statement for each.
    engine.dialect.use_insertmanyvalues_wo_returning = True

    @event.listens_for(engine, "checkin")
    def _checkin(_connection: object, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, _proxy: object) -> None:
        # What was in use a moment ago still stands: trying it each time would cost every transaction a round trip.
        if time.monotonic() - record.info.get("used", math.inf) <= IDLE_S:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError("the connection was lost while it lay idle") from error

    @event.listens_for(engine, "do_execute")
    def _execute(cursor: Any, statement: str, parameters: Any, _context: object) -> bool:
        # The first statement of a transaction takes its BEGIN along, which would be a round trip of its own.
        connection = cursor.connection
        if connection.autocommit or connection.info.transaction_status != TransactionStatus.IDLE:
            return False
        with connection.pipeline():
            cursor.execute(statement, parameters)
        return True

    return engine


@contextmanager
def together(connection: Connection) -> Iterator[None]:
    """What is executed inside gives no rows, and goes out in one round trip where the database can do that; an error
    of one of the statements may come as late as the end."""
    if connection.dialect.name != "postgresql":
        yield
        return
    driver: Any = connection.connection.driver_connection
    errors: Any = connection.dialect.loaded_dbapi.Error
    try:
        with driver.pipeline():
            yield
    except errors as error:  # as SQLAlchemy would have told it
        raise DBAPIError.instance(
            "statements sent together", None, error, errors, connection_invalidated=driver.closed
        ) from error


def sqlite_engine(url: URL, **pool: Any) -> Engine:
    """An engine whose transactions take the write lock from the start when they are there to write."""
    engine = create_engine(url, connect_args={"timeout": SQLITE_BUSY_S, "check_same_thread": False}, **pool)

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun by us, below
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA cache_size=-{SQLITE_CACHE_KIB}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once when another writer came between; one that
        # takes the write lock from the start waits for it.
        write = connection.get_execution_options().get("officina_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _passing(error: DBAPIError) -> bool:
    """Whether the same may go well later: connections that broke, a server that restarts, locks, a full disk.

    What is wrong with a statement itself (`ProgrammingError`, `IntegrityError`, `DataError`) never passes.
    """
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in RETRYABLE:
        return True
    # A statement past its time would be so again, and SQLite's general error is a fault in the statement.
    told = {getattr(error.orig, "sqlstate", None), getattr(error.orig, "sqlite_errorname", None)}
    return isinstance(error, (OperationalError, InterfaceError)) and not told & {"57014", "SQLITE_ERROR"}


_databases: dict[str, Database] = {}


def get_database(settings: Settings) -> Database:
    """The database of these settings; one per URL and process."""
    found = _databases.get(settings.database)
    if found is None:
        # A process that stands still in the middle of a transaction keeps others out no longer than its leases hold.
        made = _open(settings.database, settings.limits.lease_s, settings.database_silent_s)
        made.routes = Routes(settings.queues)
        found = _databases.setdefault(settings.database, made)
        if found.seal is None and not found.in_memory and shares_key(settings):
            found.seal = _HomeSeal(settings)
    return found


def shares_key(settings: Settings) -> bool:
    """Whether every process that opens this database has the key to what is sealed in it.

    The key a home keeps is this machine's alone; a database that others reach too needs one that was set.
    """
    return settings.secret_key is not None or _is_sqlite(settings.database)


@lru_cache(8)
def _is_sqlite(url: str) -> bool:
    """Every request asks; to take an address apart costs more than to look at its key."""
    return make_url(url).get_backend_name() == "sqlite"


class _HomeSeal:
    """The vault of these settings, opened when the first secret has to be closed: most processes never meet one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _vault(self) -> "Vault":
        from orchestrator.vault import Vault

        return Vault(self._settings)

    def close_text(self, text: str) -> str:
        return self._vault.close_text(text)

    def open_text(self, text: str) -> str:
        return self._vault.open_text(text)


def _open(url: str, idle_s: float, silent_s: float) -> Database:
    if make_url(url).get_backend_name() == "sqlite" and make_url(url).database in (None, "", ":memory:"):
        from orchestrator.store.memory import MemoryDatabase

        return MemoryDatabase(url)
    return Database(url, idle_s=idle_s, silent_s=silent_s)


def upgrade(settings: Settings) -> None:
    """Brings the schema to this release; safe to run from several processes at once."""
    database = get_database(settings)
    if database.in_memory:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))

    def run(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    database.write(run)


def revisions(database: Database) -> tuple[str | None, str | None]:
    """The schema a database has, and the one this release works with."""
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).parent / "migrations"))
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision(), scripts.get_current_head()


def prepare(settings: Settings) -> None:
    """Makes an SQLite database that is not there yet; a database with tables in it is upgraded by its operator."""
    if is_new(get_database(settings)):
        upgrade(settings)


def is_new(database: Database) -> bool:
    """Whether it is an SQLite file that nobody made yet."""
    if not database.sqlite or database.in_memory:
        return False
    file = Path(database.url.database or "")
    return not file.exists() or file.stat().st_size == 0
