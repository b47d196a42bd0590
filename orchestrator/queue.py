"""The Celery side of the orchestrator: one configuration for every process, and sending wake-ups by task name.

A message is a hint: it is sent after the commit, never retried here, and a lost one costs time only, because the clock
sends again what nobody claimed (settings and their reasons: spec reliability, B).
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import crashpoints
from orchestrator.rabbit import secured
from orchestrator.records import Wake
from orchestrator.sentinels import watched
from orchestrator.settings import Settings
from registry.errors import OfficinaError
from registry.queues import DEFAULT, choose

if TYPE_CHECKING:
    from celery import Celery

log = logging.getLogger(__name__)

RUN, ADVANCE, CALL = "officina.run", "officina.advance", "officina.call"
QUEUE = "officina"
#: Steps of priority in the broker; without `strict_priority` every message has the same.
STEPS = 3
#: Characters of a label in a message: enough to read, small enough for three copies in Redis.
LABEL_CHARS = 80
#: Seconds to wait for a Sentinel, before the next one is asked.
SENTINEL_S = 1.0


class NoBroker(OfficinaError):
    """No broker is configured and no embedded stack runs."""

    code = "no_broker"


def configuration(settings: Settings) -> dict[str, Any]:
    """Celery's settings; every process of one installation must use the same."""
    from orchestrator import transport

    transport.install()
    redis = settings.redis
    return {
        "broker_url": _address(settings.broker),
        "result_backend": _backend(redis),
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "task_default_queue": QUEUE,
        "task_create_missing_queues": True,
        # RabbitMQ fixes it when a queue is made; so it is there before anybody wants it.
        "task_queue_max_priority": STEPS - 1,
        # The message is a wake-up: the row's lease brings back what a dead worker held, not the broker.
        "task_acks_late": False,
        "task_reject_on_worker_lost": False,
        "task_ignore_result": True,
        "task_publish_retry": False,
        "task_store_errors_even_if_ignored": False,
        "result_expires": 24 * 3600,
        "worker_prefetch_multiplier": 1,
        # What one worker held beside what it carries would wait while another has a free slot. Of the brokers only
        # Redis can; RabbitMQ would say so at each start.
        "worker_disable_prefetch": not (settings.broker or "").startswith("amqp"),
        "worker_hijack_root_logger": False,
        "worker_send_task_events": settings.monitor,
        # A second message for each wake-up, of which a monitor shows nothing that it does not have from the worker.
        "task_send_sent_event": False,
        "worker_eta_task_limit": 100,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # It protects messages acknowledged late, and ours are not. A thread of the pool restores the count, and waits
        # for the answer on the socket the main thread waits on: after RabbitMQ restarted both did so for ever.
        "worker_enable_prefetch_count_reduction": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_acquire_timeout": 10,
        "broker_transport_options": _transport(settings.broker),
        "result_backend_transport_options": _results(redis),
        "redis_socket_timeout": 3,
        "redis_socket_connect_timeout": 3,
        "redis_socket_keepalive": not (redis or "").startswith("unix"),
        "redis_backend_health_check_interval": 25,
        "enable_utc": True,
        "timezone": "UTC",
        **_tls("broker_use_ssl", settings.broker),
        **_tls("redis_backend_use_ssl", redis),
    }


_senders: dict[str, "Celery"] = {}


def _make_sender(broker: str, settings: Settings) -> "Celery":
    from celery import Celery

    app = Celery("officina-sender", set_as_current=False)
    app.conf.update(configuration(settings))
    # A sender must answer soon whatever the broker does: what it could not send, the clock will.
    app.conf.broker_transport_options = _transport(broker) | {"socket_timeout": 2, "socket_connect_timeout": 2}
    app.conf.broker_connection_timeout = 2
    return app


def sender(settings: Settings) -> "Celery":
    """The application that sends.

    Raises:
        NoBroker: with both ways out.
    """
    if not settings.broker:
        raise NoBroker("no broker: start the embedded stack with `officina up`, or set OFFICINA_BROKER_URL")
    if settings.broker not in _senders:
        _senders[settings.broker] = _make_sender(settings.broker, settings)
    return _senders[settings.broker]


def warm(settings: Settings) -> None:
    """Connects the sender ahead of a commit, so that the wake-up after it leaves at once; best effort."""
    try:
        with sender(settings).connection_or_acquire() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
    except Exception as error:
        log.debug("the sender is not connected yet: %s", error)


def send(settings: Settings, wakes: Iterable[Wake]) -> int:
    """Sends wake-ups after their rows are committed; returns how many went out. Never raises for the broker's sake."""
    return _publish(settings, RUN, [((w.run_id,), labels(w), options(settings, w)) for w in wakes])


def celery_name(queue: str | None) -> str:
    """What the broker calls a queue; ours have a name of their own among others of the same broker."""
    return QUEUE if queue in (None, DEFAULT) else f"{QUEUE}.{queue}"


def known_name(celery_queue: str) -> str:
    """The same the other way round."""
    return DEFAULT if celery_queue == QUEUE else celery_queue.removeprefix(f"{QUEUE}.")


def options(settings: Settings, wake: Wake) -> dict[str, Any]:
    """Where a wake-up goes."""
    found: dict[str, Any] = {"queue": celery_name(wake.queue)}
    return found | {"priority": _step(settings, wake.priority)} if settings.strict_priority else found


def _step(settings: Settings, priority: int) -> int:
    """The broker's number for it: of Redis' the smallest comes first, of RabbitMQ's the largest."""
    step = 2 if priority >= 7 else 1 if priority >= 4 else 0
    return step if (settings.broker or "").startswith("amqp") else STEPS - 1 - step


def labels(wake: Wake) -> dict[str, str]:
    """What a person reads of a run in Flower, whose lists cut it after some forty characters."""
    words = {"task": wake.task or "the plan", "agent": wake.agent, "project": wake.project}
    if wake.queue is not None:
        words["queue"] = wake.queue
    return {name: word[:LABEL_CHARS] for name, word in words.items()}


def advance(settings: Settings, project_id: str, title: str, where: str | None = None) -> bool:
    """Wakes a project: someone who serves this queue (None: the default one) should send what its rows have ready."""
    first = options(settings, Wake("", title, None, "", 9, where))
    return _publish(settings, ADVANCE, [((project_id,), {"project": title[:LABEL_CHARS]}, first)]) == 1


def call(settings: Settings, asked: Mapping[str, str]) -> int:
    """Wakes calls that were asked for over HTTP, by id with their skills: each goes where an agent goes that holds its
    skill alone. Returns how many messages went out."""
    queues = {one: choose(settings.queues, {"skills": [skill]}) for one, skill in asked.items()}
    wakes = [Wake(one, "", None, "", 9, queue) for one, queue in queues.items()]
    return _publish(settings, CALL, [((wake.run_id,), {}, options(settings, wake)) for wake in wakes])


def _publish(
    settings: Settings, name: str, messages: Sequence[tuple[tuple[str, ...], dict[str, str], dict[str, Any]]]
) -> int:
    if not messages:
        return 0
    sent = 0
    try:
        app = sender(settings)
        with app.producer_pool.acquire(block=True, timeout=5) as producer:
            for args, kwargs, where in messages:
                app.send_task(name, args, kwargs, producer=producer, ignore_result=True, retry=False, **where)
                sent += 1
                crashpoints.reached("published")
    except Exception as error:  # kombu, redis and socket errors alike: the rows stand, the clock sends again
        log.warning("wake-ups not sent (%d of %d): %s", len(messages) - sent, len(messages), error)
    return sent


def _backend(redis: str | None) -> str | None:
    if redis is None:
        return None
    return "redis+socket://" + redis.removeprefix("unix://") if redis.startswith("unix://") else _address(redis)


def _address(url: str | None) -> str | None:
    """An address as Celery writes it."""
    if (rabbit := secured(url)) is not None:
        return rabbit[0]
    found = watched(url)
    return url if found is None else found.celery_url


def _tls(setting: str, url: str | None) -> dict[str, Any]:
    """TLS with RabbitMQ and behind Sentinels; other addresses say it themselves."""
    if (rabbit := secured(url)) is not None:
        return {setting: rabbit[1]}
    found = watched(url)
    return {} if found is None or found.tls is None else {setting: dict(found.tls)}


def _results(redis: str | None) -> dict[str, Any]:
    # A fan-out that finds no Redis holds its slot meanwhile, and goes without a chord; Celery would try 20 times.
    briefly = {"max_retries": 1, "interval_start": 0.2, "interval_step": 0, "interval_max": 0.2}
    found = watched(redis)
    return {"retry_policy": briefly} | ({} if found is None else found.celery_options(SENTINEL_S))


def _transport(broker: str | None) -> dict[str, Any]:
    if not broker or broker.startswith("amqp"):
        return {}
    found = watched(broker)
    return {
        # Longer than any job, so that it never causes a parallel run; recovery comes from leases.
        "visibility_timeout": 1_800,
        "priority_steps": list(range(STEPS)),
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 15,
        "socket_connect_timeout": 5,
        "health_check_interval": 25,
        **({} if broker.startswith("redis+socket") else {"socket_keepalive": True}),
        **({} if found is None else found.celery_options(SENTINEL_S)),
    }
