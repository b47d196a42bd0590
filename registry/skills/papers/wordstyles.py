"""How a Word document looks: fonts, spacing, headings, code, quotes, tables, lists.

Everything visible is a named style, so that whoever opens the file can change all of it in one place.
"""

from dataclasses import dataclass
from typing import Any, Final

from docx.enum.style import WD_STYLE_TYPE
from docx.oxml.ns import nsdecls
from docx.oxml.parser import parse_xml

BODY: Final = "Calibri"
MONO: Final = "Consolas"
INK: Final = "1F2937"
FAINT: Final = "6B7280"
SHADE: Final = "F3F4F6"
LINE: Final = "D1D5DB"
LINK: Final = "1D4ED8"

#: Twentieths of a point that one level of a list or quote moves to the right.
STEP: Final = 360
LIST_LEVELS: Final = 5


@dataclass(frozen=True)
class _Look:
    """One style: its properties of paragraphs and of runs, as the format writes them."""

    kind: WD_STYLE_TYPE
    paragraph: str = ""
    run: str = ""
    based_on: str | None = None


def _font(name: str) -> str:
    return f'<w:rFonts w:ascii="{name}" w:hAnsi="{name}" w:eastAsia="{name}" w:cs="{name}"/>'


def _size(points: float) -> str:
    return f'<w:sz w:val="{round(points * 2)}"/><w:szCs w:val="{round(points * 2)}"/>'


def _spacing(before: float, after: float, line: float = 1.0) -> str:
    return (
        f'<w:spacing w:before="{round(before * 20)}" w:after="{round(after * 20)}"'
        f' w:line="{round(line * 240)}" w:lineRule="auto"/>'
    )


def _heading(level: int, points: float, before: float) -> _Look:
    color = INK if level < 5 else FAINT
    return _Look(
        WD_STYLE_TYPE.PARAGRAPH,
        f'<w:keepNext/><w:keepLines/>{_spacing(before, 4)}<w:outlineLvl w:val="{level - 1}"/>',
        f'{_font(BODY)}<w:b/><w:bCs/><w:color w:val="{color}"/>{_size(points)}',
    )


PARAGRAPH: Final = WD_STYLE_TYPE.PARAGRAPH
CHARACTER: Final = WD_STYLE_TYPE.CHARACTER

_LOOKS: Final[dict[str, _Look]] = {
    "Normal": _Look(PARAGRAPH, _spacing(0, 8, 1.15), f'{_font(BODY)}<w:color w:val="{INK}"/>{_size(11)}'),
    "Title": _Look(
        PARAGRAPH,
        f'<w:keepNext/><w:pBdr><w:bottom w:val="single" w:sz="8" w:space="6" w:color="{LINE}"/></w:pBdr>'
        f"{_spacing(0, 14)}",
        f'{_font(BODY)}<w:b/><w:bCs/><w:color w:val="{INK}"/>{_size(26)}',
    ),
    "Heading 1": _heading(1, 20, 20),
    "Heading 2": _heading(2, 16, 16),
    "Heading 3": _heading(3, 13.5, 14),
    "Heading 4": _heading(4, 12, 12),
    "Heading 5": _heading(5, 11, 10),
    "Heading 6": _heading(6, 10.5, 10),
    "List Paragraph": _Look(PARAGRAPH, f'{_spacing(0, 8, 1.2)}<w:ind w:left="{STEP}"/><w:contextualSpacing/>'),
    "Quote": _Look(
        PARAGRAPH,
        f'<w:pBdr><w:left w:val="single" w:sz="18" w:space="10" w:color="{LINE}"/></w:pBdr>'
        f'{_spacing(0, 8, 1.15)}<w:ind w:left="{STEP}"/>',
        f'<w:color w:val="{FAINT}"/>',
    ),
    "Code Block": _Look(
        PARAGRAPH,
        f'<w:pBdr><w:top w:val="single" w:sz="4" w:space="4" w:color="{SHADE}"/>'
        f'<w:left w:val="single" w:sz="4" w:space="6" w:color="{SHADE}"/>'
        f'<w:bottom w:val="single" w:sz="4" w:space="4" w:color="{SHADE}"/>'
        f'<w:right w:val="single" w:sz="4" w:space="6" w:color="{SHADE}"/></w:pBdr>'
        f'<w:shd w:val="clear" w:color="auto" w:fill="{SHADE}"/>{_spacing(6, 12)}'
        '<w:ind w:left="140" w:right="140"/>',
        f"{_font(MONO)}<w:noProof/>{_size(9.5)}",
        "Normal",
    ),
    "Table Text": _Look(PARAGRAPH, _spacing(2, 2), _size(10), "Normal"),
    "Rule": _Look(
        PARAGRAPH,
        f'<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="{LINE}"/></w:pBdr>{_spacing(0, 12)}',
        based_on="Normal",
    ),
    "Note": _Look(PARAGRAPH, _spacing(0, 3), _size(9.5), "Normal"),
    "Footer": _Look(
        PARAGRAPH, '<w:spacing w:after="0"/><w:jc w:val="center"/>', f'<w:color w:val="{FAINT}"/>{_size(9)}'
    ),
    "Inline Code": _Look(
        CHARACTER, run=f'{_font(MONO)}<w:noProof/>{_size(10)}<w:shd w:val="clear" w:color="auto" w:fill="{SHADE}"/>'
    ),
    "Hyperlink": _Look(CHARACTER, run=f'<w:color w:val="{LINK}"/><w:u w:val="single"/>'),
}

_TABLE: Final = f"""
<w:style {nsdecls("w")} w:type="table" w:customStyle="1" w:styleId="OfficinaTable">
  <w:name w:val="Officina Table"/><w:basedOn w:val="TableNormal"/><w:uiPriority w:val="99"/>
  <w:tblPr><w:tblBorders>
    <w:top w:val="single" w:sz="8" w:space="0" w:color="{FAINT}"/>
    <w:bottom w:val="single" w:sz="8" w:space="0" w:color="{FAINT}"/>
    <w:insideH w:val="single" w:sz="4" w:space="0" w:color="{LINE}"/>
  </w:tblBorders><w:tblCellMar>
    <w:top w:w="30" w:type="dxa"/><w:left w:w="100" w:type="dxa"/>
    <w:bottom w:w="30" w:type="dxa"/><w:right w:w="100" w:type="dxa"/>
  </w:tblCellMar></w:tblPr>
  <w:tblStylePr w:type="firstRow">
    <w:rPr><w:b/><w:bCs/></w:rPr>
    <w:tcPr><w:tcBorders><w:bottom w:val="single" w:sz="8" w:space="0" w:color="{FAINT}"/></w:tcBorders>
      <w:shd w:val="clear" w:color="auto" w:fill="{SHADE}"/></w:tcPr>
  </w:tblStylePr>
</w:style>
"""


def dress(document: Any) -> None:
    """Gives a new document its styles."""
    defaults = document.styles.element.find(".//{*}docDefaults//{*}rFonts")
    if defaults is not None:
        # Theme fonts win over named ones, so they go.
        defaults.getparent().replace(defaults, parse_xml(_font(BODY).replace("<w:rFonts", f"<w:rFonts {nsdecls('w')}")))
    for name, look in _LOOKS.items():
        _apply(document.styles, name, look)
    document.styles.element.append(parse_xml(_TABLE))


def _apply(styles: Any, name: str, look: _Look) -> None:
    style = styles[name] if name in styles else styles.add_style(name, look.kind)
    if look.based_on:
        style.base_style = styles[look.based_on]
    made = style.element
    for tag in ("{*}pPr", "{*}rPr"):
        for old in made.findall(tag):
            made.remove(old)
    if look.paragraph:
        made.append(parse_xml(f"<w:pPr {nsdecls('w')}>{look.paragraph}</w:pPr>"))
    if look.run:
        made.append(parse_xml(f"<w:rPr {nsdecls('w')}>{look.run}</w:rPr>"))


def style_id(name: str) -> str:
    """The id a style goes by inside the file."""
    return name.replace(" ", "")


class Numbering:
    """The lists of a document: bullets share one, each that counts has its own, so that it begins anew."""

    def __init__(self, document: Any) -> None:
        self._element = document.part.numbering_part.element
        taken = [int(one.get(_W + "abstractNumId")) for one in self._element.findall("{*}abstractNum")]
        first = max(taken, default=-1) + 1
        self._next = max((int(one.get(_W + "numId")) for one in self._element.findall("{*}num")), default=0) + 1
        self._bullets, self._counting = first, first + 1
        counted = tuple(f"%{level + 1}." for level in range(LIST_LEVELS))
        # Definitions stand before the lists that use them.
        place = sum(one.tag != _W + "num" for one in self._element)
        self._element.insert(place, parse_xml(_definition(self._bullets, "bullet", ("•", "◦", "▪", "•", "◦"))))
        self._element.insert(place + 1, parse_xml(_definition(self._counting, "decimal", counted)))
        self.bullets = self._add(self._bullets, "")

    def counting(self, level: int, start: int) -> int:
        """The number of a new list that counts from `start` at one level."""
        override = f'<w:lvlOverride w:ilvl="{level}"><w:startOverride w:val="{start}"/></w:lvlOverride>'
        return self._add(self._counting, override)

    def _add(self, definition: int, override: str) -> int:
        number = self._next
        self._next += 1
        text = f'<w:num {nsdecls("w")} w:numId="{number}"><w:abstractNumId w:val="{definition}"/>{override}</w:num>'
        self._element.append(parse_xml(text))
        return number


_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def _definition(number: int, kind: str, labels: tuple[str, ...]) -> str:
    levels = "".join(
        f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{label}"/>'
        f'<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="{STEP * (level + 1)}" w:hanging="{STEP}"/></w:pPr></w:lvl>'
        for level, label in enumerate(labels)
    )
    kind_of_levels = '<w:multiLevelType w:val="hybridMultilevel"/>'
    return f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{number}">{kind_of_levels}{levels}</w:abstractNum>'
