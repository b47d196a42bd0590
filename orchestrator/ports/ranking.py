"""How well texts fit a question, alike on every database and whatever others keep: BM25 over what the index found."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from orchestrator.store import fulltext

#: How soon repetition saturates, and how much length counts.
K1: Final = 1.2
B: Final = 0.75


def scores(texts: Sequence[str], wanted: Sequence[str]) -> list[float]:
    """A score of each text, 1 for the best; 0: it has none of the words.

    Args:
        wanted: the words of the question, each once.
    """
    counted = [Counter(fulltext.parted(text)) for text in texts]
    lengths = [count.total() for count in counted]
    average = sum(lengths) / len(lengths) if any(lengths) else 1.0
    spread = {word: sum(word in count for count in counted) for word in wanted}
    ranks = [
        sum(_weight(count[word], spread[word], len(texts), length / average) for word in wanted if count[word])
        for count, length in zip(counted, lengths, strict=True)
    ]
    top = max(ranks, default=0.0)
    return [rank / top if top else 0.0 for rank in ranks]


def _weight(times: int, having: int, all_: int, length: float) -> float:
    rarity = math.log(1 + (all_ - having + 0.5) / (having + 0.5))
    return rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * length))
