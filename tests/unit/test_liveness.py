"""How soon a connection to Postgres is given up that the network has cut (tests/hosts pulls a real cable)."""

import pytest

from orchestrator.store.database import Database, liveness


@pytest.mark.parametrize("seconds", [3, 6, 15, 60])
def test_both_clocks_of_the_network_are_set_to_the_time_that_is_given(seconds: float) -> None:
    made = liveness(seconds)
    probed = made["keepalives_idle"] + made["keepalives_interval"] * made["keepalives_count"]
    assert made["tcp_user_timeout"] == seconds * 1000
    assert seconds - 1 <= probed <= seconds + 2


def test_none_leaves_it_to_the_system() -> None:
    assert liveness(0) == {}


def test_a_connection_has_them_and_what_its_address_says_wins(postgres_url: str) -> None:
    database = Database(f"{postgres_url}&keepalives_idle=9", silent_s=30)
    try:
        with database.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            told = driver.info.get_parameters()
    finally:
        database.dispose()
    assert (told["tcp_user_timeout"], told["keepalives_interval"], told["keepalives_idle"]) == ("30000", "5", "9")
