"""What a sweep tries, read from a TOML file: settings (environments) and candidates (policies), and by which method.

A field of `[environment]` or `[[policy]]` is a value, a list of values, or a range, `{from = 0.01, to = 1, steps = 5,
scale = "log"}`; without `steps` a range is drawn from.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pamo import environments, policies
from pamo.environments import Environment
from pamo.errors import InputError, unknown_name
from pamo.from_file import parts_of
from pamo.policies import Policy

METHODS = ("grid", "random", "halving")
SCALES = ("linear", "log")
MOST = 1_000_000
"""Runs, settings times candidates, beyond which a sweep is a slip of the keyboard."""
_TRIES = 50
"""Draws in a row that are none but repeats, after which there are no others to be had."""
_RANGE = ("from", "to", "steps", "scale")
_SWEEP: Mapping[str, tuple[Any, float]] = {
    "method": ("grid", 0),
    "rounds": (5000, 1),
    "trials": (50, 2),
    "seed": (1, 0),
    "candidates": (None, 1),
    "settings": (None, 1),
    "keep": (1 / 3, 0),
    "first_trials": (None, 2),
}
"""The keys of `[sweep]`: what each is by default, and the least that it may be."""
_DRAWN = {"candidates": ("random", "halving"), "settings": ("random", "halving"), "keep": ("halving",)}
_DRAWN["first_trials"] = ("halving",)
Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a sweep tries. settings, candidates: by name; fields: what the file says of each setting.

    rungs: the trials after which the worse are dropped, and all there are. keep: the share that goes on after a rung.
    """

    method: str
    rounds: int
    seed: int
    settings: Mapping[str, Environment]
    fields: Mapping[str, Mapping[str, Any]]
    candidates: Mapping[str, Policy]
    rungs: tuple[int, ...]
    keep: float


@dataclass(frozen=True)
class _Range:
    """Numbers from one to another; whole numbers if both ends were written as such."""

    least: float
    most: float
    steps: int | None
    log: bool

    def at(self, share: float) -> float | int:
        """Return the number at this share of the way, with four digits: what a person would type."""
        if self.log:
            value = math.exp(math.log(self.least) + share * (math.log(self.most) - math.log(self.least)))
        else:
            value = self.least + share * (self.most - self.least)
        return round(value) if isinstance(self.least, int) and isinstance(self.most, int) else float(f"{value:.4g}")

    def values(self, where: str) -> list[float | int]:
        if self.steps is None:
            raise InputError(f"{where}: expected steps in a range of a grid, such as {{from = 0.1, to = 1, steps = 5}}")
        return list(dict.fromkeys(self.at(step / max(self.steps - 1, 1)) for step in range(self.steps)))


def read_spec(path: str | Path) -> Spec:
    """Return what a file says, or an error that names the file, the field, what was expected and what came."""
    source = Path(path)
    try:
        with source.open("rb") as stream:
            said = tomllib.load(stream)
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source} is not TOML: {error}") from error
    try:
        return spec_of(said, folder=source.parent)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def spec_of(said: Mapping[str, Any], *, folder: Path = Path()) -> Spec:
    """Return what a file's contents say. folder: where `FILE.py:NAME` is looked for.

    >>> spec = spec_of({"policy": [{"id": "oful", "epsilon": [0.05, 0.1]}, {"id": "greedy"}]})
    >>> list(spec.settings), list(spec.candidates)
    (['gaussian'], ['oful', 'oful:epsilon=0.1', 'greedy'])
    """
    for name in said:
        if name not in ("sweep", "environment", "policy"):
            raise unknown_name("table", name, ("sweep", "environment", "policy"))
    sweep = _sweep(_table("sweep", said.get("sweep", {})))
    drawn = sweep["method"] != "grid"
    around: Sequence[Any] = _tables("environment", said.get("environment", {"id": "gaussian"}))
    tried = _tables("policy", said.get("policy", []))
    if not tried:
        raise InputError('expected at least one [[policy]], such as\n[[policy]]\nid = "oful"\nepsilon = [0.05, 0.1]')
    make_environment, make_policy = _maker(environments.create, folder), _maker(policies.create, folder)
    every: dict[str, Any] = {}
    for key, count, tables, make in (
        ("environment", sweep["settings"], around, make_environment),
        ("policy", sweep["candidates"], tried, make_policy),
    ):
        chance = np.random.default_rng([sweep["seed"], len(every)])
        many = _drawn(tables, count, chance) if drawn and count else _grid(tables)
        every[key] = list(_made(many, make))
    points, several = zip(*every["environment"], strict=True)
    names = _names(points)
    settings, fields = (dict(zip(names, many, strict=True)) for many in (several, points))
    candidates = {policy.label: policy for _, policy in every["policy"]}
    if len(settings) * len(candidates) > MOST:
        raise InputError(
            f"expected at most {MOST:,} runs, got {len(settings):,} settings × {len(candidates):,} policies"
        )
    return Spec(
        method=sweep["method"],
        rounds=sweep["rounds"],
        seed=sweep["seed"],
        settings=settings,
        fields=fields,
        candidates=candidates,
        rungs=_rungs(sweep),
        keep=sweep["keep"],
    )


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"expected [{where}] to be a table, got {value!r:.60}")
    return value


def _sweep(said: Mapping[str, Any]) -> dict[str, Any]:
    for name in said:
        if name not in _SWEEP:
            raise unknown_name("key of [sweep]", name, _SWEEP)
    method = said.get("method", "grid")
    if method not in METHODS:
        raise unknown_name("sweep.method", str(method), METHODS)
    for name, (_, least) in _SWEEP.items():
        if name == "method" or name not in said:
            continue
        value, real = said[name], name == "keep"
        if method not in _DRAWN.get(name, METHODS):
            raise InputError(f"sweep.{name}: only the method {' and '.join(_DRAWN[name])} takes it, not {method!r}")
        if isinstance(value, bool) or not isinstance(value, (int, float) if real else int):
            raise InputError(f"sweep.{name}: expected a {'' if real else 'whole '}number, got {value!r}")
        if value < least or (real and not 0.0 < value < 1.0):
            wanted = "between 0 and 1" if real else f"at least {least}"
            raise InputError(f"sweep.{name}: expected a number {wanted}, got {value!r}")
    if method == "random" and "candidates" not in said:
        raise InputError("sweep.candidates: expected how many are to be drawn, such as candidates = 20")
    return {name: said.get(name, default) for name, (default, _) in _SWEEP.items()}


def _rungs(sweep: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the trials after which the worse are dropped: each rung has 1/keep times those of the one before."""
    trials, keep = sweep["trials"], sweep["keep"]
    if sweep["method"] != "halving":
        return (trials,)
    first = sweep["first_trials"] or max(2, math.ceil(trials * keep * keep))
    if first > trials:
        raise InputError(f"sweep.first_trials: expected at most the {trials} trials, got {first}")
    rungs = [first]
    while rungs[-1] < trials:
        rungs.append(min(max(math.ceil(rungs[-1] / keep - 1e-9), rungs[-1] + 1), trials))
    return tuple(rungs)


@dataclass(frozen=True)
class _Tried:
    """A table of the file: its id, and what each of its fields may be."""

    where: str
    id: str
    fields: Mapping[str, Any]


def _tables(key: str, value: Any) -> list[_Tried]:
    several = value if isinstance(value, list) else [value]
    found = []
    for number, one in enumerate(several, 1):
        where = f"{key} {number}" if len(several) > 1 else key
        fields = dict(_table(key, one))
        name = fields.pop("id", "gaussian" if key == "environment" else None)
        if not isinstance(name, str):
            raise InputError(f"{where}.id: expected the id of {'an' if key[0] == 'e' else 'a'} {key}, got {name!r}")
        ranges = {field: _choices(f"{where}.{field}", of) for field, of in fields.items()}
        found.append(_Tried(where, name, ranges))
    return found


def _choices(where: str, value: Any) -> list[Any] | _Range:
    """Return what a field may be: several values, or a range."""
    if isinstance(value, list):
        if not value or any(isinstance(each, list | dict) for each in value):
            raise InputError(f"{where}: expected a list of values, got {value!r:.80}")
        return value
    if not isinstance(value, dict):
        return [value]
    for name in value:
        if name not in _RANGE:
            raise unknown_name(f"key of the range {where}", name, _RANGE)
    ends: Any = (value.get("from"), value.get("to"))
    numbers = [isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in ends]
    if not all(numbers) or not ends[0] < ends[1]:
        raise InputError(f"{where}: expected a range {{from = A, to = B}} with A below B, got {value!r:.80}")
    steps, scale = value.get("steps"), value.get("scale", "linear")
    if scale not in SCALES:
        raise unknown_name(f"{where}.scale", str(scale), SCALES)
    if scale == "log" and ends[0] <= 0:
        raise InputError(f"{where}: expected a range above 0 for the scale log, got from = {ends[0]}")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 2):
        raise InputError(f"{where}.steps: expected a whole number, at least 2, got {steps!r}")
    return _Range(ends[0], ends[1], steps, scale == "log")


_Point = tuple[_Tried, dict[str, Any]]


def _grid(tables: Sequence[_Tried]) -> Iterator[_Point]:
    """Yield every combination of every table."""
    for one in tables:
        values = [
            of.values(f"{one.where}.{field}") if isinstance(of, _Range) else of for field, of in one.fields.items()
        ]
        if math.prod(map(len, values)) > MOST:
            raise InputError(f"{one.where}: expected at most {MOST:,} combinations, got more; use the method random")
        for combination in product(*values):
            yield one, dict(zip(one.fields, combination, strict=True))


def _drawn(tables: Sequence[_Tried], count: int, chance: np.random.Generator) -> Iterator[_Point]:
    """Yield so many different combinations, each of a table at random; fewer where there are no more."""
    seen: set[str] = set()
    repeats = 0
    while len(seen) < count and repeats < _TRIES * count:
        one = tables[int(chance.integers(len(tables)))]
        point: dict[str, Any] = {}
        for field, of in one.fields.items():
            many = of.values(field) if isinstance(of, _Range) and of.steps else of
            if isinstance(many, _Range):
                point[field] = many.at(float(chance.random()))
            else:
                point[field] = many[int(chance.integers(len(many)))]
        key = repr((one.where, sorted(point.items())))
        if key in seen:
            repeats += 1
            continue
        seen.add(key)
        yield one, point


def _maker(create: Callable[..., Made], folder: Path) -> Callable[[str, dict[str, Any]], Made]:
    def make(name: str, values: dict[str, Any]) -> Made:
        return create(str(folder / name) if parts_of(name) else name, **values)

    return make


def _made(
    points: Iterator[_Point], make: Callable[[str, dict[str, Any]], Made]
) -> Iterator[tuple[dict[str, Any], Made]]:
    """Yield each point with what it makes, which is made once, and say which table was wrong."""
    seen = set()
    for one, values in points:
        try:
            found = make(one.id, values)
        except InputError as error:
            raise InputError(f"{one.where}: {error}") from error
        if (key := repr(found)) not in seen:
            seen.add(key)
            yield {"id": one.id} | values, found


def _names(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what tells settings apart, or the environment's id where nothing does."""
    fields = dict.fromkeys(name for point in points for name in point)
    differing = [name for name in fields if len({repr(point.get(name)) for point in points}) > 1]
    return [
        ", ".join(f"{name}={point[name]}" for name in differing if name in point) or str(point["id"])
        for point in points
    ]
