"""What the operations for those who look after the service do: what goes on, who and what there is, what if."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pamo.contract import answers
from pamo.errors import unknown_name
from pamo.service import schemas
from pamo.service.activity import RINGS
from pamo.service.alerts import alerts as alerts_of
from pamo.service.api import Api
from pamo.service.history import SPANS
from pamo.service.stream import EventStream

if TYPE_CHECKING:
    from pamo.service.operations import Arguments


async def activity(api: Api, asked: Arguments) -> Any:
    """Tell what went on."""
    query: schemas.ActivityQuery = asked.query
    now, since = api.engine.clock(), api.activity.since
    if query.resolution in RINGS:
        seconds, buckets = RINGS[query.resolution][0], api.activity.buckets(query.resolution, query.limit)
    else:
        seconds = SPANS[query.resolution]
        buckets = await api.aside(lambda: api.history.buckets(query.resolution, query.limit, now))
        since = min([since, *(one.at for one in buckets[:1])])
    return answers.ActivityReport(since, now, seconds, *api.activity.rates(), buckets)


async def alerts(api: Api, asked: Arguments) -> Any:
    """Tell what whoever looks after this should know."""
    return answers.Alerts(await api.aside(lambda: alerts_of(api)))


async def stream(api: Api, asked: Arguments) -> Any:
    """Tell what goes on as it happens."""
    if api.engine.store.remote:  # others may have erased who was decided for here
        for user in await api.aside(api.activity.erased):
            api.activity.forget(user)
    return EventStream(api.stream, asked.query.seconds)


async def users(api: Api, asked: Arguments) -> Any:
    """Find users."""
    query: schemas.UsersQuery = asked.query
    found = await api.aside(lambda: api.lookout.find_users(query.query, query.limit + 1))
    return answers.UsersFound(found[: query.limit], len(found) > query.limit)


async def decisions(api: Api, asked: Arguments) -> Any:
    """Return a page of a user's decisions, explained."""
    query: schemas.DecisionsQuery = asked.query
    return await api.aside(lambda: api.lookout.decisions(asked.ids[0], query.limit, query.before))


async def preference_history(api: Api, asked: Arguments) -> Any:
    """Return how a user's preference moved."""
    return await api.aside(lambda: api.lookout.preference_history(asked.ids[0], asked.query.points))


async def leaderboard(api: Api, asked: Arguments) -> Any:
    """Return a page of the arms, in the order asked for."""
    query: schemas.LeaderboardQuery = asked.query
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


async def front(api: Api, asked: Arguments) -> Any:
    """Return the Pareto front with confidence."""
    query: schemas.FrontQuery = asked.query
    for field, name in (("x", query.x), ("y", query.y)):
        if name and name not in api.lookout.names:
            raise unknown_name("objective", name, api.lookout.names, field)
    wanted = tuple(dict.fromkeys(name for name in (query.x, query.y) if name)) or None
    return answers.Front(await api.aside(lambda: api.lookout.front(wanted, query.limit)))


async def ranking(api: Api, asked: Arguments) -> Any:
    """Rank the arms by weights that somebody might have."""
    body: schemas.RankingBody = asked.body
    return await api.aside(lambda: api.lookout.ranking(body.preference, asked.query.limit))
