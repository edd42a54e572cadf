"""The growth curves as a picture: cost against messages, both logarithmic."""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")  # no display
from matplotlib import pyplot

from tests.bench.growth import Curve

INCHES, DOTS = (8.5, 5.6), 75
COLORS = pyplot.get_cmap("tab20").colors


def draw(curves: list[Curve], path: Path) -> None:
    """Write the picture: what must be flat with a whole line, what may grow with a broken one."""
    figure, axes = pyplot.subplots(figsize=INCHES, dpi=DOTS)
    for curve, color in zip(curves, COLORS, strict=False):
        lengths = sorted(curve.seconds)
        values = [curve.seconds[length] * 1000 for length in lengths]
        style = "o-" if curve.is_flat else "s--"
        axes.loglog(lengths, values, style, color=color, label=curve.what, markersize=4)
    axes.set_xlabel("messages in the history")
    axes.set_ylabel("milliseconds")
    axes.set_title("Whole lines must be flat; broken ones read all that there is")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
