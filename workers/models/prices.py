"""What a call costs, in whole micro-USD. A price nobody knows is None, which is not the same as free."""

from decimal import ROUND_CEILING, Decimal

from workers.models.model import Request, Usage
from workers.models.tiers import Endpoint
from workers.models.tokens import of_request

MILLION = Decimal(1_000_000)


def cost_micro(endpoint: Endpoint, usage: Usage) -> int | None:
    """Micro-USD of one answer, rounded up, so that sums never understate; None: the price is unknown.

    Prices of the settings win when both are set; they know no discount for cached input. Otherwise the price library
    is asked, by the address called and then by the model's name alone, because gateways serve models of others.
    """
    if endpoint.input_price is not None and endpoint.output_price is not None:
        # USD per million tokens is micro-USD per token.
        spent = usage.input_tokens * endpoint.input_price + usage.output_tokens * endpoint.output_price
        return _whole(spent)
    usd = _from_library(endpoint, usage)
    return None if usd is None else _whole(usd * MILLION)


def worst_micro(endpoint: Endpoint, request: Request) -> int | None:
    """Micro-USD a call may cost at most, by estimate: all of its input and the longest answer allowed."""
    longest = request.generation.get("maxTokens") or endpoint.max_tokens
    return cost_micro(endpoint, Usage(of_request(request), int(longest), estimated=True))


def _whole(micro: Decimal) -> int:
    return int(micro.to_integral_value(rounding=ROUND_CEILING))


def _from_library(endpoint: Endpoint, usage: Usage) -> Decimal | None:
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    cached = min(usage.cached_tokens, usage.input_tokens)
    counted = Counted(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=cached or None
    )
    for address in dict.fromkeys((endpoint.base_url or "https://api.openai.com/v1", None)):
        try:
            found = calc_price(counted, endpoint.name, provider_api_url=address)
        except (LookupError, ValueError):
            continue
        # An entry without prices would count as free.
        if str(found.model_price):
            return found.total_price
    return None
