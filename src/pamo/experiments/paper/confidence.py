"""Study `confidence`: in the making."""

from pamo.experiments.study import Study

STUDY = Study(
    name="confidence",
    title="confidence",
    about="in the making",
    source="",
    settings={"trials": 2},
    quick={},
    weight=1.0,
    measure=lambda settings, seed, progress: {},
    claims=(),
    drawings=(),
)
