"""What Prometheus scrapes."""

from starlette.responses import Response

from orchestrator import metrics
from orchestrator.api.auth import Reading
from orchestrator.api.parts import router as make_router

router = make_router("health", prefix="")


@router.get(
    "/metrics",
    response_class=Response,
    summary="Metrics of this installation, for Prometheus",
    responses={200: {"description": "The text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def scrape(asking: Reading) -> Response:
    """Any key that may read will do; sums only, no names. Computed from the rows at that moment."""
    return Response(metrics.exposition(asking.settings), media_type=metrics.CONTENT_TYPE)
