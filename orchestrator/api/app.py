"""The application: `create_app(settings)`; nothing of it exists before somebody calls that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from orchestrator.api import replies
from orchestrator.api.desk.mount import mount
from orchestrator.api.feed import Feed
from orchestrator.api.gate import Gate
from orchestrator.api.overhearing import Overhearing
from orchestrator.api.replies import problems
from orchestrator.api.routes import routers
from orchestrator.api.standing import Standing
from orchestrator.api.waiting import Waiting
from orchestrator.settings import Settings

_ABOUT = """Projects, tasks, signals and everything else of a studio, over HTTP.

Programs show a key (`officina keys add NAME`) as `Authorization: Bearer ofk_...`; people have a session. What
belongs to another owner is not there: 404. Errors are `{error, code, details?}`. Lists take `limit` and `cursor`.
Times are epoch milliseconds, money is USD."""


def create_app(settings: Settings) -> FastAPI:
    """The API over the rows of these settings."""
    app = FastAPI(
        title="Officina",
        version=version("officina"),
        description=_ABOUT,
        # Their pages load scripts from elsewhere; the document itself is enough for any tool.
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        separate_input_output_schemas=False,
        responses=problems(408, 413, 415),
    )
    app.state.settings = settings
    for router in routers():
        app.include_router(router)
    mount(app)
    replies.install(app)
    app.add_middleware(Gate, settings=settings)
    _without_422(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    feed = app.state.feed = Feed(app.state.settings)
    waiting = app.state.waiting = Waiting(app.state.settings)
    standing = app.state.standing = Standing(app.state.settings)
    overhearing = app.state.overhearing = Overhearing(app.state.settings)
    listening = [asyncio.create_task(feed.run()), asyncio.create_task(overhearing.run())]
    try:
        yield
    finally:
        feed.close()
        waiting.close()
        await standing.close()
        for task in listening:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*listening)


def _without_422(app: FastAPI) -> None:
    """A request that does not fit is 400 here, as everything malformed is."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            for path in document["paths"].values():
                for operation in path.values():
                    operation.get("responses", {}).pop("422", None)
            for name in ("HTTPValidationError", "ValidationError"):
                document.get("components", {}).get("schemas", {}).pop(name, None)
        return plain()

    app.openapi = openapi  # type: ignore[method-assign]
