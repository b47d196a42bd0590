"""Generators: saved plans with blanks. A form of the blanks starts a project."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from orchestrator import saved
from orchestrator.api.auth import Person
from orchestrator.api.desk import forms
from orchestrator.api.desk.acts import Filled
from orchestrator.api.desk.rendering import page, said
from orchestrator.api.desk.routing import router as make_router
from orchestrator.api.desk.routing import shell
from orchestrator.api.shared import skills
from registry.base import Json
from registry.errors import Refused

router = make_router()

#: Generators of one page.
MOST: Final = 200
#: Of the form, beside the blanks: their keys begin with a letter or a digit.
_KEY: Final = "_key"
_REHEARSE: Final = "_rehearse"


@router.get("/generators")
def generator_list(asking: Person) -> Response:
    mine = saved.generator_list(asking.settings, limit=MOST, after=None)
    facts = {"mine": mine, "shipped": saved.generators_built_in()}
    return page("generators.html", shell(asking, "generators", **facts))


@router.get("/generators/{generator_id}")
def generator(asking: Person, generator_id: str) -> Response:
    """Its steps, and a form of what it asks for."""
    found = saved.generator(asking.settings, generator_id)
    facts = {"generator": found, "fields": forms.fields(_schema(found)), "name": found["name"]}
    return page("generator.html", shell(asking, "generators", **facts))


@router.post("/generators/{generator_id}/run")
def run(asking: Person, generator_id: str, body: Filled) -> Response:
    """Starts a project with the generator's steps as its plan."""
    found = saved.generator(asking.settings, generator_id)
    given = forms.payload(_schema(found), body)
    key = body.get(_KEY)
    if not isinstance(key, str) or not 8 <= len(key) <= 100:
        raise Refused("the page did not say which press of the button this was; load it again", code="invalid_input")
    made = saved.run_generator(
        asking.settings,
        skills(),
        str(found["id"]),
        given,
        key=f"desk:{key}",
        rehearse=body.get(_REHEARSE) == "true",
    )
    return said("Started", go=f"/projects/{made.project_id}")


@router.post("/generators/{generator_id}/delete")
def delete(asking: Person, generator_id: str) -> Response:
    saved.remove_generator(asking.settings, generator_id)
    return said("Deleted. Projects made of it keep their plan.", go="/generators")


def _schema(found: Mapping[str, Any]) -> dict[str, Json]:
    """The blanks as a JSON Schema, of which a form can be made."""
    inputs = found["inputs"]
    properties = {one["key"]: _property(one) for one in inputs}
    return {
        "type": "object",
        "required": [one["key"] for one in inputs if one.get("required")],
        "properties": properties,
    }


def _property(one: Mapping[str, Any]) -> dict[str, Json]:
    types: dict[str, dict[str, Json]] = {
        "text": {"type": "string", "format": "line"},
        "url": {"type": "string", "format": "uri"},
        "longtext": {"type": "string"},
        "number": {"type": "number"},
        "boolean": {"type": "boolean"},
        "choice": {"enum": one.get("options") or []},
    }
    default = {} if one.get("default") is None else {"default": one["default"]}
    return {"title": one["label"], **types[one["type"]], **default}
