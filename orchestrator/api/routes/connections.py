"""Accounts outside that skills may use. Secrets go in and never come out."""

from typing import Annotated

from fastapi import Body, Path
from fastapi import Response as Empty
from pydantic import Field

from orchestrator import connections
from orchestrator.api.auth import Connecting, Reading
from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply
from registry.base import Json

router = make_router("connections")

Name = Annotated[str, Path(min_length=1, max_length=100, description="What skills call it.")]


class ConnectionView(Out):
    name: str
    kind: str
    config: dict[str, Json]
    secrets: list[str] = Field(description="Names of the fields that are kept and never shown.")
    created_at: int
    updated_at: int


class ConnectionList(Out):
    items: list[ConnectionView]


@router.get("/connections", response_model=ConnectionList, summary="Your connections, without secrets")
def list_connections(asking: Reading) -> Reply:
    return Reply({"items": connections.listed(asking.settings, asking.owner)})


@router.put(
    "/connections/{name}",
    response_model=ConnectionView,
    summary="Store a connection, in place of one of this name",
    responses={201: {"model": ConnectionView, "description": "It is new."}},
)
def save_connection(
    asking: Connecting,
    name: Name,
    body: Annotated[
        dict[str, Json],
        Body(description="Its kind and fields.", examples=[{"kind": "telegram", "token": "123456:...", "chatId": 1}]),
    ],
) -> Reply:
    new = connections.save(asking.settings, asking.owner, name, body)
    found = next(one for one in connections.listed(asking.settings, asking.owner) if one["name"] == name)
    return Reply(found, 201 if new else 200)


@router.delete("/connections/{name}", status_code=204, summary="Forget a connection and its secrets")
def remove_connection(asking: Connecting, name: Name) -> Empty:
    connections.remove(asking.settings, asking.owner, name)
    return Empty(status_code=204)
