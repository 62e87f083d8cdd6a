"""What the tests of figures ask of a picture."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(figure: Any) -> list[str]:
    """All that is written in a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def svg_texts(path: Path) -> list[str]:
    """The texts of an SVG file."""
    return [element.text.strip() for element in ElementTree.parse(path).iter(f"{SVG}text") if element.text]


def overlapping(figure: Any) -> list[tuple[str, str]]:
    """Texts that stand on each other, and those that stand out of the page."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    page = figure.bbox
    found = []
    boxes = []
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent(canvas.get_renderer())
            boxes.append((text.get_text(), box))
            if box.x0 < page.x0 or box.x1 > page.x1 or box.y0 < page.y0 or box.y1 > page.y1:
                found.append((text.get_text(), "the edge"))
    for (one, a), (other, b) in combinations(boxes, 2):
        if a.x0 < b.x1 - 1 and b.x0 < a.x1 - 1 and a.y0 < b.y1 - 1 and b.y0 < a.y1 - 1:
            found.append((one, other))
    return found


def bars(axes: Any, name: str) -> list[tuple[float, float]]:
    """From where to where the rectangles of an axes reach whose id begins so, from left to right."""
    return sorted((p.get_x(), p.get_x() + p.get_width()) for p in axes.patches if (p.get_gid() or "").startswith(name))
