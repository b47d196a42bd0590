"""Addresses of RabbitMQ over TLS: whom they trust, and what Celery gets of them."""

import ssl

import pytest
from pydantic import ValidationError

from orchestrator import queue
from orchestrator.rabbit import secured
from orchestrator.settings import Settings

URL = "amqps://ann:p%2Fword@rabbit.internal:5671/officina"


def configured(url: str) -> dict[str, object]:
    made = queue.configuration(Settings(_env_file=None, broker_url=url, redis_url="redis://queue/0"))  # type: ignore[call-arg]
    return {name: made.get(name) for name in ("broker_url", "broker_use_ssl")}


def test_the_server_has_to_be_the_one_that_is_named_whatever_else_is_said() -> None:
    checked = {"cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "rabbit.internal"}

    assert configured(URL) == {"broker_url": URL, "broker_use_ssl": checked}
    assert configured(f"{URL}?ssl_ca_certs=/etc/ca.crt&heartbeat=5&ssl_cert_reqs=CERT_REQUIRED") == {
        "broker_url": f"{URL}?heartbeat=5",
        "broker_use_ssl": checked | {"ca_certs": "/etc/ca.crt"},
    }


def test_a_certificate_of_ones_own_is_shown_and_none_is_asked_for_when_nobody_wants_it() -> None:
    url = f"{URL}?ssl_cert_reqs=none&ssl_certfile=/c&ssl_keyfile=/k"

    assert configured(url)["broker_use_ssl"] == {"cert_reqs": ssl.CERT_NONE, "certfile": "/c", "keyfile": "/k"}


def test_other_addresses_are_left_alone() -> None:
    assert secured("amqp://guest@rabbit//") is None and secured("rediss://queue/0") is None and secured(None) is None
    assert configured("amqp://guest@rabbit//")["broker_use_ssl"] is None


@pytest.mark.parametrize(("more", "word"), [("ssl_ca_cert=/ca", "ssl_ca_certs"), ("ssl_cert_reqs=maybe", "none")])
def test_a_parameter_that_would_check_nothing_is_refused_by_name(more: str, word: str) -> None:
    with pytest.raises(ValidationError, match=word) as refused:
        configured(f"{URL}?{more}")

    assert "p%2Fword" not in str(refused.value.errors(include_input=False))
