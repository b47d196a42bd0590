"""The migrations and the tables are one schema, on both databases."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from orchestrator.store.database import Database
from orchestrator.store.kept import metadata


def test_the_migrations_lay_exactly_the_tables_of_the_code(database_url: str) -> None:
    database = Database(database_url)
    options: dict[str, Any] = {"compare_type": True, "compare_server_default": True}
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata)
        assert "memories" in metadata.tables
    database.dispose()

    assert differences == []
