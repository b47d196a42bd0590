"""The services that the other tests stand on."""

from sqlalchemy import create_engine, inspect, text

from tests import services


def test_each_database_comes_with_the_schema_and_without_rows(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert {"projects", "tasks", "runs"} <= set(inspect(connection).get_table_names())
        assert connection.execute(text("SELECT count(*) FROM projects")).scalar_one() == 0
    engine.dispose()


def test_postgres_waits_for_the_disk_where_it_is_measured_or_broken_and_not_for_each_test(postgres_url: str) -> None:
    with services.postgres() as measured:
        assert setting(measured, "fsync") == setting(measured, "synchronous_commit") == "on"
    assert (setting(postgres_url, "fsync"), setting(postgres_url, "synchronous_commit")) == ("off", "on")


def test_postgres_sorts_alike_everywhere(postgres_url: str) -> None:
    assert asked(postgres_url, "SELECT datcollate FROM pg_database LIMIT 1") == "C"


def setting(url: str, name: str) -> str:
    return asked(url, f"SELECT current_setting('{name}')")


def asked(url: str, query: str) -> str:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(query)).scalar_one()
    engine.dispose()
    return str(found)


def test_redis_is_empty_for_each_test(redis) -> None:
    assert redis.dbsize() == 0
    redis.set("left", "behind")


test_redis_is_empty_for_the_next_test_too = test_redis_is_empty_for_each_test
