"""Screens of the stepper in the pages: they hold what the pages speak of, and come from the keys that the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
if not DOCS.is_dir():
    pytest.skip("there are no pages here", allow_module_level=True)
PAGES = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")) if "\n```{stepper}" in path.read_text()]

RATIO = """```{code-block} cuda
:caption: ratio.cu
__global__ void ratio(float* x) {
  float y = x[threadIdx.x] - 3.0f;
  x[threadIdx.x] = y / y;
}
```
"""
COMMAND = "fasim run ratio.cu --grid 1 --block 32 --arg 'x=f32[32]:arange' --trace"


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """The modules that make parts of the pages, for the tests of this file alone."""
    sys.path.insert(0, str(DOCS / "_ext"))
    yield
    sys.path.remove(str(DOCS / "_ext"))


@pytest.fixture
def screens():
    from fasim_docs import screens

    return screens


def block(command="", keys="", part="", claims=()):
    options = [f":{name}: {value}\n" for name, value in (("keys", keys), ("part", part)) if value]
    lines = "".join(f"{claim}\n" for claim in claims)
    return f"\n```{{stepper}} {command}\n{''.join(options)}{lines}```\n"


@pytest.mark.parametrize("page", PAGES)
def test_screens_hold_what_the_page_speaks_of(page, screens):
    text = (DOCS / page).read_text()
    made = screens.screens(text)
    assert len(made) == len(re.findall(r"^```\{stepper\}", text, re.MULTILINE))
    for screen in made:
        assert not screen.missing, f"{page}:{screen.stop.line}: no {screen.missing} in\n{screen.text}"


def test_a_walk_goes_on_from_block_to_block(screens):
    page = RATIO + block(COMMAND, 'x "nan" c 6', claims=["NaN in lane 3", "nothing of the kind"]) + block(keys="p 1", part="view")
    first, second = screens.screens(page)
    assert first.missing == ["nothing of the kind"]
    assert first.text.startswith("ratio  CTA 0,0,0") and "breakpoint: nan" in first.text
    assert "ratio  CTA" not in second.text and "%f2 f32 written " in second.text and "\n  0: -3 -2 -1  0  1" in second.text
    again = screens.screens(page)
    assert [screen.html() for screen in again] == [first.html(), second.html()]


def test_what_the_page_speaks_of_is_marked(screens):
    (screen,) = screens.screens(RATIO + block(COMMAND, claims=["1 __global__ void  ratio(float* x)"]))
    (line,) = [line for line in screen.html().splitlines() if "told" in line]
    told = re.search(r'<span class="told">(.*?)</span>(?!</span>)', line)
    assert told is not None and re.sub("<.*?>", "", told[1]) == "1 __global__ void ratio(float* x)"


def test_parts_of_a_screen(screens):
    page = RATIO + block(COMMAND, "n") + block(part="code") + block(part="view")
    whole, code, view = (screen.text for screen in screens.screens(page))
    assert code.rstrip() + "\n" in whole and whole.endswith(view) and "1 registers" not in code
    assert view.splitlines()[0].startswith(" 1 registers  2 fragment")


def test_files_come_from_commands_above_that_write_them(screens):
    copied = "\n```console\n$ sed 's/3.0f/5.0f/' ratio.cu > other.cu\n$ echo spoilt > /dev/null; false\n```\n"
    (screen,) = screens.screens(RATIO + copied + block(COMMAND.replace("ratio.cu", "other.cu"), 'x "nan" c 6'))
    assert "other.cu:3" in screen.text and "NaN in lane 5" in screen.text


def test_keys(screens):
    presses = screens.parse_keys('s*4 slash "step S_QK" question_mark "w" 2')
    assert [(press.key, press.count, press.text) for press in presses] == [
        ("s", 4, ""), ("slash", 1, ""), ("", 1, "step S_QK"), ("question_mark", 1, ""), ("", 1, "w"), ("2", 1, ""),
    ]  # fmt: skip
    assert [press.shown for press in presses if press.key] == ["s", "/", "?", "2"]


@pytest.mark.parametrize("wrong", [block(keys="s"), block(COMMAND, part="half"), block(COMMAND).replace("}", "} x\n:size: 3", 1)])
def test_blocks_that_cannot_be_understood(wrong, screens):
    with pytest.raises(ValueError, match="line 2: a stepper block has :keys:"):
        screens.stops(wrong)


def test_long_commands_are_continued_before_options():
    pytest.importorskip("sphinx")
    from fasim_docs.directives import wrapped

    assert wrapped("fasim run a.cu --grid 1 --warp 0 --trace", 26) == "fasim run a.cu --grid 1 \\\n>     --warp 0 --trace"
    assert wrapped("fasim run", 3) == "fasim run"


def test_directives_in_a_build(tmp_path):
    pytest.importorskip("myst_parser")
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text("extensions = ['myst_parser', 'sphinx.ext.autodoc', 'fasim_docs.extension']\n")
    picture = "\n```{layout-picture} hand-over\nWho holds S and P.\n```\n"
    blocks = block(COMMAND, 'n*2 x "line 3" c', claims=["> 3", "not there"]) + block(keys="p", part="view")
    (source / "index.md").write_text(f"# Page\n\n{RATIO}{blocks}{picture}")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(tmp_path / "html")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCS / "_ext"), str(DOCS.parent)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "index.md:11: WARNING: the screen does not show ['not there']; it shows:" in done.stderr
    page = (tmp_path / "html" / "index.html").read_text()
    said = [re.sub("<.*?>", "", text) for text in re.findall(r'<p class="keys">(.*?)</p>', page)]
    assert said == ["Press n twice, x, type line 3 Enter, c:", "Press p:"]
    assert page.count('<pre class="stepper"') == 2 and "$ fasim run ratio.cu" in re.sub("<.*?>", "", page)
    assert re.search(r'<img class="layout" src="_images/layout-hand-over.svg" alt="Who holds S and P.">', page)
    assert "<svg" in (tmp_path / "html" / "_images" / "layout-hand-over.svg").read_text()
