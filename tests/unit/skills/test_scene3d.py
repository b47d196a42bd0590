"""scene3d.create: scenes that load, with what was asked in its place (spec: skills 7.12)."""

import base64
import hashlib
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from orchestrator.settings import Settings
from orchestrator.workspaces.jail import JailedWorkspace
from registry.skills.context import Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from registry.skills.scene3d import SIZES, SKILLS, SceneObject
from registry.skills.scenes import meshes
from tests.stub_model import StubModel
from workers.models.asking import PlainModel

REGISTRY = SkillRegistry(SKILLS)
BOX = {"kind": "box", "size": [2, 4, 6]}


class Desk:
    def __init__(self, folder: Path, llm: Any = None) -> None:
        self.folder, self.llm = folder, llm
        self.workspace = JailedWorkspace(folder)
        self.events: list[Any] = []

    def call(self, **arguments: Any) -> SkillResult:
        about = SkillContext(
            Caller("person"),
            workspace=self.workspace,
            llm=self.llm,
            emit=lambda kind, data: self.events.append((kind, data)),
        )
        return REGISTRY.invoke("scene3d.create", {"title": "A scene"} | arguments, about)

    def made(self, *objects: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        result = self.call(**({"objects": list(objects)} if objects else {}) | arguments)
        assert result.ok, result.error
        return result.output  # type: ignore[no-any-return]

    def read(self, ending: str, stem: str = "scenes/a-scene") -> bytes:
        return (self.folder / f"{stem}.{ending}").read_bytes()

    def loaded(self) -> trimesh.Scene:
        found = trimesh.load_scene(self.folder / "scenes/a-scene.glb")
        assert isinstance(found, trimesh.Scene)
        return found

    def tree(self) -> dict[str, Any]:
        """The JSON part of the GLB file."""
        content = self.read("glb")
        magic, version, length = struct.unpack("<4sII", content[:12])
        assert (magic, version, length) == (b"glTF", 2, len(content))
        size, kind = struct.unpack("<I4s", content[12:20])
        assert kind == b"JSON"
        return json.loads(content[20 : 20 + size])  # type: ignore[no-any-return]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_box_is_where_it_was_put(desk: Desk) -> None:
    made = desk.made(BOX | {"position": [1, 0, 0]})

    assert (made["objectCount"], made["triangles"]) == (1, 12)
    assert made["boundingBox"] == {"min": [0, -2, -3], "max": [2, 2, 3]}
    assert [one["path"] for one in made["files"]] == ["scenes/a-scene.json", "scenes/a-scene.glb"]
    for one in made["files"]:
        content = (desk.folder / one["path"]).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert len(desk.events) == 2
    assert np.allclose(desk.loaded().bounds, [[0, -2, -3], [2, 2, 3]], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "size", "extents"),
    [
        ("box", [1, 2, 3], [1, 2, 3]),
        ("plane", [2, 3], [2, 0, 3]),
        ("sphere", [4], [4, 4, 4]),
        ("cylinder", [2, 5], [2, 5, 2]),
        ("cone", [2, 5], [2, 5, 2]),
        ("torus", [4, 1], [5, 1, 5]),
        ("capsule", [2, 5], [2, 5, 2]),
        ("capsule", [2, 2], [2, 2, 2]),
        ("box", 3, [3, 3, 3]),
    ],
)
def test_every_kind_has_its_size_around_its_centre_with_y_up(
    desk: Desk, kind: str, size: Any, extents: list[float]
) -> None:
    made = desk.made({"kind": kind, "size": size})

    lowest, highest = made["boundingBox"]["min"], made["boundingBox"]["max"]
    assert np.allclose(np.subtract(highest, lowest), extents, atol=0.03)
    assert np.allclose(np.add(highest, lowest), 0, atol=0.03), "the position is the centre"
    loaded = desk.loaded()
    assert sum(len(mesh.faces) for mesh in loaded.geometry.values()) == made["triangles"]
    assert made["triangles"] <= meshes.TRIANGLES[kind]


def test_a_cone_points_up_and_a_torus_lies_flat(desk: Desk) -> None:
    desk.made({"kind": "cone", "size": [2, 2]})
    cone = next(iter(desk.loaded().geometry.values()))
    top = cone.vertices[cone.vertices[:, 1] > 0.99]
    assert np.allclose(top[:, [0, 2]], 0, atol=1e-5)


def test_children_move_with_their_parents_and_not_with_their_size(desk: Desk) -> None:
    made = desk.made(
        {"kind": "box", "size": 8, "name": "base", "position": [10, 0, 0], "rotation": [0, 90, 0], "scale": 2},
        {"kind": "box", "size": 1, "name": "child", "parent": "base", "position": [0, 0, 5]},
        {"kind": "box", "size": 1, "parent": "child", "position": [0, 3, 0], "scale": [1, 2, 1]},
    )

    loaded = desk.loaded()
    world, _ = loaded.graph.get("child")
    assert np.allclose(world[:3, 3], [20, 0, 0], atol=1e-5)
    box, _ = loaded.graph.get("box-1")
    assert np.allclose(box[:3, 3], [20, 6, 0], atol=1e-5)
    assert np.allclose(made["boundingBox"]["max"], [21, 8, 8], atol=1e-5)
    assert np.allclose(loaded.bounds, [made["boundingBox"]["min"], made["boundingBox"]["max"]], atol=1e-4)


def test_turns_are_about_x_then_y_then_z_of_the_object() -> None:
    assert np.allclose(meshes.rotation([90, 0, 0]) @ [0, 1, 0], [0, 0, 1])
    assert np.allclose(meshes.rotation([0, 90, 0]) @ [0, 0, 1], [1, 0, 0])
    assert np.allclose(meshes.rotation([0, 0, 90]) @ [1, 0, 0], [0, 1, 0])
    both = meshes.rotation([90, 0, 0]) @ meshes.rotation([0, 90, 0])
    assert np.allclose(meshes.rotation([90, 90, 0]), both)


@pytest.mark.parametrize("far", [10_000, -10_000])
@pytest.mark.parametrize("scale", [1, 1e-9, 10_000])
def test_a_scene_at_the_end_of_the_world_is_framed_as_well(desk: Desk, far: int, scale: float) -> None:
    desk.made(BOX | {"position": [far, far, far], "scale": scale}, formats=["json"])
    camera = json.loads(desk.read("json"))["camera"]
    assert camera["position"] != camera["target"]
    assert all(abs(value) <= 10_000 for value in camera["position"] + camera["target"])


def test_the_glb_has_materials_lights_and_a_camera(desk: Desk) -> None:
    made = desk.made(
        BOX | {"color": "#ff8000", "opacity": 0.5, "metalness": 1, "roughness": 0.25, "name": "red </script>"},
        lights=[
            {"kind": "point", "intensity": 2, "position": [0, 5, 0], "color": "#ffffff"},
            {"kind": "directional", "position": [0, 10, 0]},
            {"kind": "ambient"},
        ],
        camera={"position": [0, 0, 20], "target": [0, 0, 0], "fov": 60},
    )

    tree = desk.tree()
    (material,) = tree["materials"]
    pbr = material["pbrMetallicRoughness"]
    assert np.allclose(pbr["baseColorFactor"], [1, 0.215861, 0, 0.5], atol=1e-4), "as light, not as it is written"
    assert (pbr["metallicFactor"], pbr["roughnessFactor"], material["alphaMode"]) == (1, 0.25, "BLEND")
    lights = tree["extensions"]["KHR_lights_punctual"]["lights"]
    assert [light["type"] for light in lights] == ["point", "directional"]
    assert tree["cameras"][0]["perspective"]["yfov"] == pytest.approx(np.radians(60))
    nodes = {node.get("name"): node for node in tree["nodes"]}
    assert nodes["camera"]["translation"] == [0, 0, 20] and nodes["camera"]["rotation"] == [0, 0, 0, 1]
    assert made["warnings"] == ["glTF has no ambient light: the glb file leaves it out"]


def test_the_json_tells_every_default(desk: Desk) -> None:
    desk.made({"kind": "sphere"}, formats=["json"], background="#000000")

    scene = json.loads(desk.read("json"))
    assert (scene["up"], scene["background"], scene["title"]) == ("y", "#000000", "A scene")
    (one,) = scene["objects"]
    assert one["name"] == "sphere-1" and one["size"] == [1] and one["color"] == "#9e9e9e" and one["roughness"] == 0.8
    assert [light["kind"] for light in scene["lights"]] == ["directional", "ambient"]
    assert scene["camera"]["position"] != scene["camera"]["target"]
    assert not (desk.folder / "scenes/a-scene.glb").exists()


def test_the_page_needs_no_network_and_nothing_in_it_ends_its_data(desk: Desk) -> None:
    desk.made(
        BOX | {"name": "</script><script>alert(1)</script>"},
        title="</title><b>",
        formats=["html"],
        path="scenes/a-scene",
    )

    page = desk.read("html").decode()
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "<b>" not in page.split("<script")[0] and "://" not in page.replace("http-equiv", "")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    script, style = page.rsplit("<script>", 1)[1].split("</script>")[0], page.split("<style>")[1].split("</style>")[0]
    for text in (script, style):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    data = json.loads(page.split('id="scene">')[1].split("</script>")[0])
    points = np.frombuffer(base64.b64decode(data["solids"][0]["points"]), "<f4")
    assert points.reshape(-1, 3).max(axis=0).tolist() == [1, 2, 3]


@pytest.mark.skipif(shutil.which("node") is None, reason="reads JavaScript with Node")
def test_node_reads_the_viewer(tmp_path: Path) -> None:
    viewer = Path(meshes.__file__).parent / "viewer.js"
    checked = subprocess.run(["node", "--check", viewer], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_same_scene_gives_the_same_bytes(desk: Desk) -> None:
    arguments: dict[str, Any] = {"formats": ["json", "glb", "html"]}
    objects = [{"kind": kind, "position": [n * 3, 0, 0]} for n, kind in enumerate(SIZES)]

    assert desk.made(*objects, **arguments)["files"] == desk.made(*objects, **arguments)["files"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "exactly one"),
        ({"objects": [BOX], "prompt": "a box"}, "exactly one"),
        ({"objects": []}, "objects"),
        ({"objects": [BOX] * 501}, "objects"),
        ({"prompt": "ab"}, "prompt"),
        ({"objects": [{"kind": "teapot"}]}, "kind"),
        ({"objects": [{"kind": "box", "size": [1, 2]}]}, "3 numbers"),
        ({"objects": [{"kind": "sphere", "size": [1, 2]}]}, "1 numbers"),
        ({"objects": [{"kind": "capsule", "size": [2, 1]}]}, "capsule"),
        ({"objects": [{"kind": "box", "size": 0}]}, "size"),
        ({"objects": [{"kind": "box", "size": 1001}]}, "size"),
        ({"objects": [BOX | {"position": [0, 0]}]}, "position"),
        ({"objects": [BOX | {"position": [0, 0, 10_001]}]}, "position"),
        ({"objects": [BOX | {"scale": 0}]}, "scale"),
        ({"objects": [BOX | {"scale": [1, 1, -1]}]}, "scale"),
        ({"objects": [BOX | {"color": "red"}]}, "color"),
        ({"objects": [BOX | {"opacity": 1.1}]}, "opacity"),
        ({"objects": [BOX | {"name": "a"}, BOX | {"name": "a"}]}, "objects[1].name"),
        ({"objects": [BOX | {"parent": "b"}]}, "no object"),
        ({"objects": [BOX | {"name": "a", "parent": "a"}]}, "below itself"),
        ({"objects": [BOX | {"name": "a", "parent": "b"}, BOX | {"name": "b", "parent": "a"}]}, "below itself"),
        ({"objects": [BOX], "lights": [{"kind": "point"}] * 9}, "lights"),
        ({"objects": [BOX], "lights": [{"kind": "point", "intensity": 21}]}, "intensity"),
        ({"objects": [BOX], "camera": {"position": [0, 0, 0]}}, "same point"),
        ({"objects": [BOX], "camera": {"position": [0, 0, 1], "fov": 5}}, "fov"),
        ({"objects": [BOX], "formats": []}, "formats"),
        ({"objects": [BOX], "formats": ["obj"]}, "formats"),
        ({"objects": [BOX], "path": "a.glb"}, "extension"),
        ({"objects": [BOX], "title": "a\nb"}, "title"),
        ({"objects": [BOX | {"texture": "x"}]}, "texture"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(desk: Desk, arguments: dict[str, Any], word: str) -> None:
    refused = desk.call(**arguments)

    assert refused.code == "invalid_input" and word in str(refused.error), refused
    assert desk.workspace.entries(".", recursive=True) == []


def test_a_scene_of_too_many_triangles_is_too_large_before_it_is_built(desk: Desk) -> None:
    refused = desk.call(objects=[{"kind": "sphere"}] * 200)

    assert (refused.code, refused.duration_ms < 2_000) == ("too_large", True)
    assert desk.workspace.entries(".", recursive=True) == []


def test_a_file_beyond_its_size_is_too_large_and_none_is_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.skills.scene3d.MAX_FILE_BYTES", 2_000)

    assert desk.call(objects=[BOX, {"kind": "sphere"}]).code == "too_large"
    assert desk.workspace.entries(".", recursive=True) == []


def test_five_hundred_objects_in_a_chain_are_built(desk: Desk) -> None:
    objects = [{"kind": "box", "name": "o0"}] + [
        {"kind": "box", "name": f"o{n}", "parent": f"o{n - 1}", "position": [0, 1, 0]} for n in range(1, 500)
    ]
    made = desk.made(*objects)

    assert made["boundingBox"]["max"][1] == pytest.approx(499.5)


def test_a_prompt_becomes_objects_that_are_judged_like_any_others(tmp_path: Path) -> None:
    turns = [
        {"text": '{"objects": [{"kind": "teapot"}]}'},
        {"text": '{"objects": [{"kind": "box", "name": "a"}, {"kind": "box", "name": "a"}]}'},
        {"text": '{"objects": [{"kind": "box", "size": 2}]}'},
    ]
    with StubModel(turns) as server:
        models = {"standard": {"name": "stub", "input_price": 1, "output_price": 1}}
        known = Settings(home=tmp_path, models=models, model_base_url=server.url, _env_file=None)  # type: ignore[arg-type,call-arg]
        made = Desk(tmp_path / "w", PlainModel(known)).made(prompt="one box")
        assert (made["objectCount"], made["wired"]) == (1, True) and made["costUsd"] > 0
        server.turns = turns[:1]
        refused = Desk(tmp_path / "x", PlainModel(known)).call(prompt="one box")
    assert refused.code == "invalid_output" and "kind" in str(refused.error)


def test_without_a_model_or_a_workspace_nothing_is_claimed(tmp_path: Path) -> None:
    nothing = Settings(home=tmp_path, _env_file=None)  # type: ignore[call-arg]
    stand_in = Settings(home=tmp_path, stand_in=True, _env_file=None)  # type: ignore[call-arg]
    for llm in (None, PlainModel(nothing), PlainModel(stand_in)):
        made = Desk(tmp_path / "w", llm).made(prompt="one box")
        assert (made["wired"], made["files"], made["objectCount"]) == (False, [], 0) and "model" in made["note"]
    unwired = REGISTRY.invoke("scene3d.create", {"title": "t", "objects": [BOX]}, SkillContext(Caller("person")))
    assert unwired.ok and (unwired.output["wired"], unwired.output["files"]) == (False, [])


def test_the_triangles_that_are_told_are_those_that_are_built() -> None:
    for kind, triangles in meshes.TRIANGLES.items():
        one = SceneObject(kind=kind, size={"capsule": [1.0, 2.0], "torus": [2.0, 1.0]}.get(kind, 1.0))  # type: ignore[arg-type]
        assert len(meshes._solid(one).faces) == triangles, kind
