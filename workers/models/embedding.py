"""Texts as points, from an OpenAI-compatible embeddings endpoint, through the guard of the network."""

import math
import time
from collections.abc import Sequence
from typing import Any, Final

from orchestrator.sections import EmbeddingModel
from orchestrator.settings import Settings
from registry.errors import SkillError
from registry.jsontext import JsonFault, compact, parse
from registry.skills.network import MIB, Incoming, Network, Outgoing
from workers.models.painting import OPENAI, same_place

#: Texts of one request, and characters of each.
BATCH: Final = 64
MAX_CHARS: Final = 8_000
MAX_ANSWER: Final = 16 * MIB


class GuardedEmbeddings:
    """The endpoint of the settings."""

    def __init__(self, chosen: EmbeddingModel, settings: Settings, net: Network) -> None:
        self._chosen = chosen
        self._net = net
        key = chosen.key
        if key is None and same_place(chosen.base_url, settings.model_base_url or OPENAI):
            key = settings.model_api_key
        self._key = key.get_secret_value() if key else None

    @property
    def model(self) -> str:
        return self._chosen.name

    def embed(self, texts: Sequence[str], *, timeout_s: float) -> list[list[float]]:
        """See `Embeddings`."""
        until = time.monotonic() + timeout_s
        places: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = [text[:MAX_CHARS] for text in texts[start : start + BATCH]]
            places += self._ask(batch, max(0.0, until - time.monotonic()))
        if len({len(place) for place in places}) > 1:
            raise SkillError("invalid_output", "the embeddings endpoint gave points of different length")
        return places

    def _ask(self, texts: list[str], seconds: float) -> list[list[float]]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        request = Outgoing(
            url=f"{self._chosen.base_url}/embeddings",
            method="POST",
            headers=headers,
            body=compact({"model": self._chosen.name, "input": texts, "encoding_format": "float"}).encode(),
            timeout_s=seconds,
            max_bytes=MAX_ANSWER,
            whole=True,
        )
        answer = self._net.send(request, cancelled=lambda: False)
        if not answer.ok:
            words = f"the embeddings endpoint answered {answer.status}"
            raise SkillError("remote_error", words, retryable=answer.status >= 500)
        return _places(answer, len(texts))


def _places(answer: Incoming, wanted: int) -> list[list[float]]:
    try:
        body: Any = parse(answer.body)
        rows = sorted(body["data"], key=lambda row: row["index"])
        places = [[float(number) for number in row["embedding"]] for row in rows]
    except (JsonFault, KeyError, TypeError, ValueError):
        raise SkillError("invalid_output", "the embeddings endpoint gave no points") from None
    if len(places) != wanted or not all(place and all(map(math.isfinite, place)) for place in places):
        raise SkillError("invalid_output", f"the embeddings endpoint gave {len(places)} points for {wanted} texts")
    return places


def embeddings_for(settings: Settings, net: Network) -> GuardedEmbeddings | None:
    """What compares texts by their meaning; None: nothing is set up, or the stand-in plays every model."""
    chosen = settings.embeddings
    return None if chosen is None or settings.stand_in else GuardedEmbeddings(chosen, settings, net)
