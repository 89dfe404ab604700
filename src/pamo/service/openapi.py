"""The API's description (OpenAPI 3.1), made from the table of operations and this store's own objectives."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from pamo._version import __version__
from pamo.contract import answers
from pamo.contract.codes import Code
from pamo.contract.events import Outcome, Setup
from pamo.contract.limits import HEAVIEST, LONGEST
from pamo.contract.objectives import Objective
from pamo.service.operations import Operation
from pamo.service.problems import MEDIA_TYPE, ProblemBody

REASONS = {
    400: "The body is not JSON.",
    401: "A key is needed, or this one is not known.",
    403: "The key has not the role that this takes.",
    404: "There is nothing of that id.",
    408: "The body did not arrive in time.",
    409: "Something else was recorded before: as the feedback to this decision, or under this key.",
    410: "The feedback came too late.",
    413: "The body is too large.",
    415: "The body is not sent as application/json.",
    422: "A value is not one that can be used; `field` names it.",
    429: "Too many requests; Retry-After says how many seconds to wait.",
    503: "It cannot be recorded at the moment, and nothing was acknowledged.",
}

_ID = {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "^[^\\u0000]*$"}


def describe(
    operations: tuple[Operation, ...],
    setup: Setup | None,
    *,
    keys: bool,
    max_batch: int,
    takes_preference: bool = True,
    needs_preference: bool = False,
    base: str = "",
) -> dict[str, Any]:
    """Return the description as plain values.

    setup: None leaves the objectives' names and scales out. takes_preference, needs_preference: whether the policy
    reads a preference that is sent with a request for a decision, and whether it cannot do without. base: where the
    paths begin, for a project.
    """
    kinds = [kind for one in operations for kind in (one.body, one.answer) if kind is not None]
    kinds.append(ProblemBody)
    found, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(kinds, found, strict=True))
    components = copy.deepcopy(components)
    _narrow(components, setup, max_batch)
    for name in ("DecisionBody", "BatchDecision"):
        if needs_preference:
            fields = components[name]["properties"]
            fields["preference"] = fields["preference"]["anyOf"][0]
            components[name]["required"].append("preference")
        elif not takes_preference:
            components[name]["properties"]["preference"] = {"type": "null", "default": None}
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas, setup, keys)
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "pamo",
            "version": __version__,
            "description": "Learns what each person cares about, and picks for them accordingly.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": components},
    }
    if base:
        description["servers"] = [{"url": base}]
    if keys:
        description["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return description


def _operation(one: Operation, schemas: dict[Any, Any], setup: Setup | None, keys: bool) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done."}
    if one.answer is not None:
        # OpenAPI 3.1 has no schema for a stream of events: that of one, and that of all as text, are both in use.
        streamed = one.media.startswith("text/event-stream")
        success["content"] = {one.media: {} if streamed else {"schema": schemas[one.answer]}}
    problem = {MEDIA_TYPE: {"schema": schemas[ProblemBody]}}
    statuses = set(one.problems)
    if one.roles is not None:
        statuses |= {429, 503}
        statuses |= {401, 403} if keys else {403}
    if one.body is not None:
        statuses |= {400, 408, 413, 415, 422}
    parameters = _parameters(one, setup)
    if parameters:
        statuses.add(422)
    description: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "tags": [one.tag],
        "responses": {
            str(one.status): success,
            **{str(status): {"description": REASONS[status], "content": problem} for status in sorted(statuses)},
        },
    }
    if parameters:
        description["parameters"] = parameters
    if one.body is not None:
        description["requestBody"] = {
            "required": not one.body_optional,
            "content": {"application/json": {"schema": schemas[one.body]}},
        }
    if keys and one.roles is not None:
        description["security"] = [{"key": []}]
        if one.roles:
            description["description"] = f"Takes a key with the role {' or '.join(one.roles)}."
    return description


def _parameters(one: Operation, setup: Setup | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in one.path.split("/"):
        if part.startswith("{"):
            found.append({"name": part[1:-1], "in": "path", "required": True, "schema": _ID})
    if one.repeatable:
        schema = {"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": "^[ -~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    if one.query is not None:
        (_, parts) = msgspec.json.schema_components([one.query])
        schema = parts[one.query.__name__]
        for name, kind in schema.get("properties", {}).items():
            required = name in schema.get("required", ())
            found.append({"name": name, "in": "query", "required": required, "schema": kind})
            if setup is not None and name in one.objectives:
                names = ["", *(each.name for each in setup.objectives)]
                found[-1]["schema"] = {"type": "string", "enum": names, "default": ""}
    return found


def _narrow(components: dict[str, Any], setup: Setup | None, max_batch: int) -> None:
    """Say of numbers by objective which objectives there are, and between what they lie."""
    weight = {"type": "number", "minimum": -HEAVIEST, "maximum": HEAVIEST}
    preference: dict[str, Any] = {"type": "object", "additionalProperties": weight}
    rewards: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "number"}}
    overall: dict[str, Any] = {"type": "number"}
    if setup is not None:
        closed: dict[str, Any] = {"type": "object", "additionalProperties": False}
        weights = {one.name: weight for one in setup.objectives}
        preference = {**closed, "properties": weights, "required": list(weights)}
        rewards = {**closed, "properties": {one.name: _between(one) for one in setup.objectives}}
        overall = _between(setup.overall)
    for name in ("DecisionBody", "BatchDecision", "FeedbackBody", "BatchFeedback"):
        fields = components[name]["properties"]
        _replace(fields, "preference", preference)
        if "rewards" in fields:
            _replace(fields, "rewards", rewards)
            _replace(fields, "overall", overall)
            components[name]["anyOf"] = [
                {"required": ["rewards"], "properties": {"rewards": {"type": "object", "minProperties": 1}}},
                {"required": ["overall"], "properties": {"overall": {"type": "number"}}},
                {"required": ["preference"], "properties": {"preference": {"type": "object"}}},
            ]
        else:
            for kind in fields["arms"]["anyOf"]:
                if kind.get("type") == "array":
                    kind.update(minItems=1, uniqueItems=True)
                elif kind.get("type") == "object":
                    kind.update(minProperties=1, additionalProperties={"anyOf": [rewards, {"type": "null"}]})
    for name in ("RankingBody", "VariantBody"):
        _replace(components[name]["properties"], "preference", preference)
    values = {"anyOf": [{"type": kind} for kind in ("number", "boolean", "string", "null")]}
    for name in ("ArmBody", "BatchArm", "DecisionBody", "BatchDecision"):
        _replace(components[name]["properties"], "features", {"type": "object", "additionalProperties": values})
    for name, field in (("DecisionBatch", "requests"), ("FeedbackBatch", "feedback"), ("ArmBatch", "arms")):
        components[name]["properties"][field].update(minItems=1, maxItems=max_batch)
    for name, schema in components.items():
        if hasattr(answers, name):  # nothing of an answer is left out
            schema["required"] = list(schema["properties"])
            for part in schema["properties"].values():
                part.pop("default", None)
    results = components["FeedbackResult"]["properties"]
    results["status"]["enum"], results["code"]["enum"] = list(map(str, Outcome)), list(map(str, Code))
    components["ProblemBody"]["properties"]["code"]["enum"] = [code.value for code in Code if code.status >= 400]


def _between(one: Objective) -> dict[str, Any]:
    return {"type": "number", "minimum": one.low, "maximum": one.high}


def _replace(fields: dict[str, Any], name: str, schema: dict[str, Any]) -> None:
    """Give a field a narrower schema; it may be left out if it might before, and what is said of it stays."""
    before = fields[name]
    if "default" in before:
        schema = {"anyOf": [schema, {"type": "null"}], "default": None}
    fields[name] = {**schema, **{key: before[key] for key in ("description",) if key in before}}
