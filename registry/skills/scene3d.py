"""`scene3d.create`: a scene of simple solids as JSON, GLB and a page that shows it (spec: skills 7.12)."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from registry.base import Json, Model
from registry.errors import Detail, SkillError
from registry.skills.context import SkillContext, Workspace
from registry.skills.paths import WorkspacePath, slug, stem
from registry.skills.ports import Ask
from registry.skills.skill import Skill, skill
from registry.text import not_blank, one_line

NOT_WIRED: Final = "no workspace is wired to this call; nothing was written"
NO_MODEL: Final = "no model is wired to this call: it makes no objects of a prompt; give objects instead"
MAX_TRIANGLES: Final = 200_000
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
MODEL_TRIES: Final = 3

Kind = Literal["box", "sphere", "cylinder", "cone", "torus", "plane", "capsule"]
Format = Literal["json", "glb", "html"]
#: Numbers that say the size of each kind.
SIZES: Final[dict[str, int]] = {"box": 3, "sphere": 1, "cylinder": 2, "cone": 2, "torus": 2, "plane": 2, "capsule": 2}

Color = Annotated[str, StringConstraints(pattern=r"^#[0-9a-fA-F]{6}$")]
Coordinate = Annotated[float, Field(ge=-10_000, le=10_000)]
Point = tuple[Coordinate, Coordinate, Coordinate]
Length = Annotated[float, Field(ge=0.001, le=1_000)]
Factor = Annotated[float, Field(gt=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(one_line)]


class SceneObject(Model):
    kind: Kind
    size: Length | Annotated[list[Length], Field(min_length=1, max_length=3)] = Field(
        default=1.0,
        description="box [x, y, z]; plane [x, z]; sphere [diameter]; cylinder, cone, capsule [diameter, height]; "
        "torus [ring, tube diameters]; one number stands for all",
    )
    position: Point = Field(default=(0.0, 0.0, 0.0), description="of the centre, relative to the parent; Y is up")
    rotation: Point = Field(default=(0.0, 0.0, 0.0), description="degrees about X, Y, Z")
    scale: Factor | tuple[Factor, Factor, Factor] = 1.0
    color: Color = "#9e9e9e"
    opacity: Share = 1.0
    metalness: Share = 0.0
    roughness: Share = 0.8
    name: Name | None = None
    parent: Name | None = None

    @model_validator(mode="after")
    def _size_fits(self) -> "SceneObject":
        if isinstance(self.size, list) and len(self.size) != SIZES[self.kind]:
            raise ValueError(
                f"the size of a {self.kind} has {SIZES[self.kind]} numbers, and {len(self.size)} are given"
            )
        if self.kind == "capsule" and self.sizes[1] < self.sizes[0]:
            raise ValueError("a capsule is at least as high as it is wide")
        return self

    @property
    def sizes(self) -> list[float]:
        """Every number of its size."""
        return list(self.size) if isinstance(self.size, list) else [self.size] * SIZES[self.kind]


class Light(Model):
    kind: Literal["ambient", "directional", "point"]
    color: Color = "#ffffff"
    intensity: float = Field(default=1.0, ge=0, le=20)
    position: Point = (5.0, 10.0, 7.0)


class Camera(Model):
    position: Point
    target: Point = (0.0, 0.0, 0.0)
    fov: float = Field(default=45.0, ge=10, le=120)

    @model_validator(mode="after")
    def _looks_somewhere(self) -> "Camera":
        if self.position == self.target:
            raise ValueError("position and target are the same point")
        return self


def _distinct(formats: list[Format]) -> list[Format]:
    return list(dict.fromkeys(formats))


class CreateScene(Model):
    title: Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(one_line)]
    objects: list[SceneObject] | None = Field(default=None, min_length=1, max_length=500)
    prompt: Annotated[str, StringConstraints(min_length=3, max_length=1000), AfterValidator(not_blank)] | None = Field(
        default=None, description="instead of objects: what a model makes them of"
    )
    lights: list[Light] | None = Field(default=None, max_length=8, description="sun and ambient when left out")
    camera: Camera | None = Field(default=None, description="frames the scene when left out")
    background: Color = "#f2f2f2"
    path: Annotated[WorkspacePath, stem(".json", ".glb", ".html", longest=".json")] | None = Field(
        default=None, description="without extension; scenes/<title> when left out"
    )
    formats: Annotated[list[Format], Field(min_length=1, max_length=3), AfterValidator(_distinct)] = Field(
        default=["json", "glb"]
    )

    @model_validator(mode="after")
    def _one_source(self) -> "CreateScene":
        if (self.objects is None) == (self.prompt is None):
            raise ValueError("exactly one of objects and prompt says what is in the scene")
        for path, words in object_faults(self.objects or []):
            raise ValueError(f"{path} {words}")
        return self


class SceneFile(Model):
    path: str
    format: Format
    bytes: int
    sha256: str


class Box(Model):
    min: list[float]
    max: list[float]


class CreatedScene(Model):
    files: list[SceneFile] = Field(default_factory=list)
    object_count: int = 0
    triangles: int = 0
    bounding_box: Box | None = None
    warnings: list[str] = Field(default_factory=list)
    #: Of the model that made the objects of a prompt.
    cost_usd: float | None = None
    wired: bool = True
    note: str | None = None


@skill(
    "scene3d.create",
    title="Create a 3D scene",
    timeout_s=20,
    loads=("registry.skills.scenes.export", "registry.skills.scenes.meshes"),
    operations=("fs.write",),
    effect="idempotent",
    needs=("workspace", "llm"),
    cost_bearing=True,
)
def create(given: CreateScene, context: SkillContext) -> CreatedScene:
    """Makes a 3D scene of 1 to 500 simple solids (box, sphere, cylinder, cone, torus, plane, capsule), with colours,
    parents, lights and a camera, and writes it as JSON, as GLB (glTF 2), or as a web page that shows it and needs no
    network. Y is up; a position is the centre, relative to the parent. `prompt` lets a model choose the objects, which
    costs money. At most 200,000 triangles and 8 MiB a file. No textures, no animation, no meshes of your own."""
    if context.workspace is None:
        return CreatedScene(wired=False, note=NOT_WIRED)
    objects, cost = given.objects, None
    if objects is None:
        made = _of_prompt(given, context)
        if made is None:
            return CreatedScene(wired=False, note=NO_MODEL)
        objects, cost = made
    from registry.skills.scenes import export, meshes

    if (most := meshes.count(objects)) > MAX_TRIANGLES:
        raise SkillError("too_large", f"the scene would have {most} triangles, and {MAX_TRIANGLES} is the most")
    scene = meshes.build(given, objects, context.check)
    contents = {wanted: export.WRITERS[wanted](scene) for wanted in given.formats}
    for wanted, content in contents.items():
        if len(content) > MAX_FILE_BYTES:
            words = f"the {wanted} file would have {len(content)} bytes, and {MAX_FILE_BYTES} is the most"
            raise SkillError("too_large", words)
    start = given.path or f"scenes/{slug(given.title)}"
    return CreatedScene(
        files=[_put(context, context.workspace, f"{start}.{wanted}", wanted, contents[wanted]) for wanted in contents],
        object_count=len(objects),
        triangles=scene.triangles,
        bounding_box=Box(min=scene.lowest, max=scene.highest),
        warnings=scene.warnings(given.formats),
        cost_usd=cost,
    )


def object_faults(objects: list[SceneObject]) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) between the objects of a scene."""
    places: dict[str, int] = {}
    for place, one in enumerate(objects):
        if one.name is not None and places.setdefault(one.name, place) != place:
            yield f"objects[{place}].name", f"{one.name!r} is the name of objects[{places[one.name]}] too"
    for place, one in enumerate(objects):
        if one.parent is not None and one.parent not in places:
            yield f"objects[{place}].parent", f"{one.parent!r} is no object of the scene"
            return
    for place, one in enumerate(objects):
        seen = {place}
        while one.parent is not None:
            above = places[one.parent]
            if above in seen:
                yield f"objects[{place}].parent", "is below itself"
                return
            seen.add(above)
            one = objects[above]


def _put(context: SkillContext, workspace: Workspace, path: str, wanted: Format, content: bytes) -> SceneFile:
    context.check()
    stored = workspace.write(path, content, max_bytes=MAX_FILE_BYTES)
    told: dict[str, Json] = {"path": stored.path, "bytes": stored.bytes, "sha256": stored.sha256}
    context.emit("file.written", told | {"skill": "scene3d.create"})
    return SceneFile(path=stored.path, format=wanted, bytes=stored.bytes, sha256=stored.sha256)


class _Answer(Model):
    objects: list[SceneObject] = Field(min_length=1, max_length=500)


_SYSTEM: Final = """You compose small 3D scenes of simple solids. Y is up, lengths are metres, the ground is y = 0, and
a position is the centre of an object. Let nothing overlap by accident, and use few objects with clear colours."""


def _of_prompt(given: CreateScene, context: SkillContext) -> tuple[list[SceneObject], float | None] | None:
    """The objects a model makes of a prompt, judged like any others, and what they cost in USD; None: no model."""
    if context.llm is None:
        return None
    from registry.skills.contract import ModelContract
    from registry.skills.structured import read_answer

    contract = ModelContract(_Answer)
    repairs: list[tuple[str, str]] = []
    costs: list[int | None] = []
    for _ in range(MODEL_TRIES):
        if context.meter is not None:
            context.meter.admit("llm", context.caller.owner_id)
        said = context.llm.ask(
            context.caller,
            Ask(
                skill="scene3d.create",
                prompt=f"Title: {given.title}\n\n{given.prompt}",
                system=_SYSTEM,
                max_tokens=8192,
                schema=contract.schema,
                repairs=tuple(repairs),
                timeout_s=context.deadline.left,
                cancelled=context.cancelled,
            ),
        )
        if said is None:
            return None
        costs.append(said.cost_micro)
        value, fault = read_answer(said.text)
        if fault is None:
            try:
                answer = contract.check(value)
                fault = next((f"{path} {words}" for path, words in object_faults(answer.objects)), None)  # type: ignore[attr-defined]
            except SkillError as error:
                fault = error.message
        if fault is None:
            known = [cost for cost in costs if cost is not None]
            return answer.objects, sum(known) / 1_000_000 if len(known) == len(costs) else None  # type: ignore[attr-defined]
        repairs.append((said.text, fault))
    words = f"after {MODEL_TRIES} tries the model made no scene: {fault}"
    raise SkillError("invalid_output", words[:600], details=[Detail("prompt", str(fault)[:300])])


SKILLS: tuple[Skill, ...] = (create,)

__all__ = ["SKILLS", "create"]
