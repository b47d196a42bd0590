"""The `Meter` port: sliding windows and brakes in Redis, shared by all workers; per process where there is none.

A counter is a brake and no truth: when Redis fails or forgets, calls go on and are counted here.
"""

import logging
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from orchestrator.redis_clients import connect
from orchestrator.settings import Settings
from registry.errors import Detail, SkillError
from registry.skills.metering import Rate

if TYPE_CHECKING:  # loaded at the first call that is counted
    from limits.strategies import RateLimiter
    from redis import Redis

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
        self._lock = threading.Lock()
        self._client: Redis | None = None
        self._shared: RateLimiter | None = None
        self._own: RateLimiter | None = None
        #: Requests and hosts of tasks, where Redis does not keep them.
        self._tasks: OrderedDict[str, tuple[int, frozenset[str]]] = OrderedDict()

    def admit(self, rate: Rate, owner_id: str) -> None:
        """See `Meter.admit`."""
        from redis import RedisError

        try:
            self._hit(self._windows(shared=True), rate, owner_id)
        except RedisError as error:
            log.warning("rates are counted in this process: %s", error)
            self._hit(self._windows(shared=False), rate, owner_id)

    def outbound(self, task_id: str, host: str) -> None:
        """See `Meter.outbound`."""
        held = self._braked(task_id, host)
        if held:
            most = self._settings.limits.task_requests if held == 1 else self._settings.limits.task_hosts
            what = f"made {most} requests" if held == 1 else f"asked {most} hosts"
            raise SkillError("rate_limited", f"this task has {what}, and more it may not without a person")

    def _hit(self, windows: "RateLimiter", rate: Rate, owner_id: str) -> None:
        from limits import parse

        item = parse(getattr(self._settings.rates, rate))
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
        from redis import RedisError

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

    def _redis(self) -> "Redis | None":
        with self._lock:
            if self._client is None and self._settings.redis:
                url = self._settings.redis
                self._client = connect(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)
            return self._client

    def _windows(self, *, shared: bool) -> "RateLimiter":
        """The windows in Redis, where they are wanted and there is one; else those of this process."""
        from limits.storage import MemoryStorage, RedisStorage
        from limits.strategies import MovingWindowRateLimiter

        redis = self._redis() if shared else None
        with self._lock:
            if redis is not None:
                if self._shared is None:
                    pool = redis.connection_pool
                    self._shared = MovingWindowRateLimiter(
                        RedisStorage("redis://", connection_pool=pool, key_prefix=PREFIX)
                    )
                return self._shared
            if self._own is None:
                self._own = MovingWindowRateLimiter(MemoryStorage())
            return self._own
