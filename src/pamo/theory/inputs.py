"""What the bounds are given, checked: horizons, means and preferences, and offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats
from pamo.errors import InputError

Offers: TypeAlias = Sequence[Sequence[int]] | npt.NDArray[np.integer[Any]]


def checked_rounds(rounds: npt.ArrayLike) -> Floats:
    """Return the horizons as an array, or raise an error unless each is at least 1.

    >>> checked_rounds([1, 5000]).tolist()
    [1.0, 5000.0]
    """
    horizon = np.asarray(rounds, dtype=np.float64)
    if not (horizon.size and np.isfinite(horizon).all() and horizon.min() >= 1):
        raise InputError(f"expected rounds to be numbers of at least 1, got {rounds!r}")
    return horizon


def checked_tables(means: npt.ArrayLike, preferences: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return means (arms, D) and preferences (users, D) as arrays, or raise an error unless they have one width.

    >>> [table.shape for table in checked_tables([[0.2, 0.8]], [[1, 0], [0, 1]])]
    [(1, 2), (2, 2)]
    """
    mu, c = np.asarray(means, dtype=np.float64), np.asarray(preferences, dtype=np.float64)
    if not (mu.ndim == c.ndim == 2 and mu.shape[1] == c.shape[1] and mu.size and c.size):
        raise InputError(f"expected means (arms, D), preferences (users, D), got {mu.shape} and {c.shape}")
    return mu, c


def checked_offers(offers: Offers, arms: int) -> list[npt.NDArray[np.integer[Any]]]:
    """Return the offers as arrays, or raise an error unless each holds different arms, from 0 to arms − 1.

    >>> [offer.tolist() for offer in checked_offers([[0, 2], [1]], arms=3)]
    [[0, 2], [1]]
    """
    if len(offers) == 0:
        raise InputError("expected at least one offer, got none")
    found = [np.asarray(offer) for offer in offers]
    for given, offer in zip(offers, found, strict=True):
        whole = offer.ndim == 1 and offer.size > 0 and np.issubdtype(offer.dtype, np.integer)
        if not (whole and offer.min() >= 0 and offer.max() < arms and np.unique(offer).size == offer.size):
            raise InputError(f"expected offers of different arms from 0 to {arms - 1}, got {given!r}")
    return found
