"""Who is offered which arms in a round: blocks at random, blocks in rotation, everything to everybody, or any subset.

The arms of block b are b·size … (b+1)·size − 1. A protocol of blocks writes one a user and round; subsets of all arms
are drawn by `pamo.environments.live`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pamo.compiling import inlined
from pamo.streams import Stream, shuffle

RANDOM, ROTATE, ALL, SUBSET = range(4)

PROTOCOLS: dict[str, int] = {"random": RANDOM, "rotate": ROTATE, "all": ALL, "subset": SUBSET}
"""random: a new permutation each round (the paper's appendix). rotate: each block moves on to the next user
(its main text). all: every arm to every user. subset: to each user as many of all arms as a block has, drawn anew each
round (the model's 𝒜ₜⁿ ⊆ [K])."""


@inlined
def assign(blocks: npt.NDArray[np.int64], protocol: int, stream: Stream) -> None:
    """Write this round's assignment over the last one's: user n gets block blocks[n]."""
    if protocol == RANDOM:
        shuffle(stream, blocks)
    elif protocol == ROTATE:
        last = blocks[len(blocks) - 1]
        for n in range(len(blocks) - 1, 0, -1):
            blocks[n] = blocks[n - 1]
        blocks[0] = last
