"""Draws the diagrams of docs/concepts.md by hand, so to say: boxes and arrows where this file puts them."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from registry.graph.drawing.look import BACKGROUND, BORDER, INK, LINE, MUTED, SANS

_FILLS = {"plain": "#ffffff", "people": "#e7f0fd", "rows": "#e6f4ea", "queue": "#fdf3dc", "work": "#f1eafb"}


@dataclass(frozen=True)
class Box:
    """A box with a title and a line below it."""

    x: float
    y: float
    w: float
    h: float
    title: str
    note: str = ""
    fill: str = "plain"

    def drawn(self) -> str:
        middle, line = self.x + self.w / 2, self.y + (self.h / 2 + 5 if not self.note else self.h / 2 - 3)
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.w:g}" height="{self.h:g}"'
        parts = [f'<rect {place} rx="8" fill="{_FILLS[self.fill]}" stroke="{BORDER}" stroke-width="1.5"/>']
        parts.append(_text(middle, line, self.title, weight=600))
        if self.note:
            parts.append(_text(middle, line + 18, self.note, size=12, colour=MUTED))
        return "".join(parts)


@dataclass(frozen=True)
class Arrow:
    """A line with a head through these points, and a word beside its middle."""

    points: tuple[tuple[float, float], ...]
    word: str = ""
    at: tuple[float, float] | None = None

    def drawn(self) -> str:
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in self.points)
        line = f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#head)"/>'
        if not self.word:
            return line
        (x0, y0), (x1, y1) = self.points[0], self.points[-1]
        x, y = self.at or ((x0 + x1) / 2, (y0 + y1) / 2 - 7)
        return line + _text(x, y, self.word, size=12, colour=MUTED)


def _text(x: float, y: float, text: str, *, size: int = 14, weight: int = 400, colour: str = INK) -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="middle"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>'


def _picture(width: int, height: int, title: str, parts: Iterable[Box | Arrow]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="{SANS}"><title>{escape(title)}</title><defs><marker id="head" viewBox="0 0 8 8" '
        f'refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{LINE}"/>'
        f'</marker></defs><rect width="{width}" height="{height}" rx="10" fill="{BACKGROUND}"/>'
    )
    return head + "".join(part.drawn() for part in parts) + "</svg>\n"


def diagrams() -> dict[str, str]:
    """Name of the file in `images` -> the picture."""
    return {"parts.svg": _parts(), "nesting.svg": _nesting(), "run-states.svg": _states()}


def _parts() -> str:
    return _picture(
        760,
        330,
        "People and programs talk to the API; it writes rows and sends wake-ups; workers take both",
        [
            Box(20, 30, 170, 60, "People", "desk, commands", "people"),
            Box(20, 230, 170, 60, "Programs", "HTTP, Python", "people"),
            Box(270, 130, 170, 64, "Orchestrator", "API, desk, producer", "plain"),
            Box(530, 30, 210, 60, "Queue", "Redis or RabbitMQ: wake-ups", "queue"),
            Box(530, 130, 210, 64, "Workers", "engine, sandbox, clock", "work"),
            Box(530, 234, 210, 60, "Database", "SQLite or Postgres: the truth", "rows"),
            Arrow(((190, 60), (230, 60), (265, 150))),
            Arrow(((190, 260), (230, 260), (265, 176))),
            Arrow(((440, 148), (480, 60), (524, 60)), "look at this row", (410, 88)),
            Arrow(((440, 178), (480, 264), (524, 264)), "rows", (436, 236)),
            Arrow(((635, 90), (635, 124))),
            Arrow(((635, 194), (635, 228)), "checkpoints", (680, 216)),
        ],
    )


def _nesting() -> str:
    return _picture(
        760,
        300,
        "A project holds tasks, a task holds runs, a run goes in steps and may have child runs",
        [
            Box(20, 30, 150, 56, "Project", "brief, plan, workspace", "people"),
            Box(230, 20, 120, 44, "Task", "", "rows"),
            Box(230, 80, 120, 44, "Task", "", "rows"),
            Arrow(((170, 58), (200, 42), (224, 42))),
            Arrow(((170, 58), (200, 102), (224, 102))),
            Arrow(((290, 64), (290, 75)), "dependsOn", (340, 75)),
            Box(410, 80, 140, 44, "Run", "", "work"),
            Arrow(((350, 102), (404, 102)), "has", (377, 95)),
            Box(410, 180, 140, 44, "Child run", "", "work"),
            Box(410, 240, 140, 44, "Child run", "", "work"),
            Arrow(((480, 124), (480, 174)), "spawn, map", (520, 155)),
            Arrow(((440, 124), (390, 150), (390, 262), (404, 262))),
            Box(600, 40, 140, 36, "Step"),
            Box(600, 84, 140, 36, "Step"),
            Box(600, 128, 140, 36, "Step"),
            Arrow(((550, 102), (594, 102))),
            Arrow(((670, 164), (670, 196)), "", None),
            Box(600, 200, 140, 50, "Checkpoint", "after each step", "rows"),
        ],
    )


def _states() -> str:
    return _picture(
        760,
        290,
        "A run is queued, claimed, running; it parks and is queued again; it ends completed, failed or cancelled",
        [
            Box(20, 110, 120, 50, "queued", "", "queue"),
            Box(230, 110, 120, 50, "running", "under a lease", "work"),
            Box(440, 30, 140, 50, "needs_input", "a person answers", "people"),
            Box(440, 110, 140, 50, "waiting", "timer, gate, children", "people"),
            Box(630, 30, 110, 40, "completed", "", "rows"),
            Box(630, 90, 110, 40, "failed"),
            Box(630, 150, 110, 40, "cancelled"),
            Arrow(((140, 128), (224, 128)), "claim", (182, 121)),
            Arrow(((230, 148), (146, 148)), "lease ran out", (188, 166)),
            Arrow(((350, 122), (395, 55), (434, 55)), "asks", (372, 72)),
            Arrow(((350, 138), (434, 138)), "parks", (392, 131)),
            Arrow(((510, 160), (510, 240), (80, 240), (80, 166)), "answer, time, last child: queued again", (290, 258)),
            Arrow(((440, 68), (420, 88), (420, 220), (110, 220), (110, 166))),
            Arrow(((290, 160), (290, 205), (600, 205), (604, 110), (624, 110)), "ends", (618, 205)),
        ],
    )
