"""HTTP for looking before buying: models and capacity."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.capacity.errors import CapacityError
from app.capacity.market import Market, PricePoint
from app.capacity.schemas import (
    CapacityList,
    CapacityOut,
    ModelList,
    ModelOut,
    ModelRegion,
    PricePointOut,
    RatesNow,
)
from app.capacity.service import MarketService
from app.kit.clock import format_time
from app.models.catalogue import Catalogue
from app.models.release import ModelRelease
from ledger.money import format_amount
from pricing.floor import Floor
from pricing.rates import Rates

router = APIRouter(prefix="/v1", tags=["market"])


def market_service(request: Request) -> MarketService:
    """Return the service that the application was built with."""
    service = request.app.state.market
    assert isinstance(service, MarketService)
    return service


def catalogue_of(request: Request) -> Catalogue:
    """Return the approved releases."""
    catalogue = request.app.state.catalogue
    assert isinstance(catalogue, Catalogue)
    return catalogue


MarketDep = Annotated[MarketService, Depends(market_service)]
CatalogueDep = Annotated[Catalogue, Depends(catalogue_of)]


@router.get("/models")
async def list_models(market: MarketDep, catalogue: CatalogueDep) -> ModelList:
    """List approved model releases with their rates now."""
    return ModelList(models=[model_out(release, market) for release in catalogue])


@router.get("/capacity")
async def list_capacity(market: MarketDep) -> CapacityList:
    """Show offered and occupied slots, load and price point of every market."""
    snapshot = market.snapshot()
    return CapacityList(
        as_of=format_time(snapshot.read_at),
        capacity=[capacity_out(each) for each in snapshot.markets],
    )


def model_out(release: ModelRelease, market: MarketService) -> ModelOut:
    """Return a release and what it costs in each region."""
    regions = [each.region for each in market.snapshot().markets_of(release.id)]
    return ModelOut(
        id=release.id,
        name=release.name,
        author=release.author,
        licence=release.licence,
        revision=release.revision,
        context_tokens=release.context_tokens,
        regions=[region_out(release.id, region, market) for region in regions],
    )


def region_out(release: str, region: str, market: MarketService) -> ModelRegion:
    """Return the rates of a release in a region, or that there are none."""
    try:
        price = market.price(release, region=region)
    except CapacityError:
        return ModelRegion(region=region, available=False, rates=None)
    return ModelRegion(region=region, available=True, rates=rates_now(price.rates))


def capacity_out(market: Market) -> CapacityOut:
    """Return one market's slots."""
    offer = market.offer
    activity = offer.gpu_activity_ppm if offer else None
    return CapacityOut(
        model=market.release,
        region=market.region,
        deployments=offer.deployments if offer else 0,
        offered=offer.offered if offer else 0,
        occupied=offer.occupied if offer else 0,
        load=ppm_text(market.point.load_ppm) if market.point and offer else None,
        price_point=point_out(market.point) if market.point else None,
        gpu_activity=None if activity is None else ppm_text(activity),
    )


def point_out(point: PricePoint) -> PricePointOut:
    """Return a stored price point."""
    return PricePointOut(
        at=format_time(point.at),
        load=ppm_text(point.load_ppm),
        floor=rates_now(point.floor),
        curve_version=point.curve_version,
    )


def rates_now(rates: Rates | Floor) -> RatesNow:
    """Return rates as decimal strings of the token."""
    return RatesNow(
        input_per_mtok=format_amount(rates.input_rate),
        output_per_mtok=format_amount(rates.output_rate),
        per_request=format_amount(rates.per_request),
    )


def ppm_text(ppm: int) -> str:
    """Return millionths as a decimal fraction, `0.250000`."""
    whole, part = divmod(min(ppm, 1_000_000), 1_000_000)
    return f"{whole}.{part:06d}"
