"""A terminal as a page has it: commands of `officina` run in this process, ids stand in place of words in capitals."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import Settings, get_settings, unknown_variables
from tests.commands import Ended
from tests.pages import ROOT, Line, matches, parts
from tests.support import eventually

#: Commands that go on until they are stopped; what they do is tested where they are started (`test_tour`, `test_up`).
SERVE = {("up",), ("api",), ("worker",)}
#: Commands that change nothing.
LOOKS = (["show"], ["list"], ["signals"])
#: Words in capitals that a page writes where an id stands.
_CAPITALS = re.compile(r"[A-Z]{2,}")
_REDIRECTED = re.compile(r"^(?P<command>.*?)\s>\s*(?P<file>[\w./-]+)\s*(?:#.*)?$")
#: What the output of a command is handed to, programs that are not ours.
_TO_OTHERS = re.compile(r" \| (?:jq|grep|less) .*$")
_PIPED = re.compile(r"^printf '(?P<given>[^']*)' \| (?P<command>officina .*)$")


class Terminal:
    """Runs lines in a folder; what `export` sets holds for this page."""

    def __init__(
        self,
        folder: Path,
        owner: str,
        settings: Settings,
        patch: pytest.MonkeyPatch,
        capture: "pytest.CaptureFixture[str]",
    ) -> None:
        self.folder, self._settings, self._patch, self._capture = folder, settings, patch, capture
        self._made = ""
        self._exported: dict[str, str] = {}
        patch.chdir(folder)
        for name, value in {
            "OFFICINA_HOME": str(settings.home),
            "OFFICINA_DATABASE_URL": settings.database_url,
            "OFFICINA_BROKER_URL": settings.broker_url,
            "OFFICINA_OWNER": owner,
            "OFFICINA_STAND_IN": "true",
            "COLUMNS": "200",
        }.items():
            patch.setenv(name, value)

    def run(self, line: Line, *, parsed_only: bool = False) -> None:
        """Runs a line, or only reads it; asserts that it is good and prints what the page says."""
        command, given, target = line.command, "", None
        if (piped := _PIPED.match(command)) is not None:
            command, given = piped["command"], piped["given"].encode().decode("unicode_escape")
        elif (redirected := _REDIRECTED.match(command)) is not None:
            command, target = redirected["command"], redirected["file"]
        command = _TO_OTHERS.sub("", command)
        out = err = ""
        for words in parts(command):
            ended = self._one(words, given, parsed_only)
            out, err = out + ended.stdout, err + ended.stderr
        if target is not None:
            (self.folder / target).write_text(out, encoding="utf-8")
        said = out + err
        if line.expected and not parsed_only and parts(command)[0][1:2] in LOOKS:
            # What is waited for may come a moment later; a reader would look again.
            eventually(lambda: matches(line.expected, "".join(self._look(command))), 30, 0.2)
        elif line.expected and not parsed_only:
            assert matches(line.expected, said), (
                f"{line.command}\nis said to print\n{line.expected}\nand printed\n{said}"
            )

    def _look(self, command: str) -> tuple[str, str]:
        ended = self._one(parts(command)[0], "", False)
        return ended.stdout, ended.stderr

    def _one(self, words: list[str], given: str, parsed_only: bool) -> Ended:
        nothing = Ended(0, "", "")
        while "=" in words[0]:
            self._export(words.pop(0))
        if words[0] == "export":
            self._export(words[1])
            return nothing
        if words[0] == "make":
            dry = subprocess.run(
                ["make", "--dry-run", *words[1:]], cwd=ROOT, check=False, capture_output=True, timeout=20
            )
            assert dry.returncode == 0, dry.stderr
            return nothing
        assert words[0].endswith("officina"), f"{words[0]} is nothing this test can run: mark its block"
        fault = fault_of(words[1:])
        assert fault is None, f"{' '.join(words)}: {fault}"
        if parsed_only or tuple(words[1:2]) in SERVE:
            return nothing
        ended = self._call([self._filled(word, words) for word in words[1:]], given)
        assert ended.returncode == 0, f"{' '.join(words)}\n{ended.stdout}{ended.stderr}"
        if words[1] == "submit":
            self._made = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", ended.stdout)[0]
        return ended

    def _export(self, word: str) -> None:
        name, _, value = word.partition("=")
        assert unknown_variables({name: value}) == [], f"{name} is no setting"
        self._exported[name] = value
        with self._patch.context() as trial:
            for known, one in self._exported.items():
                trial.setenv(known, one)
            Settings(_env_file=None)  # type: ignore[call-arg]

    def _call(self, words: list[str], given: str) -> Ended:
        from workers.cli import main

        self._capture.readouterr()
        with self._patch.context() as patch:
            patch.setattr(sys, "argv", ["officina", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            get_settings.cache_clear()
            with pytest.raises(SystemExit) as left:
                main()
        get_settings.cache_clear()
        out, err = self._capture.readouterr()
        return Ended(int(left.value.code or 0), out, err)

    def _filled(self, word: str, words: list[str]) -> str:
        if not _CAPITALS.fullmatch(word):
            return word
        if word == "ID" and words[1] in ("hooks", "agents"):
            return self._first([words[1], "list", "--json"], "id")
        if word == "SIGNAL" or (word == "ID" and words[1] in ("signals", "answer")):
            return self._first(["signals", "--json"], "id")
        if word in ("PROJECT", "ID"):
            return self._made or self._first(["list", "--json"], "id")
        if word == "TASK":
            return str(self._shown()["tasks"][0]["id"])
        if word == "RUN":
            return str(self._shown()["tasks"][0]["runs"][0]["id"])
        return word

    def _shown(self) -> dict[str, Any]:
        return dict(json.loads(self._call(["show", self._made, "--json"], "").stdout))

    def _first(self, words: list[str], key: str, seconds: float = 20) -> str:
        """Waits for the first of a list: work goes on meanwhile."""
        found = eventually(lambda: json.loads(self._call(words, "").stdout or "[]"), seconds, 0.2)
        return str(found[0][key])


def fault_of(words: list[str]) -> str | None:
    """What is wrong with a command line as it is written; None: the command takes every word of it."""
    from typer.main import get_command

    from workers.cli import application

    command: Any = get_command(application())
    left, context = list(words), None
    if "--help" in words or "--version" in words:
        return None
    try:
        while True:
            inner = getattr(command, "commands", None)
            context = command.make_context(command.name, left, parent=context, resilient_parsing=bool(inner))
            if not inner:
                return None
            left = [*getattr(context, "_protected_args", ()), *context.args]
            if not left:
                return None if getattr(command, "invoke_without_command", False) else "a command is missing"
            if left[0] not in inner:
                return f"there is no command {left[0]}"
            command, left = inner[left[0]], left[1:]
    except Exception as error:
        return str(getattr(error, "message", "") or error or type(error).__name__)


def environment(home: Path) -> dict[str, str]:
    """The environment of a process with this home, and nothing of the person who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFICINA_")}
    return kept | {"OFFICINA_HOME": str(home)}
