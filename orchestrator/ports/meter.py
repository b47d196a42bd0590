"""The `Meter` port: sliding windows and brakes in Redis, shared by all workers; per process where there is none.

A counter is a brake and no truth: when Redis fails or forgets, calls go on and are counted here.
"""

import logging
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import limits
from redis import Redis, RedisError

from orchestrator.settings import Settings
from registry.errors import Detail, SkillError
from registry.skills.metering import Rate

if TYPE_CHECKING:
    from limits.storage import Storage

log = logging.getLogger(__name__)

PREFIX: Final = "officina:meter"
#: Seconds an idle brake is remembered; a task is over long before.
BRAKE_LIFE_S: Final = 7 * 24 * 3600
#: Tasks whose brakes one process remembers when there is no Redis.
MAX_TASKS: Final = 10_000
#: Seconds to wait for Redis before counting here.
PATIENCE_S: Final = 1.0

#: One atomic look and count. KEYS: the set of hosts, the count of requests. Returns 0, or which brake holds.
_BRAKE: Final = """
local known = redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1
if not known and redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 2 end
if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[2]) then return 1 end
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return 0
"""


class CountingMeter:
    """One per process; safe from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rates = {name: limits.parse(text) for name, text in settings.rates.model_dump().items()}
        self._lock = threading.Lock()
        self._shared: Redis | None = None
        self._windows: limits.strategies.RateLimiter | None = None
        self._own_windows = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage())
        #: Requests and hosts of tasks, where Redis does not keep them.
        self._tasks: OrderedDict[str, tuple[int, frozenset[str]]] = OrderedDict()

    def admit(self, rate: Rate, owner_id: str) -> None:
        """See `Meter.admit`."""
        windows = self._limiter()
        if windows is not None:
            try:
                return self._hit(windows, rate, owner_id)
            except RedisError as error:
                log.warning("rates are counted in this process: %s", error)
        return self._hit(self._own_windows, rate, owner_id)

    def outbound(self, task_id: str, host: str) -> None:
        """See `Meter.outbound`."""
        held = self._braked(task_id, host)
        if held:
            most = self._settings.limits.task_requests if held == 1 else self._settings.limits.task_hosts
            what = f"made {most} requests" if held == 1 else f"asked {most} hosts"
            raise SkillError("rate_limited", f"this task has {what}, and more it may not without a person")

    def _hit(self, windows: limits.strategies.RateLimiter, rate: Rate, owner_id: str) -> None:
        item = self._rates[rate]
        if windows.hit(item, rate, owner_id):
            return
        wait = max(1, round(windows.get_window_stats(item, rate, owner_id).reset_time - time.time()))
        raise SkillError(
            "rate_limited",
            f"more than {item} of this kind for one owner; try again in {wait} s",
            retryable=True,
            details=[Detail("retryAfter", str(wait))],
        )

    def _braked(self, task_id: str, host: str) -> int:
        bounds = self._settings.limits
        redis = self._redis()
        if redis is not None:
            keys = [f"{PREFIX}:hosts:{task_id}", f"{PREFIX}:requests:{task_id}"]
            arguments = [host, bounds.task_requests, bounds.task_hosts, BRAKE_LIFE_S]
            try:
                return int(redis.eval(_BRAKE, 2, *keys, *arguments))  # type: ignore[arg-type]
            except RedisError as error:
                log.warning("brakes are counted in this process: %s", error)
        with self._lock:
            count, hosts = self._tasks.get(task_id, (0, frozenset()))
            if host not in hosts and len(hosts) >= bounds.task_hosts:
                return 2
            if count >= bounds.task_requests:
                return 1
            self._tasks[task_id] = (count + 1, hosts | {host})
            self._tasks.move_to_end(task_id)
            if len(self._tasks) > MAX_TASKS:
                self._tasks.popitem(last=False)
            return 0

    def _redis(self) -> Redis | None:
        with self._lock:
            if self._shared is None and self._settings.redis:
                self._shared = Redis.from_url(
                    self._settings.redis, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S
                )
            return self._shared

    def _limiter(self) -> limits.strategies.RateLimiter | None:
        redis = self._redis()
        if redis is not None and self._windows is None:
            storage: Storage = limits.storage.RedisStorage(
                "redis://", connection_pool=redis.connection_pool, key_prefix=PREFIX
            )
            self._windows = limits.strategies.MovingWindowRateLimiter(storage)
        return self._windows
