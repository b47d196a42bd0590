"""Twenty pages as the web is made of: an article among menus, banners, forms, scripts and footers, in many layouts."""

from dataclasses import dataclass
from typing import Final

_FACTS: Final = [
    ("lighthouse", "The lighthouse of Harrow Point", "was lit in 1868 and shines 23 nautical miles out to sea"),
    ("heron", "Grey herons in the city", "nest in tall plane trees and come back to the same nest each February"),
    ("bread", "Why sourdough rises", "wild yeast and lactic bacteria live together in a starter for decades"),
    ("tram", "The trams of Dornhaven", "carry 41,000 people a day on six lines of narrow gauge"),
    ("glass", "How window glass is made", "molten glass floats on a bath of tin and cools as a flat sheet"),
    ("tide", "Reading a tide table", "the tide turns about every six hours and twelve minutes"),
    ("violin", "What a luthier listens for", "spruce for the top is split, never sawn, and dried for ten years"),
    ("comet", "The comet of 1811", "stayed visible to the naked eye for two hundred and sixty days"),
    ("salt", "Salt pans of the coast", "wind and sun leave seventy grams of salt for each litre of brine"),
    ("bridge", "A bridge that sings", "its cables hum at 98 hertz when the wind comes from the west"),
    ("moss", "Moss gardens", "moss has no roots and drinks through its leaves"),
    ("clock", "The town clock stopped", "a pigeon's nest had blocked the escapement since Tuesday"),
    ("paper", "Paper that lasts", "rag paper without acid keeps for five hundred years"),
    ("wolf", "Wolves return", "eleven packs were counted in the northern forest this winter"),
    ("ferry", "Night ferry to the islands", "it leaves at 22:40 and carries the post and the milk"),
    ("orchard", "Old apple trees", "the orchard keeps ninety kinds that no shop sells"),
    ("radio", "Listening to short waves", "at dusk the upper air bends signals around the earth"),
    ("quarry", "The slate quarry", "a good splitter makes six hundred slates in a day"),
    ("snow", "Counting snow crystals", "a cold dry cloud makes plates, a damp one makes stars"),
    ("map", "The map that was wrong", "an island was drawn for two centuries that nobody ever stood on"),
]
_FILLER: Final = (
    "People who live nearby have known this for a long time, and visitors are told about it within the hour. "
    "Records kept by the parish and by the school agree on the main points, even if they differ in small ones. "
)


@dataclass(frozen=True)
class SamplePage:
    path: str
    title: str
    #: The sentence that has to survive the reading.
    fact: str
    html: str


def _layout(number: int, word: str, title: str, fact: str) -> str:
    menu = "".join(f'<li><a href="/{name}">{name.title()}</a></li>' for name in ("home", "news", "shop", "about"))
    text = f"<p>{_FILLER}</p><p>Here {fact}.</p><p>{_FILLER * 3}</p>"
    more = (
        f'<p>See <a href="/{word}/more?x=1&amp;y=2">more about it</a> or <a href="mailto:x@example.com">write</a>.</p>'
    )
    table = "<table><tr><th>year</th><th>count</th></tr><tr><td>1990</td><td>12</td></tr></table>"
    code = "<pre><code>make all\nmake test</code></pre>"
    listed = "<ul><li>first thing</li><li>second thing</li></ul>"
    body = [
        f"<article><h1>{title}</h1>{text}{more}</article>",
        f'<main><h1>{title}</h1><div class="post-content">{text}{table}</div>{more}</main>',
        f'<div id="content"><div class="entry"><h2>{title}</h2>{text}{listed}{more}</div></div>',
        f'<div class="row"><div class="col"><h1>{title}</h1>{text}{code}{more}</div></div>',
        f"<table><tr><td>{menu}</td><td><h1>{title}</h1>{text}{more}</td></tr></table>",
    ][number % 5]
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{title} &ndash; The Gazette</title>"
        '<style>.x{color:red}</style><script>var secret = "never shown";</script></head><body>'
        f'<nav><ul>{menu}</ul></nav><div class="cookie-banner">We use cookies. <button>Accept</button></div>'
        f'{body}<aside>Advertisement: buy now!</aside><form action="/s"><input name=q></form>'
        "<footer>Copyright The Gazette. <a href=/terms>Terms</a></footer><script>track()</script></body></html>"
    )


PAGES: Final = tuple(
    SamplePage(f"/{word}", title, fact, _layout(number, word, title, fact))
    for number, (word, title, fact) in enumerate(_FACTS)
)
