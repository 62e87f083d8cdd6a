"""The directives of these pages: `stepper` puts a screen of the stepper in, `layout-picture` a picture of `fasim layout`."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from fasim_docs import screens

_log = logging.getLogger(__name__)
_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}


class StepperDirective(SphinxDirective):
    """The command if there is one, the keys to press, and the screen then."""

    has_content = True
    optional_arguments, final_argument_whitespace = 1, True
    option_spec: ClassVar = {"keys": directives.unchanged, "part": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The screens of a page are made together, when the first is asked for."""
        here, data = self.env.docname, self.env.current_document
        if "fasim_screens" not in data:
            data["fasim_screens"] = screens.screens(Path(self.env.doc2path(here)).read_text())
        screen = data["fasim_screens"].pop(0)
        if screen.missing:
            _log.warning("the screen does not show %s; it shows:\n%s", screen.missing, screen.text, location=(here, screen.stop.line))
        made: list[nodes.Node] = []
        if screen.stop.command:
            text = "$ " + wrapped(screen.stop.command)
            made.append(nodes.literal_block(text, text, language="console"))
        if screen.stop.presses:
            made.append(keys_to_press(screen.stop.presses))
        if self.env.app.builder.format == "html":
            label = f"Screen of the stepper: {screen.text.splitlines()[0].strip()}"
            text = f'<pre class="stepper" tabindex="0" aria-label="{html.escape(label)}">{screen.html()}</pre>'
            return [*made, nodes.raw("", text, format="html")]
        return [*made, nodes.literal_block(screen.text, screen.text, language="text")]


def wrapped(command: str, columns: int = 92) -> str:
    """A command as it is typed in a terminal, continued before options."""
    lines = [""]
    for part in re.split(r" (?=--)", command):
        if lines[-1] and len(lines[-1]) + len(part) >= columns:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n>     ".join(lines)


def keys_to_press(presses: tuple[screens.Press, ...]) -> nodes.paragraph:
    """The sentence that says what to press."""
    text = nodes.paragraph("", "Press ", classes=["keys"])
    for number, press in enumerate(presses):
        if number:
            text += nodes.Text(", ")
        if press.key:
            text += nodes.literal("", press.shown, classes=["kbd"])
            if press.count > 1:
                text += nodes.Text(" " + _TIMES.get(press.count, f"{press.count} times"))
        else:
            text += [nodes.Text("type "), nodes.literal("", press.text), nodes.Text(" "), nodes.literal("", "Enter", classes=["kbd"])]
    text += nodes.Text(":")
    return text


class LayoutPicture(SphinxDirective):
    """The picture that `fasim layout NAME --out` draws; its content says what is to be seen."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The picture is made beside those of other pages."""
        from fasim.cli.layout import examine
        from fasim.report.layout import Selection
        from fasim.report.layout_figure import save_layout

        said, name = " ".join(self.content), self.arguments[0]
        if self.env.app.builder.format != "html":
            return [nodes.paragraph(said, said)]
        path = Path(self.env.app.outdir) / "_images" / f"layout-{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_layout(path, *examine(name, None, Selection(None, None, None)))
        source = "../" * self.env.docname.count("/") + f"_images/{path.name}"
        return [nodes.raw("", f'<img class="layout" src="{source}" alt="{html.escape(said)}">', format="html")]
