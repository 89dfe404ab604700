"""What fixed seeds give, policy by policy: nobody changes a formula, a stream or the loop unawares."""

import numpy as np
import pytest

from pamo import policies
from tests.goldens import ENVIRONMENTS, golden, kept


def test_every_policy_has_a_golden_and_no_other_is_kept() -> None:
    assert list(kept()) == list(policies.available()), "run `python -m tests.goldens` and look at what it changes"
    assert all(set(values) == set(ENVIRONMENTS) for values in kept().values())


@pytest.mark.parametrize("policy", policies.available())
def test_a_fixed_seed_gives_what_it_gave(policy: str) -> None:
    for environment, values in golden(policy).items():
        np.testing.assert_allclose(values, kept()[policy][environment], rtol=1e-7, err_msg=environment)
