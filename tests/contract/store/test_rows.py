"""Many rows in one statement: what is read back is what was given, on every database, and nothing else was touched."""

from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.store import rows
from orchestrator.store.database import now_ms
from orchestrator.store.sql import among
from orchestrator.store.tables import definitions, events, windows
from tests.contract.store.world import World

NOW: rows.Shared = (("at", now_ms()),)

ODD: list[Any] = [
    *(True, 0, -1, 1.5, 2**80, "", "null", "a'b\"c\\d", "{}", "%s %(rows)s :rows", "käse 🧀 \u2028 \x01"),
    *([], {}, {"ключ": ["\x00", "\ud800", None, {"a": {"b": []}}]}, "\\u0000", "x" * 100_000),
]


def line(seq: int, **more: Any) -> dict[str, Any]:
    return {"trace_id": "t", "seq": seq, "kind": "k", "task_id": None, "data": seq} | more


def test_any_value_comes_back_as_it_was(world: World) -> None:
    given = [line(number, data=value) for number, value in enumerate(ODD)]

    world.database.write(lambda c: rows.insert_all(c, events, given, NOW))

    found = world.all(select(events).order_by(events.c.seq))
    assert [row.data for row in found] == ODD
    assert all(row.task_id is None and row.at > 0 for row in found)


def test_any_text_is_found_among_any_number_by_one_statement(world: World) -> None:
    texts = ["a'b", 'a"b', "a\\b", "{a,b}", "NULL", "a\nb", "é🧀", "%s", "", "a,b", " "]
    given = [line(2**62 + place, kind=text) for place, text in enumerate(texts)]
    world.database.write(lambda c: rows.insert_all(c, events, given, NOW))

    def found(some: list[str]) -> list[str]:
        return [row.kind for row in world.all(select(events.c.kind).where(among(events.c.kind, some)))]

    assert sorted(found(texts)) == sorted(texts)
    assert [found([text]) for text in texts] == [[text] for text in texts]
    assert found([]) == found(["none of them"]) == []
    dialect = world.database.engine.dialect
    texts_of = [select(events.c.seq).where(among(events.c.kind, some)) for some in (["a"], texts)]
    short, long = (str(one.compile(dialect=dialect)) for one in texts_of)
    assert short == long


def test_a_text_column_takes_any_text(world: World) -> None:
    texts = ["a'b", 'a"b', "a\\b", "{a,b}", "NULL", "a\nb", "é🧀", "%s", ""]
    given = [line(2**62 + place, kind=text, task_id=text) for place, text in enumerate(texts)]

    world.database.write(lambda c: rows.insert_all(c, events, given, NOW))

    found = world.all(select(events).order_by(events.c.seq))
    assert [(row.kind, row.task_id) for row in found] == [(text, text) for text in texts]


def test_a_row_that_is_there_is_replaced_and_its_neighbour_stays(world: World) -> None:
    def bodies() -> dict[str, Any]:
        with world.database.read() as connection:
            found = connection.execute(select(definitions).where(definitions.c.digest.in_(list("abc"))))
            return {row.digest: row.body for row in found}

    world.database.write(lambda c: rows.upsert_all(c, definitions, [{"digest": d, "body": 1} for d in "ab"]))
    world.database.write(lambda c: rows.upsert_all(c, definitions, [{"digest": d, "body": [d]} for d in "bc"]))

    assert bodies() == {"a": 1, "b": ["b"], "c": ["c"]}


def test_an_update_sets_adds_and_leaves_the_others_alone(world: World) -> None:
    made = [{"id": name, "limit_micro": 5, "spent_micro": 10} for name in "abc"]
    changes = [{"id": name, "limit_micro": limit, "spent_micro": 7} for name, limit in (("c", None), ("a", 9))]

    world.database.write(lambda c: rows.insert_all(c, windows, made))
    world.database.write(
        lambda c: rows.update_all(c, windows, changes, (("steps", windows.c.steps + 2),), frozenset({"spent_micro"}))
    )

    with world.database.read() as connection:
        query = select(windows.c.id, windows.c.limit_micro, windows.c.spent_micro, windows.c.steps)
        found = {row.id: tuple(row)[1:] for row in connection.execute(query)}
    assert found == {"a": (9, 17, 2), "b": (5, 10, 0), "c": (None, 17, 2)}


def test_nothing_given_is_no_statement(world: World) -> None:
    def work(connection: Any) -> None:
        rows.insert_all(connection, events, [])
        rows.upsert_all(connection, definitions, [])
        rows.update_all(connection, windows, [])

    said = world.counted(lambda: world.database.write(work))

    assert not [text for text in said if "INSERT" in text or "UPDATE" in text]


def test_postgresql_gets_the_same_text_for_one_row_and_for_many(world: World) -> None:
    if world.database.sqlite:
        pytest.skip("its driver takes rows one by one")

    def put(first: int, many: int) -> None:
        given = [line(first + number) for number in range(many)]
        world.database.write(lambda c: rows.insert_all(c, events, given, NOW))

    one, many = world.counted(lambda: put(0, 1)), world.counted(lambda: put(100, 300))

    assert one == many
    assert len([text for text in many if text.startswith("INSERT")]) == 1
