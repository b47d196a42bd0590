"""What is no project is told so, and never becomes a brief by accident."""

from pathlib import Path

import pytest

from registry.errors import WrongUse
from registry.graph.checks.known import Registries
from registry.projects.reading import project_of, read_submission

KNOWN = Registries(skills=frozenset(), documents=frozenset())


@pytest.mark.parametrize("make", [lambda folder: str(folder), lambda _: "-", lambda folder: str(folder / "gone.yaml")])
def test_a_folder_a_dash_and_a_missing_file_are_refused(tmp_path: Path, make) -> None:
    with pytest.raises(WrongUse):
        read_submission(make(tmp_path), KNOWN)


def test_a_text_with_a_nul_is_refused_at_its_place(tmp_path: Path) -> None:
    task = {"key": "a", "role": "writer", "instruction": "x\0y", "input": {"deep": ["\0"]}}
    with pytest.raises(WrongUse) as refused:
        project_of({"title": "t", "tasks": [task]}, tmp_path, KNOWN)
    places = [fault.path for fault in refused.value.faults if fault.code == "invalid_text"]
    assert places == ["tasks[0].input.deep[0]", "tasks[0].instruction"]
