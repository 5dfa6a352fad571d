"""The HTTP application, assembled."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

import structlog
from fastapi import FastAPI
from starlette.routing import Route, WebSocketRoute

from app import openapi, problems
from app.access import Access
from app.assembly import Gateway, build_gateway
from app.capacity import endpoints as capacity_endpoints
from app.config import Settings
from app.dispatch.endpoints import PATH as AGENTS_PATH
from app.kit.memory import settle_memory
from app.kit.periodic import Periodic
from app.kit.raw_routes import RawRoute
from app.operations import endpoints as operations_endpoints
from app.quotes import endpoints as quotes_endpoints
from app.receipts import endpoints as receipts_endpoints
from app.requests import endpoints as requests_endpoints
from app.requests import listing as requests_listing
from app.requests.endpoints import PostRequest
from app.treasury import endpoints as treasury_endpoints
from app.treasury.parts import place_of
from app.wallets import endpoints as wallets_endpoints
from app.wallets.read_access import ReadGate

log = structlog.get_logger()

DESCRIPTION = (
    "Open-model inference on spare GPU capacity: quote, authorize with a wallet, answer, receipt. "
    "Amounts are decimal strings of the settlement token; refusals are RFC 9457 problem documents."
)


def build_app(settings: Settings) -> FastAPI:
    """Return the application. Connections open when it starts, and close when it stops."""
    gateway = build_gateway(settings)
    app = FastAPI(
        title="OFFPEAK",
        version=project_version(),
        description=DESCRIPTION,
        lifespan=lifespan_of(gateway),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Else every request asks the environment for OpenTelemetry providers, and one that is set
        # there would be sent exceptions with their messages, past our masking.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.gateway = gateway
    app.state.metrics = gateway.metrics
    app.state.domain = gateway.domain
    app.state.catalogue = gateway.catalogue
    app.state.market = gateway.market
    app.state.wallets = gateway.wallets
    app.state.withdrawals = gateway.withdrawals
    app.state.claims = gateway.claims
    app.state.treasury_place = place_of(settings)
    app.state.read_gate = ReadGate(gateway.domain, gateway.signatures)
    app.state.requests = gateway.requests
    app.state.job_listing = requests_listing.JobListing(gateway.database, gateway.token)
    app.state.receipts = gateway.receipts
    app.state.log = gateway.log
    app.state.readiness = gateway.readiness
    for router in (
        operations_endpoints.router,
        capacity_endpoints.router,
        wallets_endpoints.router,
        treasury_endpoints.router,
        requests_listing.router,
        requests_endpoints.router,
        receipts_endpoints.router,
    ):
        app.include_router(router)
    app.router.routes.append(WebSocketRoute(AGENTS_PATH, gateway.dispatch.endpoint))
    add_raw_routes(app, raw_routes(gateway))
    problems.install(app, gateway.metrics)
    app.add_middleware(Access, metrics=gateway.metrics, limit_bytes=settings.max_body_bytes)
    return app


def raw_routes(gateway: Gateway) -> list[RawRoute]:
    """Return every thin route of the application with its contract."""
    return [
        *quotes_endpoints.routes(
            gateway.quotes,
            domain=gateway.domain,
            limit_bytes=gateway.settings.max_body_bytes,
        ),
        *requests_endpoints.routes(
            PostRequest(
                gateway.requests,
                limit_bytes=gateway.settings.max_body_bytes,
                wait_default_seconds=gateway.settings.wait_default_seconds,
                wait_max_seconds=gateway.settings.wait_max_seconds,
            )
        ),
    ]


def add_raw_routes(app: FastAPI, raw: list[RawRoute]) -> None:
    """Mount thin routes, found before all others, and put them into the OpenAPI document."""
    app.router.routes[:0] = [Route(each.path, each, methods=[each.method]) for each in raw]
    app.openapi = lambda: openapi.document(app, raw)  # type: ignore[method-assign]  # FastAPI's documented way


def lifespan_of(gateway: Gateway) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return what runs from start to stop: the loops, then a clean close."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        settle_memory()
        guard = gateway.chain_guard
        if guard is not None:
            await guard.check_at_start()
        interval_seconds = gateway.settings.market_refresh_seconds
        market = Periodic("market", interval_seconds, gateway.market_loop.run_round)
        loops = {
            "market": market.run(),
            "job waiters": gateway.waiters.run(),
            "dispatch": gateway.dispatch.run(),
        }
        if guard is not None:
            loops["chain check"] = guard.run()
        if gateway.valkey is not None:
            loops["wakes"] = gateway.wakes.run()
        tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]
        for task in tasks:
            task.add_done_callback(lambda ended: stop_serving(gateway, ended))
        try:
            yield
        finally:
            await gateway.drain()
            await gateway.dispatch.close()
            await gateway.records.drain()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if gateway.valkey is not None:
                await gateway.valkey.aclose()
            if gateway.chain is not None:
                await gateway.chain.aclose()
            await gateway.database.dispose()

    return lifespan


def stop_serving(gateway: Gateway, ended: asyncio.Task[None]) -> None:
    """Be not ready any more when a loop that must always run has ended by itself."""
    if not ended.cancelled():
        log.critical("a loop has ended", loop=ended.get_name(), exc_info=ended.exception())
        gateway.readiness.drain()


def project_version() -> str:
    """Return the installed version, or that this is a source tree."""
    try:
        return version("offpeak-inference")
    except PackageNotFoundError:
        return "0.0.0+source"
