"""HTTP for the operator's probes."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from app.kit.metrics import Metrics
from app.operations.schemas import HealthOut, ReadyOut
from app.operations.service import ReadinessService

router = APIRouter(tags=["operations"])


def readiness_service(request: Request) -> ReadinessService:
    """Return the service that the application was built with."""
    service = request.app.state.readiness
    assert isinstance(service, ReadinessService)
    return service


def metrics_of(request: Request) -> Metrics:
    """Return this process's counters."""
    metrics = request.app.state.metrics
    assert isinstance(metrics, Metrics)
    return metrics


@router.get("/healthz")
async def health() -> HealthOut:
    """Answer while the process's event loop turns."""
    return HealthOut()


@router.get("/readyz", responses={503: {"model": ReadyOut, "description": "Not ready"}})
async def ready(
    readiness: Annotated[ReadinessService, Depends(readiness_service)], response: Response
) -> ReadyOut:
    """Check database, schema and Valkey. Degraded is ready: Valkey is away, nothing is lost."""
    found = await readiness.check()
    response.status_code = 503 if found.status == "not-ready" else 200
    return ReadyOut(status=found.status, checks=found.checks)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(counted: Annotated[Metrics, Depends(metrics_of)]) -> Response:
    """Return Prometheus metrics."""
    return Response(counted.exposition(), media_type=counted.content_type)
