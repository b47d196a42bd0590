"""The picture of a run: a bar for each figure that has a bound, as a share of that bound, on a logarithmic scale."""

import math
from collections.abc import Sequence
from statistics import median
from xml.sax.saxutils import escape

from benchmarks.measure import Figure, brief

#: Pixels.
ROW, TOP, LEFT, WIDE, RIGHT = 26, 46, 520, 460, 120
#: What the axis shows: shares of the bound.
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
HOLDS, MISSED, LINE, WORDS = "#2b8a5f", "#c0492f", "#8a8f98", "#30343b"


def draw(figures: Sequence[Figure]) -> str:
    """An SVG document; what lies left of the line at 1 holds."""
    bound = [figure for figure in figures if figure.bar is not None]
    height = TOP + ROW * len(bound) + 16
    size = f'width="{LEFT + WIDE + RIGHT}" height="{height}"'
    legend = "Share of each bound: left of 1 holds (median; thin line: lowest to highest round)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" fill="{WORDS}">',
        "<title>What Officina costs, as a share of each workload's bound</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="18" font-weight="bold">{legend}</text>',
    ]
    for tick in TICKS:
        x, strong = _x(tick), tick == 1
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 12}" stroke="{WORDS if strong else LINE}" '
            f'stroke-width="{1.5 if strong else 0.3}"/>'
            f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle">{tick:g}</text>'
        )
    for number, figure in enumerate(bound):
        parts += _row(figure, TOP + ROW * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(figure: Figure, y: int) -> list[str]:
    assert figure.bar is not None
    taken = figure.ratios if figure.bar.of == "ratio" else figure.values
    low, middle, high = (value / figure.bar.most for value in (min(taken), median(taken), max(taken)))
    said = brief(median(taken)) + ("x" if figure.bar.of == "ratio" else f" {figure.unit}".rstrip())
    colour, centre = HOLDS if figure.met else MISSED, y + ROW / 2
    words = f"{figure.workload}: {figure.what}"
    return [
        f'<text x="{LEFT - 8}" y="{centre + 4:.1f}" text-anchor="end">{escape(_short(words))}</text>',
        f'<rect x="{LEFT}" y="{y + 5}" width="{max(1.0, _x(middle) - LEFT):.1f}" height="{ROW - 10}" fill="{colour}"/>',
        f'<line x1="{_x(low):.1f}" x2="{_x(high):.1f}" y1="{centre}" y2="{centre}" stroke="{WORDS}"/>',
        f'<text x="{LEFT + WIDE + 8}" y="{centre + 4:.1f}">{escape(f"{said} ({figure.bar})")}</text>',
    ]


def _short(words: str) -> str:
    return words if len(words) <= 78 else words[:77] + "…"


def _x(share: float) -> float:
    """Where a share of the bound lies; what is beyond the axis lies at its end."""
    low, high = math.log(TICKS[0]), math.log(TICKS[-1])
    at = (math.log(min(max(share, TICKS[0]), TICKS[-1])) - low) / (high - low)
    return LEFT + at * WIDE
