"""The paper's studies, one file each. A new one is a file of its own and one row here."""

from __future__ import annotations

from pamo.experiments.paper import (
    ablation,
    bounds,
    confidence,
    conflict,
    events,
    families,
    hidden,
    horizon,
    known,
    lower_bound,
    lr_toy,
    residual,
    stated,
    wls_vs_lr,
)
from pamo.experiments.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        lr_toy,
        wls_vs_lr,
        residual,
        known,
        hidden,
        horizon,
        stated,
        lower_bound,
        conflict,
        confidence,
        events,
        bounds,
        ablation,
    )
}
EXTENDED: dict[str, Study] = {module.STUDY.name: module.STUDY for module in (families,)}
"""What others have claimed, of the families that the paper cites."""
