"""What a person waits before a command says anything, and which heavy libraries it loads for that."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import projects
from benchmarks.measure import Figure, interleaved

HEAVY = (
    "openai",
    "celery",
    "kombu",
    "redis",
    "sqlalchemy",
    "alembic",
    "jsonschema",
    "lark",
    "rich",
    "jinja2",
    "httpx2",
)
#: Runs a command as its installed script would, and names what it has loaded on a last line.
LOADED = """
import sys
from workers.cli import main
sys.argv[0] = "officina"
try:
    main()
finally:
    print(*sys.modules)
"""


def measure(rounds: int) -> list[Figure]:
    """Milliseconds of whole processes, beside an interpreter that does nothing."""
    with tempfile.TemporaryDirectory(prefix="officina-bench-") as name:
        folder = Path(name)
        commands = _commands(folder)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OFFICINA_")}
        environment["OFFICINA_HOME"] = str(folder / "home")
        # As installed: compiled at the first run, which is not timed, whatever this shell says about bytecode.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")

        def timed(words: Sequence[str]) -> float:
            begun = time.perf_counter()
            _run(words, environment)
            return (time.perf_counter() - begun) * 1000

        for words in commands.values():
            _run(words, environment)
        works = {"python -c pass": partial(timed, [sys.executable, "-c", "pass"])}
        works |= {name: partial(timed, words) for name, words in commands.items()}
        taken = interleaved("start", "ms", max(rounds, 3), works)
        notes = {name: _heavy(words, environment) for name, words in commands.items()}
        return [Figure("start", name, "ms", values, note=notes.get(name)) for name, values in taken.items()]


def _commands(folder: Path) -> dict[str, list[str]]:
    officina = str(Path(sys.executable).with_name("officina"))
    agent, script = folder / "agent.json", folder / "script.json"
    agent.write_text(json.dumps(projects.speaker()), encoding="utf-8")
    script.write_text(json.dumps({"input": "Work.", "model": [{"text": "Done."}]}), encoding="utf-8")
    project = projects.write(folder / "project", projects.speaker(), turns=[{"say": "Done."}])
    return {
        "officina --help": [officina, "--help"],
        "officina graph run": [officina, "graph", "run", str(agent), "--script", str(script), "--json"],
        "officina submit": [officina, "submit", str(project)],
    }


def _heavy(words: Sequence[str], environment: dict[str, str]) -> str:
    loaded = _run([sys.executable, "-P", "-c", LOADED, *words[1:]], environment).splitlines()[-1].split()
    found = [name for name in HEAVY if name in loaded]
    return f"{len(loaded)} modules; {', '.join(found) or 'none heavy'}"


def _run(words: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout
