"""What the operations for those who look after the service do: what goes on, who and what there is, what if."""

from __future__ import annotations

from typing import Any

from pamo.errors import unknown_name
from pamo.service import schemas, watching_schemas
from pamo.service.activity import RINGS
from pamo.service.api import Api
from pamo.service.operations import Call
from pamo.service.stream import EventStream


async def activity(api: Api, call: Call) -> Any:
    """Tell what went on lately."""
    query: watching_schemas.ActivityQuery = call.query
    buckets = api.activity.buckets(query.resolution, query.limit)
    decisions, feedbacks = api.activity.rates()
    return watching_schemas.ActivityAnswer(
        api.activity.since,
        api.engine.clock(),
        RINGS[query.resolution][0],
        decisions,
        feedbacks,
        [watching_schemas.BucketAnswer(*one) for one in buckets],
    )


async def stream(api: Api, call: Call) -> Any:
    """Tell what goes on as it happens."""
    return EventStream(api.stream, call.query.seconds)


async def users(api: Api, call: Call) -> Any:
    """Find users."""
    query: watching_schemas.UsersQuery = call.query
    found = await api.aside(lambda: api.engine.store.find_users(query.query, query.limit + 1))
    return watching_schemas.UsersAnswer(
        [watching_schemas.UserFound(user, rounds) for user, rounds in found[: query.limit]], len(found) > query.limit
    )


async def decisions(api: Api, call: Call) -> Any:
    """Return a page of a user's decisions, explained."""
    query: watching_schemas.DecisionsQuery = call.query
    found, names = await api.aside(lambda: api.lookout.decisions(call.ids[0], query.limit + 1, query.before))
    page = [schemas.ExplainedDecision.of(*one) for one in found[: query.limit]]
    more = len(found) > query.limit
    return watching_schemas.DecisionsAnswer(page, names, found[query.limit - 1][0].sequence if more else None)


async def preference_history(api: Api, call: Call) -> Any:
    """Return how a user's preference moved."""
    points = await api.aside(lambda: api.lookout.preference_history(call.ids[0], call.query.points))
    return watching_schemas.PreferenceHistoryAnswer(
        call.ids[0], [watching_schemas.PreferencePoint.of(at, one) for at, one in points]
    )


async def leaderboard(api: Api, call: Call) -> Any:
    """Return a page of the arms, in the order asked for."""
    query: watching_schemas.LeaderboardQuery = call.query
    standings, total = await api.aside(
        lambda: api.lookout.leaderboard(
            query.objective or None,
            query.sort,
            query.order == "descending",
            query.search,
            query.offset,
            query.limit,
        )
    )
    return watching_schemas.LeaderboardAnswer(total, [watching_schemas.StandingAnswer.of(one) for one in standings])


async def front(api: Api, call: Call) -> Any:
    """Return the Pareto front with confidence."""
    query: watching_schemas.FrontQuery = call.query
    for field, name in (("x", query.x), ("y", query.y)):
        if name and name not in api.lookout.names:
            raise unknown_name("objective", name, api.lookout.names, field)
    wanted = tuple(dict.fromkeys(name for name in (query.x, query.y) if name)) or None
    return await api.aside(
        lambda: schemas.FrontAnswer([watching_schemas.front_arm(one) for one in api.lookout.front(wanted, query.limit)])
    )


async def ranking(api: Api, call: Call) -> Any:
    """Rank the arms by weights that somebody might have."""
    body: watching_schemas.RankingBody = call.body
    ranked, untried = await api.aside(lambda: api.lookout.ranking(body.preference, call.query.limit))
    return watching_schemas.RankingAnswer([watching_schemas.RankedAnswer.of(one) for one in ranked], untried)
