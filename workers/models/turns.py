"""Turns: how many calls and tokens a minute all workers together ask of a model, and who comes next.

A model whose settings name a limit has a bucket in Redis that fills evenly, and a queue. Calls that find the bucket
empty wait in the queue: in memory for a few seconds, else as parked runs that come back when their turn should be. The
queue goes round the projects, so that one with ten thousand tasks is no longer a wait for another than one with two;
within a project first come is first served. Who does not come back loses the place, and holds nobody up meanwhile.

What a provider itself says of waiting (`Retry-After`, counters that are used up) holds for every worker, limit or not.
Without Redis each process counts for itself (`limits`), in no order. A bucket is a brake and no truth: the provider
counts too.
"""

import hashlib
import logging
import math
import random
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from workers.models.pools import OPENAI
from workers.models.tiers import Endpoint

if TYPE_CHECKING:  # loaded at the first call that is counted
    from limits import RateLimitItem
    from limits.strategies import SlidingWindowCounterRateLimiter
    from redis import Redis

log = logging.getLogger(__name__)

PREFIX: Final = "officina:turns"
#: Seconds a failed Redis is left alone, and a look at what a provider said is good for.
AWAY_S, LOOKED_S = 5.0, 0.5
#: Milliseconds after its time in which a call that waits may still come, and what is known of a model is kept unused.
LATE_MS, KEPT_MS = 30_000, 600_000

#: One look, and a turn where there is one. KEYS: bucket, queue (by tag), who is expected until when, lanes, hold.
#: ARGV: ticket, lane, limit and cost of requests, limit and cost of tokens, late, kept. Returns milliseconds to wait.
_TURN: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local bucket, queue, expected, lanes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expected, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', expected, gone)
  redis.call('ZREM', queue, gone)
end
if not redis.call('ZSCORE', queue, ARGV[1]) then
  local last = tonumber(redis.call('HGET', lanes, ARGV[2]) or '0')
  local tag = math.max(tonumber(redis.call('HGET', bucket, 'served') or '0'), last) + 1
  redis.call('ZADD', queue, tag, ARGV[1])
  redis.call('HSET', lanes, ARGV[2], tag)
end
local ahead = redis.call('ZRANK', queue, ARGV[1])
local wait = math.max(0, redis.call('PTTL', KEYS[5]))
local filled = {}
for i, name in ipairs({'requests', 'tokens'}) do
  local limit, cost = tonumber(ARGV[1 + i * 2]), tonumber(ARGV[2 + i * 2])
  if limit > 0 then
    local burst = math.max(1, math.floor(limit / 6))
    local step = 60000 / (limit - burst + 1)
    local from = math.max(now, tonumber(redis.call('HGET', bucket, name) or '0'))
    wait = math.max(wait, from + (ahead * cost + math.min(cost, burst) - burst) * step - now)
    filled[name] = from + cost * step
  end
end
if wait <= 0 then
  redis.call('HSET', bucket, 'served', redis.call('ZSCORE', queue, ARGV[1]))
  for name, full in pairs(filled) do redis.call('HSET', bucket, name, string.format('%.3f', full)) end
  redis.call('ZREM', queue, ARGV[1])
  redis.call('ZREM', expected, ARGV[1])
  if redis.call('ZCARD', queue) == 0 then redis.call('DEL', lanes) end
else
  redis.call('ZADD', expected, now + wait + ARGV[7], ARGV[1])
end
for i = 1, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[8] + math.ceil(wait)) end
return math.ceil(wait)
"""
#: What a call took beyond what was counted before it. KEYS: bucket. ARGV: tokens, limit.
_TOOK: Final = """
local limit = tonumber(ARGV[2])
local step = 60000 / (limit - math.max(1, math.floor(limit / 6)) + 1)
local full = redis.call('HGET', KEYS[1], 'tokens')
if full then redis.call('HSET', KEYS[1], 'tokens', string.format('%.3f', full + ARGV[1] * step)) end
return 0
"""
#: A hold is never made shorter. KEYS: hold. ARGV: milliseconds.
_HOLD: Final = """
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], 1, 'PX', ARGV[1]) end
return 0
"""


@dataclass
class _Held:
    """What this process knows of a provider's word, on the monotonic clock."""

    until: float = 0.0
    looked: float = 0.0


class Turns:
    """One per process; safe from any thread."""

    def __init__(self, redis: "Redis | None") -> None:
        self._redis = redis
        self._away_until = 0.0
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._own: SlidingWindowCounterRateLimiter | None = None

    def take(self, endpoint: Endpoint, ticket: str, lane: str, tokens: int) -> float:
        """Takes a turn; else keeps a place in the queue and gives the seconds until the turn should come.

        Args:
            endpoint: the model.
            ticket: who waits; the same one keeps its place.
            lane: between lanes, turns go round.
            tokens: what the call sends.
        """
        place = _place(endpoint)
        if not _limited(endpoint):
            return self._asked_to_wait(place)
        limits = [endpoint.requests_per_minute or 0, 1, endpoint.tokens_per_minute or 0, tokens]
        found = self._eval(_TURN, _keys(place), [ticket, lane, *limits, LATE_MS, KEPT_MS])
        if found is not None:
            return float(found) / 1000
        return max(self._asked_to_wait(place), self._alone(place, endpoint, tokens))

    def took(self, endpoint: Endpoint, more: int) -> None:
        """Counts tokens of the answer, which were not known before."""
        if endpoint.tokens_per_minute and more:
            self._eval(_TOOK, _keys(_place(endpoint))[:1], [more, endpoint.tokens_per_minute])

    def hold(self, endpoint: Endpoint, seconds: float) -> None:
        """The provider wants no call for so long: no worker makes one."""
        place = _place(endpoint)
        with self._lock:
            held = self._held.setdefault(place, _Held())
            held.until = max(held.until, time.monotonic() + seconds)
        self._eval(_HOLD, _keys(place)[4:], [max(1, math.ceil(seconds * 1000))])

    def _asked_to_wait(self, place: str) -> float:
        """Seconds the provider wants no call, whichever worker was told; spread, so that not all come back at once."""
        now = time.monotonic()
        with self._lock:
            held = self._held.setdefault(place, _Held())
            fresh, left = now - held.looked < LOOKED_S, held.until - now
            held.looked = now
        if left <= 0 and not fresh:
            left = self._left(place)
            with self._lock:
                held.until = max(held.until, now + left)
        return left + random.uniform(0, min(left, 5.0)) if left > 0 else 0.0

    def _left(self, place: str) -> float:
        if self._redis is None or time.monotonic() < self._away_until:
            return 0.0
        try:
            milliseconds: Any = self._redis.pttl(_keys(place)[4])
        except Exception as error:
            self._lost(error)
            return 0.0
        return max(0.0, float(milliseconds) / 1000)

    def _alone(self, place: str, endpoint: Endpoint, tokens: int) -> float:
        """The same for this process alone, first come first served."""
        from limits import RateLimitItemPerMinute
        from limits.storage import MemoryStorage
        from limits.strategies import SlidingWindowCounterRateLimiter

        wanted: list[tuple[RateLimitItem, str, int]] = []
        if endpoint.requests_per_minute:
            wanted.append((RateLimitItemPerMinute(endpoint.requests_per_minute), "requests", 1))
        if endpoint.tokens_per_minute:
            most = endpoint.tokens_per_minute  # a call larger than all of a minute has to go some time
            wanted.append((RateLimitItemPerMinute(most), "tokens", min(tokens, most)))
        with self._lock:
            if self._own is None:
                self._own = SlidingWindowCounterRateLimiter(MemoryStorage())
            full = [(item, what) for item, what, cost in wanted if not self._own.test(item, place, what, cost=cost)]
            if not full:
                for item, what, cost in wanted:
                    self._own.hit(item, place, what, cost=cost)
                return 0.0
            resets = [self._own.get_window_stats(item, place, what).reset_time for item, what in full]
        return max(1.0, max(resets) - time.time())

    def _eval(self, script: str, keys: list[str], arguments: list[Any]) -> Any:
        """What a script says; None where Redis is away."""
        if self._redis is None or time.monotonic() < self._away_until:
            return None
        try:
            return self._redis.eval(script, len(keys), *keys, *arguments)
        except Exception as error:
            self._lost(error)
            return None

    def _lost(self, error: Exception) -> None:
        self._away_until = time.monotonic() + AWAY_S
        log.warning("turns at models are counted in this process: %s", error)


@lru_cache(maxsize=8)
def turns_at(redis_url: str | None) -> Turns:
    """The turns of this process."""
    if redis_url is None:
        return Turns(None)
    from orchestrator.events import redis_client

    return Turns(redis_client(redis_url))


def _limited(endpoint: Endpoint) -> bool:
    return bool(endpoint.requests_per_minute or endpoint.tokens_per_minute)


def _place(endpoint: Endpoint) -> str:
    """One bucket for a model of an address and an account; neither stands in the name of a key."""
    parts = "\n".join([endpoint.base_url or OPENAI, endpoint.key or "", endpoint.name])
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _keys(place: str) -> list[str]:
    return [f"{PREFIX}:{{{place}}}:{part}" for part in ("bucket", "queue", "expected", "lanes", "hold")]
