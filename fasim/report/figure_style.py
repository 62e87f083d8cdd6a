"""What all figures share: colours that differ in grey, too, sizes, and how they are written: the same data give the same file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fasim.errors import UsageError
from fasim.report.output_file import check_output_path, replaced_file
from fasim.report.records import encoded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
#: the palette of Okabe and Ito, and a light tint of its sky blue
BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE, PALE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#CDE7F6"
INK, GREY, GRID = "#222222", "#6E6E6E", "#C8C8C8"
#: points
SMALL, TEXT, TITLE = 7.0, 8.0, 10.0
#: about as wide as a character is at a size of one point, in inches: of the sans-serif font, bold, and of the one with a fixed width
CHARACTER_INCHES, BOLD_INCHES, MONO_INCHES = 0.0079, 0.00885, 0.00836
DOTS_PER_INCH = 200
#: no picture may have 2^16 dots in a direction
_MOST_DOTS = 65000
# text stays text in SVG
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "fasim", "hatch.linewidth": 0.7}


def check_figure_path(path: Path, option: str = "--out") -> None:
    """Find out before the run whether a picture can be written.

    Raises: UsageError.
    """
    check_output_path(option, path, "picture.svg", SUFFIXES, "pictures are .png or .svg")


def save_figure(figure: Figure, path: Path, option: str = "--out", *, dots_per_inch: int = DOTS_PER_INCH) -> None:
    """Write a figure in the format that the path's suffix says.

    Raises: UsageError if the file cannot be written.
    """
    try:
        with replaced_file(path) as file:
            write_figure(figure, file, path.suffix.lower()[1:], dots_per_inch=dots_per_inch)
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error


def write_figure(figure: Figure, file: BinaryIO, format_: str, *, dots_per_inch: int = DOTS_PER_INCH) -> None:
    """Write a figure as "svg" or "png".

    Raises: OSError.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(encoded(text.get_text()).decode())  # fonts know no bytes of paths that are not UTF-8
    metadata: dict[str, Any] = {"Date": None} if format_ == "svg" else {"Software": None}
    dots = min(dots_per_inch, _MOST_DOTS / max(figure.get_figwidth(), figure.get_figheight()))
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(file, format=format_, dpi=dots, metadata=metadata)


def text_style(points: float, weight: str = "normal") -> dict[str, Any]:
    """What text is drawn with that stands for itself: names of kernels and files, where $ and _ mean nothing."""
    return {"fontsize": points, "weight": weight, "color": INK, "va": "center", "parse_math": False}


def shortened(text: str, width_inches: float, points: float, character_inches: float = CHARACTER_INCHES) -> str:
    """A text, cut so that it is about as wide as there is room. character_inches: as wide as a character is at one point."""
    room = int(width_inches / (points * character_inches))
    return text if len(text) <= room else text[: max(room - 1, 0)].rstrip() + "\N{HORIZONTAL ELLIPSIS}"
