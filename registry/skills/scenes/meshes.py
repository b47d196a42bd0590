"""The solids of a scene as triangles, each where it stands. Y is up; the library's own solids have Z up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import trimesh
from numpy.typing import NDArray

if TYPE_CHECKING:
    from registry.skills.scene3d import Camera, CreateScene, Light, SceneObject

Matrix = NDArray[np.float64]

SECTIONS: Final = 32
#: Triangles of one solid of each kind at most; a capsule without a middle has fewer.
TRIANGLES: Final = {"box": 12, "plane": 2, "sphere": 1280, "cylinder": 128, "cone": 64, "torus": 1024, "capsule": 1024}
_UP: Final = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
DIGITS: Final = 6


@dataclass(frozen=True)
class Solid:
    """One object with its mesh and its place."""

    object: "SceneObject"
    name: str
    parent: str | None
    mesh: Any
    #: Relative to the parent, and in the scene.
    local: Matrix
    world: Matrix


@dataclass(frozen=True)
class Scene:
    """A scene ready to be written."""

    title: str
    background: str
    solids: Sequence[Solid]
    lights: Sequence["Light"]
    camera: "Camera"
    lowest: list[float]
    highest: list[float]
    triangles: int

    def warnings(self, formats: Sequence[str]) -> list[str]:
        """What a reader of the files should know."""
        if "glb" in formats and any(light.kind == "ambient" for light in self.lights):
            return ["glTF has no ambient light: the glb file leaves it out"]
        return []


def count(objects: Sequence["SceneObject"]) -> int:
    """Triangles of a scene at most, told without building it."""
    return sum(TRIANGLES[one.kind] for one in objects)


def build(given: "CreateScene", objects: Sequence["SceneObject"], check: Callable[[], None]) -> Scene:
    """The scene of some objects that were found good."""
    names = _names(objects)
    places = {one.name: place for place, one in enumerate(objects) if one.name is not None}
    local = [_placed(one) for one in objects]
    solids, corners = [], []
    for place, one in enumerate(objects):
        check()
        world = local[place]
        above = one.parent
        while above is not None:
            world = local[places[above]] @ world
            above = objects[places[above]].parent
        mesh = _solid(one)
        parent = None if one.parent is None else names[places[one.parent]]
        solids.append(Solid(one, names[place], parent, mesh, local[place], world))
        points = trimesh.transform_points(mesh.vertices, world)
        corners += [points.min(axis=0), points.max(axis=0)]
    lowest, highest = np.min(corners, axis=0), np.max(corners, axis=0)
    return Scene(
        title=given.title,
        background=given.background,
        solids=solids,
        lights=given.lights if given.lights is not None else _daylight(),
        camera=given.camera or _framing(lowest, highest),
        lowest=_rounded(lowest),
        highest=_rounded(highest),
        triangles=sum(len(solid.mesh.faces) for solid in solids),
    )


def _names(objects: Sequence["SceneObject"]) -> list[str]:
    taken = {one.name for one in objects if one.name is not None}
    names: list[str] = []
    numbers: dict[str, int] = {}
    for one in objects:
        name = one.name
        while name is None:
            numbers[one.kind] = numbers.get(one.kind, 0) + 1
            made = f"{one.kind}-{numbers[one.kind]}"
            name = made if made not in taken else None
        names.append(name)
    return names


def _solid(one: "SceneObject") -> Any:
    """Its mesh around its own centre, Y up."""
    sizes = one.sizes
    if one.kind == "plane":
        x, z = sizes[0] / 2, sizes[1] / 2
        corners = [[-x, 0, -z], [x, 0, -z], [x, 0, z], [-x, 0, z]]
        return trimesh.Trimesh(corners, [[0, 2, 1], [0, 3, 2]], process=False)
    if one.kind == "box":
        return trimesh.creation.box(extents=sizes)
    radius = sizes[0] / 2
    if one.kind == "sphere":
        return trimesh.creation.icosphere(subdivisions=3, radius=radius)
    mesh = _round(one.kind, radius, sizes)
    mesh.apply_transform(_UP)
    mesh.apply_translation(-(mesh.bounds[0] + mesh.bounds[1]) / 2)
    return mesh


def _round(kind: str, radius: float, sizes: list[float]) -> Any:
    if kind == "cylinder":
        return trimesh.creation.cylinder(radius=radius, height=sizes[1], sections=SECTIONS)
    if kind == "cone":
        return trimesh.creation.cone(radius=radius, height=sizes[1], sections=SECTIONS)
    if kind == "torus":
        return trimesh.creation.torus(
            major_radius=radius, minor_radius=sizes[1] / 2, major_sections=SECTIONS, minor_sections=SECTIONS // 2
        )
    # The height of the library's leaves the caps out.
    return trimesh.creation.capsule(radius=radius, height=sizes[1] - sizes[0], count=[SECTIONS, SECTIONS // 2])


def _placed(one: "SceneObject") -> Matrix:
    """Translation, rotation about X, Y and Z in this order of axes, scale."""
    scale = [one.scale] * 3 if isinstance(one.scale, float) else list(one.scale)
    matrix = np.eye(4)
    matrix[:3, :3] = rotation(one.rotation) @ np.diag(scale)
    matrix[:3, 3] = one.position
    return matrix


def rotation(degrees: Sequence[float]) -> Matrix:
    """The matrix of three turns, as scene programs read `XYZ`."""
    (cx, sx), (cy, sy), (cz, sz) = ((math.cos(math.radians(d)), math.sin(math.radians(d))) for d in degrees)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return np.asarray(about_x @ about_y @ about_z, dtype=np.float64)


def _daylight() -> list["Light"]:
    from registry.skills.scene3d import Light

    return [Light(kind="directional", intensity=3.0), Light(kind="ambient", intensity=0.5)]


def _framing(lowest: Matrix, highest: Matrix) -> "Camera":
    """A look from the front, a little from above and the right, far enough to see everything."""
    from registry.skills.scene3d import Camera

    centre = (lowest + highest) / 2
    radius = max(float(np.linalg.norm(highest - lowest)) / 2, 0.01)
    direction = np.array([0.6, 0.45, 1.0])
    position = centre + direction / np.linalg.norm(direction) * radius * 2.8
    x, y, z = _rounded(np.clip(position, -10_000, 10_000))
    tx, ty, tz = _rounded(np.clip(centre, -10_000, 10_000))
    if (x, y, z) == (tx, ty, tz):
        z += 1 if z < 10_000 else -1
    return Camera(position=(x, y, z), target=(tx, ty, tz))


def _rounded(values: Any) -> list[float]:
    return [round(float(value), DIGITS) + 0.0 for value in values]
