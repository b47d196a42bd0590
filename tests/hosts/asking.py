"""Asks a database and waits for rows that do not come: `python -m tests.hosts.asking URL SILENT_S`."""

import sys
import time

from sqlalchemy import text

from orchestrator.store.database import Database
from registry.errors import Unavailable


def main() -> None:
    database = Database(sys.argv[1], silent_s=float(sys.argv[2]))
    with database.read() as connection:
        connection.execute(text("SELECT 1"))
    begun = time.monotonic()
    print("asked", flush=True)
    try:
        with database.read() as connection:
            connection.execute(text("SET statement_timeout = 0"))
            connection.execute(text("SELECT pg_sleep(3600)"))
    except Unavailable as error:
        print(f"{error.code} after {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
