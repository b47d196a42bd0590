"""A scene as bytes: our own JSON, GLB, and a page that shows it."""

import base64
import hashlib
import html
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import trimesh
from trimesh.visual.material import PBRMaterial

from registry.base import Json
from registry.skills.scenes.meshes import Scene, Solid

_VIEWER: Final = Path(__file__).parent


def to_json(scene: Scene) -> bytes:
    """Everything the scene says, with every default filled in."""
    document: dict[str, Json] = {
        "format": "officina-scene",
        "version": 1,
        "title": scene.title,
        "up": "y",
        "background": scene.background,
        "camera": scene.camera.to_json(),
        "lights": [light.to_json() for light in scene.lights],
        "objects": [
            solid.object.to_json() | {"name": solid.name, "size": solid.object.sizes} for solid in scene.solids
        ],
        "triangles": scene.triangles,
        "boundingBox": {"min": scene.lowest, "max": scene.highest},
    }
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def to_glb(scene: Scene) -> bytes:
    """glTF 2 in one binary file, with the tree of objects, lights and the camera."""
    made = trimesh.Scene()
    names = {solid.name for solid in scene.solids}
    base = "world" if "world" not in names else "scene-root"
    made.graph.base_frame = base
    for solid in scene.solids:
        mesh = solid.mesh.copy()
        mesh.visual = trimesh.visual.TextureVisuals(material=_material(solid))  # type: ignore[no-untyped-call]
        made.add_geometry(
            mesh,
            node_name=solid.name,
            geom_name=solid.name,
            parent_node_name=solid.parent or base,
            transform=solid.local,
        )
    write: Any = trimesh.exchange.gltf.export_glb
    content: bytes = write(made, tree_postprocessor=lambda tree: _complete(tree, scene))
    return content


def to_html(scene: Scene) -> bytes:
    """A page that shows the scene without asking any host for anything."""
    data = {
        "background": scene.background,
        "camera": scene.camera.to_json(),
        "lights": [light.to_json() for light in scene.lights],
        "solids": [_drawn(solid) for solid in scene.solids],
    }
    # In a script element only `<` could end it, or begin what is not data.
    shown = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    script = (_VIEWER / "viewer.js").read_text(encoding="utf-8")
    style = (_VIEWER / "viewer.css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; script-src '{_hashed(script)}'; style-src '{_hashed(style)}'; base-uri 'none'"
    title = html.escape(scene.title)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<canvas id="view" tabindex="0" aria-label="{title}"></canvas>
<p id="fault" hidden></p>
<script type="application/json" id="scene">{shown}</script>
<script>{script}</script>
</body>
</html>
""".encode()


WRITERS: Final[Mapping[str, Callable[[Scene], bytes]]] = {"json": to_json, "glb": to_glb, "html": to_html}


def _material(solid: Solid) -> Any:
    one = solid.object
    return PBRMaterial(  # type: ignore[no-untyped-call]
        name=solid.name,
        baseColorFactor=[*linear(one.color), one.opacity],
        metallicFactor=one.metalness,
        roughnessFactor=one.roughness,
        alphaMode="OPAQUE" if one.opacity == 1 else "BLEND",
        doubleSided=one.kind == "plane",
    )


def linear(color: str) -> list[float]:
    """A colour as light: `#rrggbb` is written for screens, glTF counts in light."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [round(p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4, 6) for p in parts]


def _complete(tree: dict[str, Json], scene: Scene) -> None:
    """Adds what the library does not write: the camera, the lights, who made it."""
    tree["asset"] = {"version": "2.0", "generator": "Officina"}
    solids = {solid.name: solid.object for solid in scene.solids}
    for material in tree.get("materials", []):
        one = solids[material["name"]]  # the library rounds colours to 256 steps, which light shows
        material["pbrMetallicRoughness"]["baseColorFactor"] = [*linear(one.color), one.opacity]
    roots = tree["scenes"][tree.get("scene", 0)]["nodes"]
    lamps = [light for light in scene.lights if light.kind != "ambient"]
    if lamps:
        tree.setdefault("extensionsUsed", []).append("KHR_lights_punctual")
        tree.setdefault("extensions", {})["KHR_lights_punctual"] = {
            "lights": [
                {"type": light.kind, "color": linear(light.color), "intensity": light.intensity} for light in lamps
            ]
        }
    for place, light in enumerate(lamps):
        node: dict[str, Json] = {
            "name": f"light-{place + 1}",
            "translation": list(light.position),
            "extensions": {"KHR_lights_punctual": {"light": place}},
        }
        if light.kind == "directional":
            node["rotation"] = _towards(light.position, (0.0, 0.0, 0.0))
        roots.append(len(tree["nodes"]))
        tree["nodes"].append(node)
    camera = scene.camera
    tree["cameras"] = [
        {"type": "perspective", "perspective": {"yfov": math.radians(camera.fov), "znear": 0.01, "zfar": 100_000}}
    ]
    roots.append(len(tree["nodes"]))
    tree["nodes"].append(
        {
            "name": "camera",
            "camera": 0,
            "translation": list(camera.position),
            "rotation": _towards(camera.position, camera.target),
        }
    )


def _towards(position: Any, target: Any) -> list[float]:
    """The quaternion (x, y, z, w) of something that stands there and looks along its own -Z."""
    back = np.asarray(position, float) - np.asarray(target, float)
    length = np.linalg.norm(back)
    back = back / length if length else np.array([0.0, 0.0, 1.0])
    up = np.array([0.0, 1.0, 0.0]) if abs(back[1]) < 0.999 else np.array([0.0, 0.0, 1.0])
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    matrix = np.eye(4)
    matrix[:3, :3] = np.column_stack([right, np.cross(back, right), back])
    of_matrix: Any = trimesh.transformations.quaternion_from_matrix
    w, x, y, z = of_matrix(matrix)
    return [round(float(value), 7) for value in (x, y, z, w)]


def _drawn(solid: Solid) -> dict[str, Json]:
    points = trimesh.transform_points(solid.mesh.vertices, solid.world).astype("<f4")
    faces = solid.mesh.faces.astype("<u4")
    return {
        "name": solid.name,
        "color": solid.object.color,
        "opacity": solid.object.opacity,
        "both": solid.object.kind == "plane",
        "points": base64.b64encode(points.tobytes()).decode(),
        "faces": base64.b64encode(faces.tobytes()).decode(),
    }


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
