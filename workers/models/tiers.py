"""Which model stands behind a tier or a model ref, and where it is called.

Settings name one model per tier. A definition names a tier, or one of those models by name; it never carries a key or
an address. A tier nobody configured is played by its neighbour, so that one model is enough to run everything.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import urlsplit

from orchestrator.settings import Model, Settings
from workers.models.model import ModelFault

#: Where a tier's calls go when it has no model of its own: the nearest first.
NEIGHBOURS = {
    "fast": ("fast", "standard", "deep"),
    "standard": ("standard", "deep", "fast"),
    "deep": ("deep", "standard", "fast"),
}
UNRESOLVED = (
    "no model is configured: set OFFICINA_MODELS__STANDARD__NAME and OFFICINA_MODEL_API_KEY (or OFFICINA_MODEL_BASE_URL"
    " for a local server), or let the stand-in play: a `script:` in the project file, `--rehearse`, or"
    " OFFICINA_STAND_IN=true"
)


@dataclass(frozen=True)
class Endpoint:
    """A model and where to call it."""

    name: str
    #: None: the API of OpenAI itself.
    base_url: str | None
    #: Tokens an answer may have unless the definition says otherwise.
    max_tokens: int
    #: USD per million tokens; None: ask the price library.
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    #: Tokens of its context; None: unknown.
    context_tokens: int | None = None
    #: None: this server wants none.
    key: str | None = field(default=None, repr=False)
    #: What all workers together may ask of it a minute; None: nothing is counted.
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    streams: bool = True


def resolve(settings: Settings, tier: str, model: str | None = None, fallback: tuple[str, ...] = ()) -> list[Endpoint]:
    """Models to try, in order: the one named, the fallbacks, the tier's; each once.

    Raises:
        ModelFault: `model_unresolved` when the named model is not among the settings, or none stands behind the tier.
    """
    if not settings.models:
        raise ModelFault(UNRESOLVED, code="model_unresolved")
    if model is not None and _find(settings, model) is None:
        raise ModelFault(_unknown(settings, model), code="model_unresolved")
    wanted = [model, *fallback, tier] if model is not None else [tier, *fallback]
    found = [_endpoint(settings, chosen) for ref in wanted if (chosen := _find(settings, ref)) is not None]
    usable = [endpoint for endpoint in dict.fromkeys(found) if endpoint.key or endpoint.base_url]
    if not usable:
        raise ModelFault(UNRESOLVED, code="model_unresolved")
    return usable


def knows(settings: Settings, ref: str) -> bool:
    """Whether a tier or model ref has a model behind it: what a definition is checked against before it runs."""
    return _find(settings, ref) is not None


def _find(settings: Settings, ref: str | None) -> Model | None:
    if ref in NEIGHBOURS:
        return next((model for tier, model in _by_nearness(settings, ref)), None)
    return next((model for model in (*settings.models.values(), *settings.more_models) if model.name == ref), None)


def _by_nearness(settings: Settings, tier: str) -> list[tuple[str, Model]]:
    configured: dict[str, Model] = dict(settings.models.items())
    return [(near, configured[near]) for near in NEIGHBOURS[tier] if near in configured]


def _endpoint(settings: Settings, model: Model) -> Endpoint:
    base_url = model.base_url or settings.model_base_url or None
    if base_url is not None and not _is_address(base_url):
        # Not quoted: an address may hold a password.
        words = f"the base URL of model {model.name!r} is no http or https address; check OFFICINA_MODEL_BASE_URL"
        raise ModelFault(words, code="model_unresolved")
    key = model.own_key
    if key is None and model.key_env:
        words = f"model {model.name!r} wants the key in {model.key_env}, and the environment of this process has none"
        raise ModelFault(words, code="model_unresolved")
    if key is None and settings.model_api_key is not None:
        key = settings.model_api_key.get_secret_value()
    return Endpoint(
        name=model.name,
        base_url=base_url,
        max_tokens=model.max_tokens,
        input_price=model.input_price,
        output_price=model.output_price,
        context_tokens=model.context_tokens,
        key=key,
        requests_per_minute=model.requests_per_minute,
        tokens_per_minute=model.tokens_per_minute,
        streams=model.stream,
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _unknown(settings: Settings, ref: str) -> str:
    names = ", ".join(sorted({model.name for model in (*settings.models.values(), *settings.more_models)}))
    return f"the settings have no model {ref!r}; they have {names}, and the tiers fast, standard and deep"
