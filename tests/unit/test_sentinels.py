"""Addresses that name Sentinels: what they say, what Celery gets of them, and what no message repeats."""

import pytest
from kombu import Connection
from pydantic import ValidationError

from orchestrator import queue
from orchestrator.redis_clients import connect
from orchestrator.sentinels import watched
from orchestrator.settings import Settings
from registry import masking
from workers.net.wiring import own_places

URL = "sentinel://ann:p%2Fword@s1.internal:1,[::1]:2,s3.internal/3?master=officina"
SECURE = (
    "sentinels://ann:p%2Fword@s1.internal,s2.internal/0?master=officina"
    "&sentinel_username=asker&sentinel_password=word-of-sentinels&ssl_ca_certs=/etc/ca.crt"
)


def settings(**values: str) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg,arg-type]


def test_an_address_says_who_watches_what() -> None:
    found = watched(URL)
    assert found is not None
    assert found.hosts == (("s1.internal", 1), ("::1", 2), ("s3.internal", 26379))
    assert (found.master, found.database, found.tls) == ("officina", 3, None)
    assert found.login == {"username": "ann", "password": "p/word"}
    assert "p/word" not in repr(found)


def test_an_address_of_a_server_is_none() -> None:
    assert watched("redis://:word@queue/0") is None and watched("amqp://queue") is None and watched(None) is None


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("sentinel://:hush@s1:1/0", "master"),
        ("sentinel://:hush@/0?master=m", "host:port"),
        ("sentinel://:hush@s1:port/0?master=m", "host:port"),
        ("sentinel://:hush@s1:1,/0?master=m", "host:port"),
        ("sentinel://:hush@s1:1/nought?master=m", "number"),
        ("sentinel://:hush@s1:1/0?master=m&mster=n", "mster"),
        ("sentinel://:hush@s1:1/0?master=m&ssl_ca_certs=/ca", "sentinels://"),
    ],
)
@pytest.mark.parametrize("name", ["broker_url", "redis_url"])
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(name: str, url: str, word: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**{name: url})
    fault = caught.value.errors()[0]
    assert fault["loc"] == (name,) and word in fault["msg"] and "hush" not in fault["msg"]


def test_kombu_reads_what_celery_is_given_of_it() -> None:
    told = queue.configuration(settings(broker_url=SECURE))
    with Connection(
        told["broker_url"], ssl=told["broker_use_ssl"], transport_options=told["broker_transport_options"]
    ) as c:
        assert (c.userid, c.password, c.hostname, c.port) == ("ann", "p/word", "s1.internal", 26379)
        assert len(c.alt) == 2 and c.transport_options["master_name"] == "officina"
    asked = told["broker_transport_options"]["sentinel_kwargs"]
    assert (asked["username"], asked["password"], asked["ssl"]) == ("asker", "word-of-sentinels", True)
    assert told["redis_backend_use_ssl"] == {"ssl_cert_reqs": "required", "ssl_ca_certs": "/etc/ca.crt"}
    assert told["result_backend"] == told["broker_url"]


def test_rabbitmq_has_its_results_behind_sentinels() -> None:
    told = queue.configuration(settings(broker_url="amqp://queue//", redis_url=URL))
    assert told["result_backend"].startswith(
        "sentinel://ann:p%2Fword@s1.internal:1/3;sentinel://ann:p%2Fword@[::1]:2/3;"
    )
    assert told["result_backend_transport_options"]["master_name"] == "officina"
    assert "master_name" not in told["broker_transport_options"] and "broker_use_ssl" not in told


def test_a_client_takes_user_database_and_tls_along() -> None:
    with connect(SECURE, socket_timeout=2) as client:
        given = client.connection_pool.connection_kwargs
    assert (given["username"], given["password"], given["ssl_ca_certs"]) == ("ann", "p/word", "/etc/ca.crt")


def test_passwords_of_such_an_address_are_masked() -> None:
    settings(broker_url=SECURE.replace("p%2Fword", "word%2Fof-servers"))
    for secret in ("word/of-servers", "word-of-sentinels"):
        assert masking.mask_text(f"it said {secret}.") == "it said ***."


def test_no_skill_reaches_a_sentinel() -> None:
    assert {("s1.internal", 1), ("::1", 2), ("s3.internal", 26379)} <= own_places(settings(redis_url=URL))
