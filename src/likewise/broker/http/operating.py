"""Health, readiness, metrics and versions."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

import likewise
from likewise.broker.http.documents import json_response
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import HealthModel, InfoModel
from likewise.broker.store.schema import MIGRATIONS

router = APIRouter(tags=["operations"])


@router.get("/health/live", summary="Alive", operation_id="live", response_model=HealthModel)
async def live() -> Response:
    """Whether the process answers."""
    return json_response({"status": "ok", "checks": {}})


@router.get(
    "/health/ready",
    summary="Ready",
    operation_id="ready",
    response_model=HealthModel,
    responses={503: {"model": HealthModel, "description": "Not ready."}},
)
async def ready(request: Request) -> Response:
    """Whether events can be stored and matched."""
    broker = broker_of(request)
    checks = broker.checks()
    bad = any(value != "ok" for value in checks.values())
    return json_response({"status": "not ready" if bad else "ok", "checks": checks}, 503 if bad else 200)


@router.get("/metrics", summary="Prometheus metrics", operation_id="metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus; needs the role `admin`."""
    access_of(request, "admin")
    return Response(request.app.state.metrics.render(broker_of(request)), media_type="text/plain; version=0.0.4")


@router.get("/v1/info", summary="Versions and spaces", operation_id="info", response_model=InfoModel)
async def info(request: Request) -> Response:
    """The version, spaces and size of this broker, and the namespace and roles of the token."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_response(
        {
            "version": likewise.__version__,
            "api": "v1",
            "schema_version": len(MIGRATIONS),
            "spaces": broker.engine_factory.describe(),
            "approach": broker.settings.approach,
            "namespace": access.namespace,
            "roles": sorted(access.roles),
            "position": broker.log.position,
            "subscriptions": await broker.read(broker.history.count_entries, access.namespace),
            "tokens": not broker.settings.open,
        }
    )
