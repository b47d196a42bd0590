"""The services that the other tests stand on."""

from sqlalchemy import create_engine, inspect, text


def test_each_database_comes_with_the_schema_and_without_rows(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert {"projects", "tasks", "runs"} <= set(inspect(connection).get_table_names())
        assert connection.execute(text("SELECT count(*) FROM projects")).scalar_one() == 0
    engine.dispose()


def test_postgres_keeps_its_promises_on_durability(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT current_setting('fsync')")).scalar_one() == "on"
        assert connection.execute(text("SELECT datcollate FROM pg_database LIMIT 1")).scalar_one() == "C"
    engine.dispose()


def test_redis_is_empty_for_each_test(redis) -> None:
    assert redis.dbsize() == 0
    redis.set("left", "behind")


test_redis_is_empty_for_the_next_test_too = test_redis_is_empty_for_each_test
