"""Every block of README and docs runs here, or says why it does not and is checked as far as it can be.

A page is read from top to bottom in a folder of its own: named blocks become files, commands run against a worker that
is up, with the stand-in as the model, and what a page says they print is compared. Each page is an owner of its own.
"""

import ast
import io
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.settings import Settings
from registry import connections, mcp, playbooks, presets
from registry.generators import Generator
from registry.generators import faults as generator_faults
from registry.graph.validation import Registries, parse_agent
from registry.projects.documents import parse
from registry.projects.reading import project_of
from registry.scripts import read_script
from registry.skills import catalogue
from tests import services
from tests.page_terminal import Terminal
from tests.pages import DOCS, ROOT, Block, Line, blocks, indented, pages, terminal
from tests.workers import WorkerProcess

PAGES = pages()
#: Languages nobody runs: drawings made of letters, and what a program said.
TEXT = {"", "text"}
#: A page whose commands want files that other pages make: page -> (file, page it is of).
BORROWED = {
    "docs/tour.md": [("officina_lines.py", "docs/write-a-skill.md")],
    "docs/tutorial/first-deployment.md": [("bread.yaml", "docs/tutorial/first-project.md")],
}
SMALL = "title: Small\nbrief: B\ntasks:\n  - {key: a, role: writer, instruction: Write a.md., deliverables: [a.md]}\n"
COLUMN = {
    "input": "A column",
    "model": [{"text": "It rained."}, {"text": '{"good": true, "why": "short"}'}],
    "answers": [{"goesOut": True}],
}


def a_pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    written = io.BytesIO()
    canvas = Canvas(written)
    canvas.drawString(72, 720, "Our opening hours are nine to five.")
    canvas.save()
    return written.getvalue()


def a_docx() -> bytes:
    import docx

    written, document = io.BytesIO(), docx.Document()
    document.add_paragraph("A loaf is four euros.")
    document.save(written)
    return written.getvalue()


#: Files a page speaks of as yours.
YOURS: dict[str, dict[str, str | bytes]] = {
    "README.md": {
        "CHANGELOG.md": "# Changes\n\n- It is quicker.\n",
        "asked.yaml": SMALL,
        "agent.yaml": "id: ada\ninstructions: Say yes.\n",
        "turns.yaml": "model: [{text: Yes.}]\n",
    },
    "docs/graphs.md": {"script.json": json.dumps(COLUMN)},
    "docs/memory.md": {"handbook.pdf": a_pdf(), "prices.docx": a_docx(), "notes.md": "# Notes\n\nWe open at nine.\n"},
    "docs/operate.md": {"project.yaml": SMALL},
    "docs/planning.md": {"brief.md": "# A guide\n\nOne page about sourdough.\n"},
    "docs/runbook.md": {"small.yaml": SMALL},
    "docs/security.md": {"small.yaml": SMALL},
}
#: What was done before a page begins.
BEFORE = {
    "README.md": ["officina submit asked.yaml --mode ask"],
    "docs/runbook.md": ["officina submit small.yaml"],
    "docs/security.md": ["officina submit small.yaml"],
}
#: Pages that a test of their own walks.
WALKED = {"docs/tour.md": "tests/docs/test_tour.py"}
SKILLS = frozenset(skill.name for skill in catalogue.build())


def short(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def stack(short_folder: Path, redis_url: str, _migrated_sqlite: Path) -> Iterator[Settings]:
    """A home with its database, and a worker on it that lets the stand-in play."""
    home = short_folder / "pages"
    home.mkdir()
    (home / "officina.db").write_bytes(_migrated_sqlite.read_bytes())
    settings = Settings(
        home=home,
        database_url=f"sqlite:///{home / 'officina.db'}",
        broker_url=redis_url,
        stand_in=True,
        _env_file=None,  # type: ignore[call-arg]
    )
    worker = WorkerProcess(settings, home / "worker.log", {"STAND_IN": "true"}).ready()
    yield settings
    worker.kill()
    services.close_connections(settings.database_url)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if short(page) not in WALKED], ids=short)
def test_the_blocks_of_a_page_run(
    page: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = blocks(page)
    wanted = any(block.language in ("console", "sh") and block.mark is None for block in found)
    stack = request.getfixturevalue("stack") if wanted else Settings(home=tmp_path, _env_file=None)  # type: ignore[call-arg]
    owner = page.stem.replace(".", "-")
    here = Terminal(tmp_path, owner, stack, monkeypatch, capfd)
    lay_out(page, tmp_path)

    for command in BEFORE.get(short(page), ()):
        here.run(Line(command))
    for block in found:
        if block.mark == "not run" or block.mark == "tested":
            continue
        try:
            run(block, here, monkeypatch)
        except BaseException as error:
            error.add_note(f"in the block at {block}")
            raise


def lay_out(page: Path, folder: Path) -> None:
    """Puts the files of a page, and those it borrows, into its folder."""
    for name, whose in BORROWED.get(short(page), ()):
        (text,) = [block.text for block in blocks(ROOT / whose) if block.name == name]
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in YOURS.get(short(page), {}).items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for block in blocks(page):
        if block.name is not None:
            (folder / block.name).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.name).write_text(block.text, encoding="utf-8")


def run(block: Block, here: Terminal, patch: pytest.MonkeyPatch) -> None:
    if block.language in ("console", "sh"):
        for line in terminal(block):
            here.run(line, parsed_only=block.mark == "parsed")
    elif block.language == "python":
        execute(block, here, patch)
    elif block.language in ("yaml", "json"):
        validate(parse(block.text, name=f"it.{block.language}"), here.folder, named=block.name is not None)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "sql":
        return  # on PostgreSQL, below
    elif block.language == "markdown" and "name:" in block.text:
        folder = here.folder / "playbooks" / yaml.safe_load(block.text.split("---")[1])["name"]
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(block.text, encoding="utf-8")
        found = playbooks.scan([folder.parent])
        assert (list(found), list(found.faults)) == ([folder.name], [])
    else:
        assert block.language in TEXT, f"nobody runs {block.language}: mark it"


def execute(block: Block, here: Terminal, patch: pytest.MonkeyPatch) -> None:
    patch.syspath_prepend(str(here.folder))
    with patch.context() as inner:
        for name in [name for name in sys.modules if (here.folder / f"{name}.py").exists()]:
            inner.delitem(sys.modules, name)
        exec(compile(block.text, str(block), "exec"), {"__name__": "page"})


def validate(document: Any, folder: Path, *, named: bool) -> None:
    """Puts a document through the parser of what it is."""
    keys = set(document) if isinstance(document, dict) else set()
    known = Registries(
        skills=SKILLS, documents=frozenset({"house-style"}), agents=presets.load([presets.SHIPPED]).cards
    )
    if "title" in keys and keys & {"tasks", "brief"}:
        project_of(document, folder, known)
    elif "steps" in keys:
        assert generator_faults(Generator.model_validate(document), SKILLS) == []
    elif keys & {"instructions", "prompts", "graph"}:
        good_agent({"id": "it", **document})
    elif keys == {"agents"} and all("instructions" in one for one in document["agents"].values()):
        for name, one in document["agents"].items():
            good_agent({"id": name, **one})
    elif document.get("kind") in connections.KINDS:
        kind = connections.KINDS[document["kind"]]
        connections.ANY.validate_json(json.dumps(document | dict.fromkeys(connections.secret_fields(kind), "secret")))
    elif keys == {"mcpServers"}:
        assert [mcp._config(name, one) for name, one in document["mcpServers"].items()]
    elif isinstance(document, dict) and isinstance(document.get("tasks"), dict):
        read_script(document)
    else:
        assert named, f"nobody knows what this is: name its file, or mark it: {sorted(keys)}"


def good_agent(definition: dict[str, Any]) -> None:
    agent, findings = parse_agent(definition)
    assert agent is not None, [str(finding) for finding in findings]


@pytest.mark.parametrize("page", [p for p in PAGES if "```sql" in p.read_text(encoding="utf-8")], ids=short)
def test_the_queries_of_a_page_run_on_postgres(page: Path, postgres_url: str) -> None:
    from sqlalchemy import create_engine, text

    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        for block in blocks(page):
            if block.language == "sql" and block.mark is None:
                for statement in filter(str.strip, block.text.split(";")):
                    connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_what_is_not_run_says_why(page: Path) -> None:
    for block in blocks(page):
        if block.mark == "tested":
            test = ROOT / block.why
            assert test.exists() and page.name in test.read_text(encoding="utf-8"), f"{block}: {block.why}"
        elif block.mark is not None:
            assert len(block.why.split()) > 2, f"{block} says no reason"
        if block.language == "python":
            ast.parse(block.text)
        if block.language == "json":
            json.loads(block.text)


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_code_is_fenced_and_says_what_it_is_in(page: Path) -> None:
    assert list(indented(page)) == [], "these lines are code by their indent alone"


def test_the_terminal_sees_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], settings: Settings
) -> None:
    page = tmp_path / "page.md"
    here = Terminal(tmp_path, "wrong", settings, monkeypatch, capfd)
    wrong: dict[str, Callable[[], None]] = {}
    for command in ("officina sumbit x", "officina show --jsno", "make it", "export OFFICINA_HOMES=x", "officina show"):
        (line,) = terminal(Block(page, 1, "console", f"$ {command}\n"))
        wrong[command] = lambda line=line: here.run(line)
    (line,) = terminal(Block(page, 1, "console", '$ officina graph eval 1 --slots s.json\n{"value":2}\n'))
    (tmp_path / "s.json").write_text("{}")
    wrong["another output"] = lambda: here.run(line)

    for case in wrong.values():
        with pytest.raises(AssertionError):
            case()


def test_every_page_has_its_place_in_the_navigation() -> None:
    said: Any = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    def places(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        for one in part if isinstance(part, list) else part.values() if isinstance(part, dict) else ():
            yield from places(one)

    made = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    # A page of each skill is found from the list of the skills.
    lost = {name for name in made - set(places(said)) if not name.startswith("skills/")}
    assert lost == set(), "these pages have no place in mkdocs.yml"
    assert set(places(said)) <= made
