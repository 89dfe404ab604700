"""What the operations for those who look after the service do: what goes on, who and what there is, what if."""

from __future__ import annotations

from typing import Any

from pamo.contract import answers
from pamo.errors import unknown_name
from pamo.service import schemas
from pamo.service.activity import RINGS
from pamo.service.api import Api
from pamo.service.operations import Call
from pamo.service.stream import EventStream


async def activity(api: Api, call: Call) -> Any:
    """Tell what went on lately."""
    query: schemas.ActivityQuery = call.query
    buckets = api.activity.buckets(query.resolution, query.limit)
    return answers.ActivityReport(
        api.activity.since, api.engine.clock(), RINGS[query.resolution][0], *api.activity.rates(), buckets
    )


async def stream(api: Api, call: Call) -> Any:
    """Tell what goes on as it happens."""
    return EventStream(api.stream, call.query.seconds)


async def users(api: Api, call: Call) -> Any:
    """Find users."""
    query: schemas.UsersQuery = call.query
    found = await api.aside(lambda: api.engine.store.find_users(query.query, query.limit + 1))
    return answers.UsersFound([answers.UserFound(*one) for one in found[: query.limit]], len(found) > query.limit)


async def decisions(api: Api, call: Call) -> Any:
    """Return a page of a user's decisions, explained."""
    query: schemas.DecisionsQuery = call.query
    return await api.aside(lambda: api.lookout.decisions(call.ids[0], query.limit, query.before))


async def preference_history(api: Api, call: Call) -> Any:
    """Return how a user's preference moved."""
    return await api.aside(lambda: api.lookout.preference_history(call.ids[0], call.query.points))


async def leaderboard(api: Api, call: Call) -> Any:
    """Return a page of the arms, in the order asked for."""
    query: schemas.LeaderboardQuery = call.query
    return await api.aside(
        lambda: api.lookout.leaderboard(
            query.objective or None,
            query.sort,
            query.order == "descending",
            query.search,
            query.offset,
            query.limit,
        )
    )


async def front(api: Api, call: Call) -> Any:
    """Return the Pareto front with confidence."""
    query: schemas.FrontQuery = call.query
    for field, name in (("x", query.x), ("y", query.y)):
        if name and name not in api.lookout.names:
            raise unknown_name("objective", name, api.lookout.names, field)
    wanted = tuple(dict.fromkeys(name for name in (query.x, query.y) if name)) or None
    return answers.Front(await api.aside(lambda: api.lookout.front(wanted, query.limit)))


async def ranking(api: Api, call: Call) -> Any:
    """Rank the arms by weights that somebody might have."""
    body: schemas.RankingBody = call.body
    return await api.aside(lambda: api.lookout.ranking(body.preference, call.query.limit))
