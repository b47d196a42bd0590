"""Runs a migration on the connection `database.upgrade` hands over, inside its transaction."""

from alembic import context

from orchestrator.store.kept import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
if connection.dialect.name == "postgresql":
    # Two processes that start together upgrade one after the other.
    if connection.dialect.server_version_info >= (17,):
        connection.exec_driver_sql("SET LOCAL transaction_timeout = 0")  # a large table takes as long as it takes
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(5133946)")
with context.begin_transaction():
    context.run_migrations()
