"""What the operations for those who look after the service do: what goes on, who and what there is, what if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamo.errors import unknown_name
from pamo.service import schemas, watching_schemas
from pamo.service.activity import RINGS
from pamo.service.api import Api
from pamo.service.stream import EventStream

if TYPE_CHECKING:
    from pamo.service.operations import Arguments


async def activity(api: Api, asked: Arguments) -> Any:
    """Tell what went on lately."""
    query: watching_schemas.ActivityQuery = asked.query
    buckets = api.activity.buckets(query.resolution, query.limit)
    decisions, feedbacks = api.activity.rates()
    return watching_schemas.ActivityAnswer(
        api.activity.since,
        api.engine.clock(),
        RINGS[query.resolution][0],
        decisions,
        feedbacks,
        buckets,
    )


async def stream(api: Api, asked: Arguments) -> Any:
    """Tell what goes on as it happens."""
    return EventStream(api.stream, asked.query.seconds)


async def users(api: Api, asked: Arguments) -> Any:
    """Find users."""
    query: watching_schemas.UsersQuery = asked.query
    found = await api.aside(lambda: api.engine.store.find_users(query.query, query.limit + 1))
    return watching_schemas.UsersAnswer(
        [watching_schemas.UserFound(user, rounds) for user, rounds in found[: query.limit]], len(found) > query.limit
    )


async def decisions(api: Api, asked: Arguments) -> Any:
    """Return a page of a user's decisions, explained."""
    query: watching_schemas.DecisionsQuery = asked.query
    found, names = await api.aside(lambda: api.lookout.decisions(asked.ids[0], query.limit + 1, query.before))
    page = [schemas.ExplainedDecision.of(*one) for one in found[: query.limit]]
    more = len(found) > query.limit
    return watching_schemas.DecisionsAnswer(page, names, found[query.limit - 1][0].sequence if more else None)


async def preference_history(api: Api, asked: Arguments) -> Any:
    """Return how a user's preference moved."""
    points = await api.aside(lambda: api.lookout.preference_history(asked.ids[0], asked.query.points))
    return watching_schemas.PreferenceHistoryAnswer(
        asked.ids[0], [watching_schemas.PreferencePoint.of(at, one) for at, one in points]
    )


async def leaderboard(api: Api, asked: Arguments) -> Any:
    """Return a page of the arms, in the order asked for."""
    query: watching_schemas.LeaderboardQuery = asked.query
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


async def front(api: Api, asked: Arguments) -> Any:
    """Return the Pareto front with confidence."""
    query: watching_schemas.FrontQuery = asked.query
    for field, name in (("x", query.x), ("y", query.y)):
        if name and name not in api.lookout.names:
            raise unknown_name("objective", name, api.lookout.names, field)
    wanted = tuple(dict.fromkeys(name for name in (query.x, query.y) if name)) or None
    return await api.aside(
        lambda: schemas.FrontAnswer([watching_schemas.front_arm(one) for one in api.lookout.front(wanted, query.limit)])
    )


async def ranking(api: Api, asked: Arguments) -> Any:
    """Rank the arms by weights that somebody might have."""
    body: watching_schemas.RankingBody = asked.body
    ranked, untried = await api.aside(lambda: api.lookout.ranking(body.preference, asked.query.limit))
    return watching_schemas.RankingAnswer([watching_schemas.RankedAnswer.of(one) for one in ranked], untried)
