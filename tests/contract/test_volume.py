"""The root of workspaces that all hosts work in: the first one decides, and no other folder passes for it."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator import volume
from orchestrator.settings import Settings
from registry.errors import Refused


@pytest.fixture
def shared(tmp_path: Path, postgres_url: str) -> Settings:
    """A host on a database that others reach, too."""
    return Settings(home=tmp_path, database_url=postgres_url, workspace_root=tmp_path / "root", _env_file=None)  # type: ignore[call-arg]


def elsewhere(settings: Settings, root: Path) -> Settings:
    """Another host, which has its root there."""
    return settings.model_copy(update={"workspace_root": root})


def test_the_first_root_is_marked_and_stays_the_one(shared: Settings) -> None:
    assert volume.fault(shared) is None, "nobody has used one yet"
    volume.take(shared)
    volume.take(shared)
    assert volume.fault(shared) is None
    assert [path.name for path in shared.workspaces.iterdir()] == [volume.MARK]


def test_a_root_that_is_missing_is_refused_and_not_made(shared: Settings, tmp_path: Path) -> None:
    volume.take(shared)
    other = elsewhere(shared, tmp_path / "missing")
    with pytest.raises(Refused, match="is not there: is the volume mounted"):
        volume.take(other)
    assert not other.workspaces.exists()


def test_an_empty_folder_where_the_volume_should_be_is_refused(shared: Settings, tmp_path: Path) -> None:
    volume.take(shared)
    other = elsewhere(shared, tmp_path / "mountpoint")
    other.workspaces.mkdir()
    with pytest.raises(Refused, match="carries no mark"):
        volume.take(other)
    assert list(other.workspaces.iterdir()) == []


def test_the_root_of_another_installation_is_refused(shared: Settings, tmp_path: Path) -> None:
    volume.take(shared)
    other = elsewhere(shared, tmp_path / "other")
    other.workspaces.mkdir()
    (other.workspaces / volume.MARK).write_text("another\n")
    with pytest.raises(Refused, match="carries the mark another"):
        volume.take(other)


def test_a_copy_with_its_mark_takes_the_place_of_the_root(shared: Settings, tmp_path: Path) -> None:
    volume.take(shared)
    shutil.copytree(shared.workspaces, tmp_path / "copy")
    volume.take(elsewhere(shared, tmp_path / "copy"))


def test_hosts_that_begin_at_once_agree(shared: Settings) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: volume.take(shared), range(8)))
    assert [path.name for path in shared.workspaces.iterdir()] == [volume.MARK]


def test_of_two_first_roots_one_is_refused(shared: Settings, tmp_path: Path) -> None:
    other, refused = elsewhere(shared, tmp_path / "other"), []

    def take(settings: Settings) -> None:
        try:
            volume.take(settings)
        except Refused:
            refused.append(settings.workspaces)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(take, (shared, other)))
    assert len(refused) == 1


def test_a_root_that_cannot_be_written_is_refused(shared: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be written"):
        volume.take(elsewhere(shared, tmp_path / "file" / "root"))


def test_a_database_of_one_machine_needs_no_mark(settings: Settings) -> None:
    volume.take(settings)
    assert volume.fault(settings) is None
    assert not settings.workspaces.exists()
