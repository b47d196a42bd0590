"""The pages of the desk, put into the application by one line of `orchestrator.api.app`."""

from fastapi import FastAPI

from orchestrator.api.desk import (
    acts,
    assets,
    generator_pages,
    inbox_pages,
    keeping_pages,
    login_pages,
    project_pages,
    pulse,
    studio_pages,
    talk_pages,
)


def mount(app: FastAPI) -> None:
    """Adds every page; none of them is part of the API's document."""
    first = (assets, login_pages, pulse, acts, inbox_pages, project_pages)
    for module in (*first, studio_pages, talk_pages, keeping_pages, generator_pages):
        app.include_router(module.router)
