"""Sphinx: `sphinx-build -W --keep-going -b html docs build/html`, with `pip install -e '.[docs]'`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import fasim

project = "fasim"
release = version = fasim.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "fasim_docs.extension"]
html_theme = "furo"
html_title = f"fasim {release}"
html_static_path, html_css_files = ["_static"], ["wide.css"]
html_show_copyright = False
html_show_sphinx = False
exclude_patterns = ["_ext"]
smartquotes = False  # options are written with two dashes
pygments_style, pygments_dark_style = "tango", "monokai"

myst_heading_anchors = 3
suppress_warnings = ["myst.strikethrough"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False
nitpicky = True
# what is not ours (the standard library, numpy) has its documentation elsewhere; ours must be in these pages, or be one of these
nitpick_ignore_regex = [
    ("py:.*", r"(?!fasim\b).*"),
    ("py:class", r"fasim\.(toolchain|arch\.table|gmem|trace|ptx)\..*"),
    ("py:class", r"fasim\.kernels\.spec\..*|fasim\.isa\.program\.Program|fasim\.smem\.layouts\.Index"),
]
