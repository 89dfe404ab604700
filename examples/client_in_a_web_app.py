"""A web application that asks pamo's service which hotel to show, and goes on when the service does not.

    python examples/client_in_a_web_app.py --visits 40                                # with a service of its own
    python examples/client_in_a_web_app.py --visits 40 --url http://127.0.0.1:8000    # with yours

A service of yours needs the objectives below: pamo serve --objectives "price: 0..500, lower is better" …
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from pamo import AsyncClient, Engine
from pamo.errors import InputError, ServiceError
from pamo.service import create_app

OBJECTIVES = ["price: 0..500, lower is better", "comfort: 1..5"]
HOTELS = {"anchor": (80.0, 2.0), "bristol": (250.0, 3.0), "central": (400.0, 4.8)}  # price and comfort of a stay
FALLBACK = "bristol"  # what guests are shown while nobody can be asked


def create_shop(client: AsyncClient) -> Starlette:
    """Return the application: one page shows a hotel, the other takes what the guest thought of it."""

    async def show(request: Request) -> JSONResponse:
        try:
            decision = await client.decide(request.path_params["guest"])
        except ServiceError:
            return JSONResponse({"hotel": FALLBACK, "decision": None})
        return JSONResponse({"hotel": decision.arm, "decision": decision.id})

    async def rate(request: Request) -> JSONResponse:
        given = await request.json()
        try:
            answer = await client.feedback(given["decision"], given["stay"], overall=given["overall"])
        except InputError as error:
            return JSONResponse({"error": str(error)}, status_code=422)
        return JSONResponse({"status": answer.status})

    return Starlette(routes=[Route("/hotel/{guest}", show), Route("/stay", rate, methods=["POST"])])


@contextlib.asynccontextmanager
async def connected(url: str | None) -> AsyncIterator[AsyncClient]:
    """Connect to the service at a URL, or to one in this very process."""
    if url is not None:
        async with AsyncClient(url) as client:
            yield client
        return
    with Engine(OBJECTIVES, overall="overall: 1..5", seed=1) as engine:
        async with AsyncClient(transport=httpx.ASGITransport(app=create_app(engine))) as client:
            yield client


async def visit(shop: httpx.AsyncClient, guest: str, likes_comfort: float, chance: random.Random) -> str:
    """Play a guest's browser: look, stay, and rate."""
    shown = (await shop.get(f"/hotel/{guest}")).json()
    price, comfort = HOTELS[shown["hotel"]]
    price += chance.uniform(-30.0, 30.0)
    liking = likes_comfort * (comfort - 1.0) / 4.0 + (1.0 - likes_comfort) * (1.0 - price / 500.0)
    if shown["decision"] is not None:
        stay = {"price": price, "comfort": comfort}
        rated = {"decision": shown["decision"], "stay": stay, "overall": 1.0 + 4.0 * liking}
        (await shop.post("/stay", json=rated)).raise_for_status()
    return str(shown["hotel"])


async def run(visits: int, url: str | None) -> None:
    """Let two guests come again and again, and print what they were shown in the end."""
    chance = random.Random(1)
    async with connected(url) as client:
        for hotel in HOTELS:
            await client.add_arm(hotel)
        transport = httpx.ASGITransport(app=create_shop(client))
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as shop:
            for guest, likes_comfort in (("Ada", 0.1), ("Ben", 0.9)):
                hotels = [await visit(shop, guest, likes_comfort, chance) for _ in range(visits)]
                favourite, times = Counter(hotels[-10:]).most_common(1)[0]
                print(f"{guest} is shown {favourite} {times} times of the last {len(hotels[-10:])}")
        print("feedbacks:", (await client.statistics())["complete_feedbacks"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the shop with its guests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visits", type=int, default=40, help="of each guest")
    parser.add_argument("--url", help="of a service that runs already")
    options = parser.parse_args(arguments)
    asyncio.run(run(options.visits, options.url))


if __name__ == "__main__":
    main()
