"""How types of nodes look: a colour, an outline and an icon each, so that one of the three is enough to tell them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

BACKGROUND, BORDER, INK, MUTED = "#fbfbfa", "#d5d8dc", "#1f2328", "#59636e"
LINE, BACK, PLATE, PLATE_LINE, WARN = "#59636e", "#7a3fb8", "#ffffff", "#c4cad1", "#9a6700"
SANS: Final = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

#: From width and height to paths, each painted over the one before.
Outline = Callable[[float, float], tuple[str, ...]]


@dataclass(frozen=True)
class Look:
    fill: str
    stroke: str
    outline: Outline
    #: Paths in a square of 16, drawn with the stroke.
    icon: str


def _rounded(x: float, y: float, w: float, h: float, radius: float) -> str:
    r = min(radius, w / 2, h / 2)
    arc = f"a{r:g} {r:g} 0 0 1"
    across, down = w - 2 * r, h - 2 * r
    return (
        f"M{x + r:g} {y:g}h{across:g}{arc} {r:g} {r:g}v{down:g}{arc} {-r:g} {r:g}"
        f"h{-across:g}{arc} {-r:g} {-r:g}v{-down:g}{arc} {r:g} {-r:g}Z"
    )


def _soft(w: float, h: float) -> tuple[str, ...]:
    return (_rounded(0, 0, w, h, 12),)


def _stadium(w: float, h: float) -> tuple[str, ...]:
    return (_rounded(0, 0, w, h, 22),)


def _double(w: float, h: float) -> tuple[str, ...]:
    """A stadium with a second line inside."""
    return _rounded(0, 0, w, h, 22), _rounded(3.5, 3.5, w - 7, h - 7, 18.5)


def _barred(w: float, h: float) -> tuple[str, ...]:
    """A box with a bar at each side: work done by something else."""
    return (f"M0 0H{w:g}V{h:g}H0ZM5 0V{h:g}M{w - 5:g} 0V{h:g}",)


def _octagon(w: float, h: float) -> tuple[str, ...]:
    c = 11
    return (f"M{c} 0H{w - c:g}L{w:g} {c}V{h - c:g}L{w - c:g} {h:g}H{c}L0 {h - c:g}V{c}Z",)


def _folded(w: float, h: float) -> tuple[str, ...]:
    """A note with a folded corner."""
    return (f"M0 0H{w - 12:g}L{w:g} 12V{h:g}H0ZM{w - 12:g} 0V12H{w:g}",)


def _delay(w: float, h: float) -> tuple[str, ...]:
    """Straight on the left and round on the right."""
    r = min(24.0, h / 2)
    return (f"M0 0H{w - r:g}A{r:g} {r:g} 0 0 1 {w:g} {r:g}V{h - r:g}A{r:g} {r:g} 0 0 1 {w - r:g} {h:g}H0Z",)


def _arrow(w: float, h: float) -> tuple[str, ...]:
    """Pointed on the right."""
    return (f"M0 0H{w - 13:g}L{w:g} {h / 2:g}L{w - 13:g} {h:g}H0Z",)


def _stack(w: float, h: float) -> tuple[str, ...]:
    """A box before two others."""
    return tuple(f"M{by:g} {by:g}H{w - 7 + by:g}V{h - 7 + by:g}H{by:g}Z" for by in (7, 3.5, 0))


#: Icons, drawn in a square of 16 units.
_ICONS: Final = {
    "play": "M5 2.5L13 8L5 13.5Z",
    "stop": "M3.5 3.5H12.5V12.5H3.5Z",
    "speech": "M2 3H14V11H8L4.5 14V11H2ZM5 6H11M5 8.5H9",
    "wrench": (
        "M13.8 4.2a3.4 3.4 0 0 1-4.6 4.2L4.6 13a1.6 1.6 0 0 1-2.2-2.2L7 6.2A3.4 3.4 0 0 1 11.4 1.8L9.4 3.9L11.6 6Z"
    ),
    "pencil": "M3 13L3.6 10.2L10.8 3L13 5.2L5.8 12.4ZM9 4.8L11.2 7",
    "turn": "M2.5 3V6.5A3 3 0 0 0 5.5 9.5H13M9.5 6L13 9.5L9.5 13",
    "person": "M8 8a3 3 0 1 0 0-6a3 3 0 1 0 0 6ZM2.5 14.5c0-3.5 2.4-5 5.5-5s5.5 1.5 5.5 5",
    "clock": "M8 14.5a6.5 6.5 0 1 0 0-13a6.5 6.5 0 1 0 0 13ZM8 4.5V8L10.5 10",
    "tree": "M8 1.5V10.5M8 5.5L3 10.5M8 5.5L13 10.5M1.5 10.5H4.5V14H1.5ZM6.5 10.5H9.5V14H6.5ZM11.5 10.5H14.5V14H11.5Z",
    "grid": "M2 2H6.5V6.5H2ZM9.5 2H14V6.5H9.5ZM2 9.5H6.5V14H2ZM9.5 9.5H14V14H9.5Z",
    "out": "M2 8H11M7.5 4.5L11 8L7.5 11.5M14 3V13",
    "swap": "M1.5 5.5H12M9 2.5L12 5.5L9 8.5M14.5 10.5H4M7 7.5L4 10.5L7 13.5",
    "none": "",
}
_GREY, _ORANGE, _PURPLE = ("#eceff2", "#4c5560"), ("#ffe9d6", "#a03f00"), ("#eee4fd", "#5c31a8")
LOOKS: Final[Mapping[str, Look]] = {
    "core:start": Look(*_GREY, _stadium, _ICONS["play"]),
    "core:end": Look(*_GREY, _double, _ICONS["stop"]),
    "llm:generate": Look("#ddeeff", "#0b5cad", _soft, _ICONS["speech"]),
    "tool:call": Look("#def3e4", "#186c36", _barred, _ICONS["wrench"]),
    "control:assign": Look("#f7f0d3", "#7a5d00", _folded, _ICONS["pencil"]),
    "control:goto": Look(*_GREY, _arrow, _ICONS["turn"]),
    "control:interrupt": Look(*_ORANGE, _octagon, _ICONS["person"]),
    "control:wait": Look(*_ORANGE, _delay, _ICONS["clock"]),
    "control:spawn": Look(*_PURPLE, _stack, _ICONS["tree"]),
    "control:map": Look(*_PURPLE, _soft, _ICONS["grid"]),
    "control:yield": Look(*_PURPLE, _delay, _ICONS["out"]),
    "control:handoff": Look("#fde3ee", "#a02a62", _arrow, _ICONS["swap"]),
    "item": Look("#ffffff", "#5c31a8", _stadium, _ICONS["none"]),
}
