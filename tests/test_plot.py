"""Figures: readable, the same for the same result, and never half written."""

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pamo import Result, environments, policies, simulate
from pamo.errors import InputError, ResultFileError
from pamo.simulation import plot

MANY = ["prucb-hp", "prucb-up", "prucb-kp", "oful", "ucb-per-user", "greedy", "ucb", "s-ucb"]


@pytest.fixture(scope="module")
def result() -> Result:
    return simulate(MANY, environments.Gaussian(), rounds=200, trials=3, seed=1, checkpoints=20)


def labels(figure):
    return {text.get_text(): text for text in figure.axes[0].texts}


def rendered(figure):
    """Draw the figure, as saving it would, and return the renderer that knows where everything went."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.print_png(io.BytesIO())
    return canvas.get_renderer()


def box_of(text, renderer):
    """Where the words are, without the line that leads to them."""
    from matplotlib.text import Text

    return Text.get_window_extent(text, renderer)


# Where labels go

heights = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=15).map(sorted)


@settings(max_examples=300)
@given(wanted=heights, gap=st.floats(0.1, 100.0), low=st.floats(-1e3, 1e3), room=st.floats(0.0, 2e3))
@example(wanted=[0.0] * 5, gap=10.0, low=0.0, room=100.0)
@example(wanted=[0.0] * 5, gap=10.0, low=0.0, room=1.0)
def test_spread_keeps_labels_apart_in_order_and_inside(wanted, gap, low, room):
    placed = plot.spread(np.array(wanted), gap, low, low + room)
    needed = gap * (len(wanted) - 1)
    assert (np.diff(placed) >= gap - 1e-8).all()
    if needed <= room:
        assert placed[0] >= low - 1e-8
        assert placed[-1] <= low + room + 1e-8
    else:  # too many to fit: as much over the top as under the bottom
        assert low - placed[0] == pytest.approx(placed[-1] - (low + room), abs=1e-7)


@settings(max_examples=100)
@given(wanted=heights, gap=st.floats(0.1, 100.0))
def test_spread_moves_no_label_that_has_room(wanted, gap):
    placed = plot.spread(np.array(wanted), gap, -1e5, 1e5)
    for place, (before, after) in enumerate(zip(wanted, placed, strict=True)):
        neighbours = [abs(before - other) for k, other in enumerate(wanted) if k != place]
        if min(neighbours, default=np.inf) >= gap * len(wanted):
            assert after == pytest.approx(before, abs=1e-7)


@settings(max_examples=100)
@given(wanted=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=5).map(sorted), data=st.data())
def test_spread_moves_as_little_as_it_must(wanted, data):
    low, high, gap = 0.0, 100.0, 10.0
    placed = plot.spread(np.array(wanted), gap, low, high)
    # Any other places that keep the gap and the limits: steps of at least `gap`, scaled to fit.
    slack = high - low - gap * (len(wanted) - 1)
    parts = sorted(data.draw(st.lists(st.floats(0, 1), min_size=len(wanted), max_size=len(wanted))))
    other = low + slack * np.array(parts) + gap * np.arange(len(wanted))
    cost = ((placed - wanted) ** 2).sum()
    assert cost <= ((other - wanted) ** 2).sum() + 1e-6


def test_no_label_covers_another_or_leaves_the_figure(result):
    figure = result.plot()
    renderer = rendered(figure)
    boxes = sorted((box_of(text, renderer) for text in labels(figure).values()), key=lambda box: box.y0)
    assert len(boxes) == len(MANY)
    for lower, upper in itertools.pairwise(boxes):
        assert lower.y1 <= upper.y0 + 1.0
    for box in boxes:
        assert box.x1 <= figure.bbox.x1
        assert box.x0 >= figure.axes[0].get_window_extent(renderer).x1


def test_a_long_label_has_room():
    name = "prucb-hp:beta=0.25,radius=theory,failure=0.01"
    figure = simulate(["ucb", name, "prucb-hp"], environments.Gaussian(), rounds=20, trials=2).plot()
    renderer = rendered(figure)
    long = labels(figure)[name]
    assert box_of(long, renderer).x1 <= figure.bbox.x1


# Colours


def test_every_policy_has_a_colour_of_its_own_and_a_mark():
    assert set(plot.STYLES) == set(policies.available())
    colours = [colour for colour, _ in plot.STYLES.values()]
    assert len(set(colours)) == len(colours)
    assert len(set(plot.MARKERS.values())) == len(plot.MARKERS)


def test_a_policy_looks_the_same_in_every_figure(result):
    alone = simulate(["oful", "prucb-up"], environments.Gaussian(users=3), rounds=20, trials=2).plot()
    together = result.plot()
    for name in ("oful", "prucb-up"):
        looks = []
        for figure, names in ((alone, ["oful", "prucb-up"]), (together, MANY)):
            line = figure.axes[0].lines[names.index(name)]
            looks.append((line.get_color(), line._unscaled_dash_pattern, labels(figure)[name].get_color()))
        assert looks[0] == looks[1]
        assert looks[0][0] == plot.STYLES[name][0]


def test_policies_of_ones_own_get_colours_that_no_other_has():
    mine = [f"mine {place}" for place in range(40)]
    styles = plot.styles_for([*plot.STYLES, *mine])
    assert len({colour for colour, _ in styles.values()}) == len(styles)
    assert plot.styles_for(["moss", "mine 0"])["mine 0"] == styles["mine 0"]


def test_every_label_can_be_read_on_white():
    for colour, _ in plot.styles_for([*plot.STYLES, *map(str, range(20))]).values():
        ink = plot.ink(colour)
        parts = np.array([int(ink[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
        assert plot._contrast(parts) >= 4.45  # 4.5, less what rounding to a byte takes


# Files


@pytest.mark.parametrize(("ending", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_figures_are_written_and_are_the_same_each_time(result, tmp_path, ending, start):
    first, second = (result.plot(tmp_path / f"{name}{ending}") for name in ("first", "second"))
    assert first == tmp_path / f"first{ending}"
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_another_ending_or_a_missing_folder_is_said(result, tmp_path):
    with pytest.raises(InputError, match=r"ends in \.svg, \.png, \.pdf"):
        result.plot(tmp_path / "regret.gif")
    with pytest.raises(InputError, match="existing folder"):
        result.plot(tmp_path / "no" / "regret.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_cannot_be_replaced_leaves_nothing_behind(result, tmp_path):
    target: Path = tmp_path / "regret.svg"
    target.mkdir()
    with pytest.raises(ResultFileError, match="could not be written"):
        result.plot(target)
    assert list(tmp_path.iterdir()) == [target]


# Odd results


@pytest.mark.parametrize("log", [False, True])
def test_a_result_without_any_regret_can_be_drawn(tmp_path, log):
    one = environments.Fixed.of(means=[[0.5, 0.5, 0.5]], preferences=[[1.0, 0.0, 0.0]])
    result = simulate(["prucb-hp", "ucb"], one, rounds=10, trials=2)
    assert result.plot(tmp_path / "flat.png", log=log).stat().st_size > 0


def test_one_trial_and_one_round_can_be_drawn(tmp_path):
    result = simulate(["prucb-hp"], environments.Gaussian(), rounds=1, trials=1)
    assert result.plot(tmp_path / "one.png", title="one").stat().st_size > 0


def test_the_axes_start_at_zero(result):
    axes = result.plot().axes[0]
    assert axes.get_xlim() == (0, 200)
    assert axes.get_ylim()[0] == min(0.0, *(outcome.band()[1].min() for outcome in result.values()))
