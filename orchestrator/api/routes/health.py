"""Whether the API lives, and whether what it stands on does."""

from pydantic import Field

from orchestrator.api.models import Out
from orchestrator.api.parts import router as make_router
from orchestrator.api.replies import Reply

router = make_router("health", prefix="")


class Health(Out):
    status: str = Field(examples=["ok"])
    version: str


@router.get("/health", response_model=Health, summary="Whether the process answers")
async def health() -> Reply:
    """For probes: it needs no key, and looks at nothing else."""
    return Reply({"status": "ok", "version": _version()})


def _version() -> str:
    from importlib.metadata import version

    return version("officina")
