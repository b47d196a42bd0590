"""Pictures from an OpenAI-compatible images endpoint, through the guard of the network (spec: skills 7.15)."""

import base64
import binascii
import time
from decimal import Decimal
from typing import Final, Protocol
from urllib.parse import urlsplit

from orchestrator.sections import ImageModel
from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import SkillError
from registry.jsontext import JsonFault, compact, parse
from registry.skills.context import Caller
from registry.skills.network import MIB, Incoming, Network, NetworkFault, Outgoing
from registry.skills.ports import Painted, Wanted
from workers.models import faults

MICRO: Final = 1_000_000
#: Where models are asked when the settings name no place.
OPENAI: Final = "https://api.openai.com/v1"
#: Bytes of one picture, and of the answer that may hold four of them as text.
MAX_PICTURE: Final = 20 * MIB
MAX_ANSWER: Final = 110 * MIB
#: How providers say that they do not draw this.
_REFUSALS: Final = ("content_policy", "content_filter", "moderation", "safety")


class Painter(Protocol):
    """Someone who makes pictures, and says before what they cost at most."""

    @property
    def placeholder(self) -> bool: ...

    def worst_micro(self, wanted: Wanted) -> int | None:
        """Micro-USD the pictures may cost; 0: nothing, None: the price is unknown."""
        ...

    def paint(self, caller: Caller, wanted: Wanted) -> Painted | None:
        """See `Images`."""
        ...


class PlainPainter:
    """The endpoint of the settings; also the `Images` port of a person's own call, which no budget bounds."""

    def __init__(self, settings: Settings, net: Network) -> None:
        self._settings = settings
        self._net = net

    @property
    def placeholder(self) -> bool:
        return self._settings.image_placeholder

    def worst_micro(self, wanted: Wanted) -> int | None:
        """Micro-USD of all of them at the price of the settings."""
        chosen = self._settings.images
        if chosen is None:
            return 0
        return None if chosen.price is None else int(Decimal(wanted.count) * chosen.price * MICRO)

    def paint(self, caller: Caller, wanted: Wanted) -> Painted | None:
        """See `Images`."""
        chosen = self._settings.images
        if chosen is None or self._settings.stand_in:
            return None
        key = self._key(chosen)
        until = time.monotonic() + wanted.timeout_s
        answer = self._net.send(_request(chosen, key, wanted), cancelled=wanted.cancelled)
        if not answer.ok:
            raise _refused(answer, chosen, key)
        made = _pictures(answer)
        pictures = tuple(self._picture(one, wanted, until) for one in made[: wanted.count])
        return Painted(
            pictures=pictures,
            provider=urlsplit(chosen.base_url).hostname or "",
            model=chosen.name,
            revised_prompt=next((str(one["revised_prompt"]) for one in made if one.get("revised_prompt")), None),
            cost_micro=None if chosen.price is None else int(Decimal(len(pictures)) * chosen.price * MICRO),
        )

    def _key(self, chosen: ImageModel) -> str | None:
        """Its own key; that of the models only where they are asked at the same place."""
        found = chosen.key
        if found is None and same_place(chosen.base_url, self._settings.model_base_url or OPENAI):
            found = self._settings.model_api_key
        return found.get_secret_value() if found else None

    def _picture(self, one: dict[str, Json], wanted: Wanted, until: float) -> bytes:
        text = one.get("b64_json")
        if isinstance(text, str):
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise SkillError("invalid_output", "the provider sent a picture that is no base64") from None
        if not isinstance(one.get("url"), str):
            raise SkillError("invalid_output", "the provider's answer holds no picture")
        # An address in an answer is no better than one on a page: it goes through the guard, and without the key.
        try:
            found = self._net.send(
                Outgoing(one["url"], timeout_s=max(0.0, until - time.monotonic()), max_bytes=MAX_PICTURE, whole=True),
                cancelled=wanted.cancelled,
            )
        except NetworkFault as fault:
            if fault.code == "invalid_input":  # it is the provider's address that is no good, not the caller's input
                raise SkillError("invalid_output", f"the provider names no usable address: {fault.message}") from None
            raise
        if not found.ok:
            raise SkillError("remote_error", f"the provider's picture cannot be fetched: status {found.status}")
        return found.body


def same_place(one: str, other: str) -> bool:
    """Whether two base URLs are at one host: the key of one may then be shown to the other."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url.lower())
    return parts.scheme, parts.netloc


def _request(chosen: ImageModel, key: str | None, wanted: Wanted) -> Outgoing:
    body: dict[str, Json] = {"model": chosen.name, "prompt": wanted.prompt, "n": wanted.count, "size": wanted.size}
    if wanted.variant is not None and chosen.takes_seed:
        body["seed"] = wanted.variant
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    return Outgoing(
        f"{chosen.base_url}/images/generations",
        method="POST",
        headers=headers,
        body=compact(body).encode(),
        timeout_s=wanted.timeout_s,
        max_bytes=MAX_ANSWER,
        whole=True,
        redirects=0,
    )


def _pictures(answer: Incoming) -> list[dict[str, Json]]:
    try:
        said = parse(answer.body)
    except JsonFault as fault:
        raise SkillError("remote_error", f"the provider's answer is {fault}") from None
    data = said.get("data") if isinstance(said, dict) else None
    made = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    if not made:
        raise SkillError("invalid_output", "the provider's answer holds no picture")
    return made


def _refused(answer: Incoming, chosen: ImageModel, key: str | None) -> SkillError:
    try:
        said = parse(answer.body)
    except JsonFault:
        said = None
    error = said.get("error", said) if isinstance(said, dict) else said
    code = str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""
    told = faults.masked(faults.words(error), key)
    words = f"image model {chosen.name!r} answered {answer.status}" + (f": {told}" if told else "")
    if any(refusal in f"{code} {told}".lower() for refusal in _REFUSALS):
        return SkillError("remote_error", f"content_filter: {words}")
    if answer.status == 429:
        return SkillError("rate_limited", words, retryable=True)
    return SkillError("remote_error", words, retryable=answer.status >= 500)
