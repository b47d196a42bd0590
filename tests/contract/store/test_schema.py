"""The migrations and the tables are one schema, on every database."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from orchestrator.settings import Settings
from orchestrator.store import fulltext
from orchestrator.store.database import Database, get_database
from orchestrator.store.kept import metadata


def test_a_new_database_has_exactly_the_tables_of_the_code(store_settings: Settings) -> None:
    options: dict[str, Any] = {"compare_type": True, "compare_server_default": True}
    options["include_name"] = lambda name, _kind, _parents: not fulltext.is_part(name)
    with get_database(store_settings).read() as connection:
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata)
    get_database(store_settings).dispose()

    assert {"memories", "runs"} <= set(metadata.tables)
    assert differences == []


def test_an_index_of_some_rows_has_the_condition_of_the_code_on_postgres(postgres_url: str) -> None:
    database = Database(postgres_url)
    query = text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname LIKE 'ix_%'")
    with database.read() as connection:
        migrated = {row.indexname: row.indexdef for row in connection.execute(query)}
        metadata.drop_all(connection)
        metadata.create_all(connection)
        made = {row.indexname: row.indexdef for row in connection.execute(query)}
    database.dispose()

    assert sum("WHERE" in words for words in made.values()) >= 3
    assert made == migrated
