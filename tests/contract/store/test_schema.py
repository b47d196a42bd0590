"""The migrations and the tables are one schema, on every database."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.kept import metadata


def test_a_new_database_has_exactly_the_tables_of_the_code(store_settings: Settings) -> None:
    options: dict[str, Any] = {"compare_type": True, "compare_server_default": True}
    with get_database(store_settings).read() as connection:
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, metadata)
    get_database(store_settings).dispose()

    assert {"memories", "runs"} <= set(metadata.tables)
    assert differences == []
