"""Random streams: the same numbers on every machine, thread and device, from (seed, trial, purpose).

A stream is an array of four 64-bit words, the state of xoshiro256++ (Blackman & Vigna 2021), so that a kernel
can be handed one. It is seeded by splitmix64 from a key, and two keys give unrelated streams. Normals come from
the ziggurat (Marsaglia & Tsang 2000) with 256 layers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pamo.compiling import inlined, kernel
from pamo.words import listed

Stream = npt.NDArray[np.uint64]

INSTANCE, ENVIRONMENT, POLICY, STATED, CHANGES, MISSING, FEATURES = range(7)
"""The purposes a trial draws for, each from a stream of its own, so that one never shifts another."""

_ELEVEN = np.uint64(11)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_R23, _R41, _R45, _R19, _S17 = np.uint64(23), np.uint64(41), np.uint64(45), np.uint64(19), np.uint64(17)
_LOW32, _LAYER = np.uint64(0xFFFFFFFF), np.uint64(0xFF)
_S32 = np.uint64(32)
_UNIT = 1.0 / 9007199254740992.0  # 2^-53


def _ziggurat(layers: int = 256) -> tuple[Any, Any, Any]:
    """Return the ziggurat's tables: the integer below which a draw is inside, its scale, the density at the edge.

    Each layer has the area `v`; `start` is where the tail begins, for which the layers close exactly at the top.
    """
    start, v = 3.6541528853610088, 0.00492867323399
    edges = np.empty(layers + 1)
    edges[0], edges[1] = v / math.exp(-0.5 * start * start), start
    for layer in range(2, layers):
        edges[layer] = math.sqrt(-2.0 * math.log(v / edges[layer - 1] + math.exp(-0.5 * edges[layer - 1] ** 2)))
    edges[layers] = 0.0
    inside = (edges[1:] / edges[:-1] * 2.0**52).astype(np.uint64)
    return inside, edges[:-1] / 2.0**52, np.exp(-0.5 * edges**2)


_inside, _scale, _density = map(listed, _ziggurat())
_TAIL = 3.6541528853610088


@kernel
def mix(key: np.uint64) -> np.uint64:
    """Return splitmix64's scrambling of a 64-bit key: nearby keys give unrelated values."""
    key = (key ^ (key >> _S30)) * _MIX_1
    key = (key ^ (key >> _S27)) * _MIX_2
    return key ^ (key >> _S31)


@kernel
def key_of(seed: int, trial: int, purpose: int) -> np.uint64:
    """Return the key of the stream that one trial of an experiment uses for one purpose."""
    return mix(mix(mix(np.uint64(seed) + _GOLDEN) + np.uint64(trial) + _GOLDEN) + np.uint64(purpose) + _GOLDEN)


@kernel
def start(stream: Stream, key: np.uint64) -> None:
    """Set the stream to the beginning of the sequence that belongs to `key`."""
    for word in range(4):
        key = key + _GOLDEN
        stream[word] = mix(key)


@inlined
def _step(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return 64 random bits and the state after them (xoshiro256++)."""
    mixed = a + d
    word = ((mixed << _R23) | (mixed >> _R41)) + a
    shifted = b << _S17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return word, a, b, c, (d << _R45) | (d >> _R19)


@inlined
def next_word(stream: Stream) -> np.uint64:
    """Return 64 random bits."""
    word, stream[0], stream[1], stream[2], stream[3] = _step(stream[0], stream[1], stream[2], stream[3])
    return word


@inlined
def uniform(stream: Stream) -> float:
    """Return a number from [0, 1), one of 2^53 equally spaced ones."""
    return np.float64(next_word(stream) >> _ELEVEN) * _UNIT


@inlined
def below(stream: Stream, bound: int) -> np.int64:
    """Return a whole number from 0 to bound − 1 (the multiply-shift way: its bias is under bound·2^-32)."""
    return np.int64(((next_word(stream) >> _S32) * np.uint64(bound)) >> _S32)


@kernel
def _ziggurat_edge(stream: Stream, layer: int, x: float) -> tuple[bool, float]:
    """Settle a draw that fell outside its layer's box: return (accepted, value)."""
    if layer == 0:  # beyond the last edge: Marsaglia's way for the tail
        while True:
            beyond = -math.log(1.0 - uniform(stream)) / _TAIL
            height = -math.log(1.0 - uniform(stream))
            if 2.0 * height > beyond * beyond:
                return True, math.copysign(_TAIL + beyond, x)
    low, high = _density(layer), _density(layer + 1)
    return low + (high - low) * uniform(stream) < math.exp(-0.5 * x * x), x


@inlined
def normals(stream: Stream, out: npt.NDArray[np.float64], count: int) -> None:
    """Write `count` standard normal numbers; the state stays in registers between them, which is twice as fast."""
    a, b, c, d = stream[0], stream[1], stream[2], stream[3]
    place = 0
    while place < count:
        word, a, b, c, d = _step(a, b, c, d)
        layer = word & _LAYER
        signed = np.int64(word) >> 11  # 53 bits, the sign among them; the layer's bits are not
        x = np.float64(signed) * _scale(layer)
        accepted = np.uint64(abs(signed)) < _inside(layer)
        if not accepted:  # one in a hundred
            stream[0], stream[1], stream[2], stream[3] = a, b, c, d
            accepted, x = _ziggurat_edge(stream, np.int64(layer), x)
            a, b, c, d = stream[0], stream[1], stream[2], stream[3]
        if accepted:
            out[place] = x
            place += 1
    stream[0], stream[1], stream[2], stream[3] = a, b, c, d


@inlined
def normal(stream: Stream) -> float:
    """Return a standard normal number, the same as `normals` would."""
    while True:
        word = next_word(stream)
        layer = word & _LAYER
        signed = np.int64(word) >> 11
        x = np.float64(signed) * _scale(layer)
        if np.uint64(abs(signed)) < _inside(layer):
            return x
        accepted, x = _ziggurat_edge(stream, np.int64(layer), x)
        if accepted:
            return x


@kernel
def gamma(stream: Stream, shape: float) -> float:
    """Return a gamma number of the given shape and scale 1 (Marsaglia & Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = (1.0 - uniform(stream)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(1.0 - uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
                return boost * d * v


@kernel
def beta(stream: Stream, a: float, b: float) -> float:
    """Return a beta number; shapes so small that both gammas vanish are what they tend to, a coin of mean a/(a+b)."""
    x, y = gamma(stream, a), gamma(stream, b)
    if x + y > 0.0:
        return x / (x + y)
    return 1.0 if uniform(stream) * (a + b) < a else 0.0


@inlined
def shuffle(stream: Stream, items: npt.NDArray[np.int64]) -> None:
    """Put the items into a random order, all orders being equally likely."""
    for last in range(len(items) - 1, 0, -1):
        other = below(stream, last + 1)
        items[last], items[other] = items[other], items[last]


def stream_for(seed: int, trial: int, purpose: int) -> Stream:
    """Return a fresh stream for one trial and purpose.

    >>> stream = stream_for(seed=1, trial=0, purpose=POLICY)
    >>> 0.0 <= uniform(stream) < 1.0
    True
    """
    stream = np.empty(4, dtype=np.uint64)
    # Numba would take a small key for a signed number, and mixing the two kinds makes floats.
    start(stream, np.uint64(key_of(np.uint64(seed), np.uint64(trial), np.uint64(purpose))))
    return stream
