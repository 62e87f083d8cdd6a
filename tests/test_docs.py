"""The pages: commands print what they show, Python examples and tables agree with the program."""

from __future__ import annotations

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest
import typer

from fasim.cli.app import app
from fasim.errors import FasimError
from fasim.isa.rows import ROWS
from fasim.kernels import load, names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("there are no pages here", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """The modules that make parts of the pages, for the tests of this file alone."""
    sys.path.insert(0, str(DOCS / "_ext"))
    yield
    sys.path.remove(str(DOCS / "_ext"))


def extension(name: str):
    return importlib.import_module(f"fasim_docs.{name}")


def page_ids(language: str) -> list[str]:
    fence = re.compile(rf"^```{language}$", re.MULTILINE)
    return [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md")) if fence.search(path.read_text())]


@pytest.mark.parametrize("page", page_ids("console"))
def test_commands_print_what_the_page_shows(page, tmp_path):
    examples = extension("examples")
    text = (DOCS / page).read_text()
    examples.prepare(text, tmp_path)
    blocks = [block for block in examples.blocks(text) if block.language == "console"]
    for block in blocks:
        shown = list(examples.commands(block))
        results = examples.run(block, tmp_path)
        assert [command for command, _ in results] == shown and shown
        for command, printed in results:
            where = f"{page}:{block.line}: {command.text}"
            assert command.output or not printed, f"{where}\nprints what the page does not show:\n{printed}"
            assert examples.agrees(command.output, printed), f"{where}\nprints:\n{printed}\n\nthe page shows:\n{command.output}"


@pytest.mark.parametrize("page", page_ids("pycon"))
def test_python_examples(page, tmp_path, monkeypatch):
    examples = extension("examples")
    text = (DOCS / page).read_text()
    examples.prepare(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    names_so_far: dict[str, object] = {}
    for block in examples.blocks(text):
        if block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.text, names_so_far, page, page, block.line)
            report: list[str] = []
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
            runner.run(test, out=report.append, clear_globs=False)
            names_so_far = test.globs
            assert test.examples and not runner.failures, "".join(report)


def commands_not_run() -> list[tuple[str, str]]:
    """Lines of `sh` blocks that call fasim, with the page."""
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"^```sh\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
            found += [(path.relative_to(DOCS).as_posix(), line) for line in block.splitlines() if line.startswith("fasim ")]
    return found


@pytest.mark.parametrize(("page", "line"), commands_not_run())
def test_options_of_other_commands_exist(page, line):
    command, words = typer.main.get_command(app), line.split("#")[0].split()[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    if words and words[0] in names():
        known |= {"--" + option.name.replace("_", "-") for option in load(words[0]).options}
    unknown = [word for word in words if re.match("-[-a-zA-Z]", word) and word not in known]
    assert not unknown, f"{page}: {line}: no such options"


# --- what an agreement is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a\nb", "a\nb\nc", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...", "a", True),
        ("a ... d", "a b c d", True),
        ("a ... d", "a b c e", False),
        ("a b", "a   b", True),
        ("time  total 0.3 s", "time  total 1.25 s", True),
        ("time  total 0.3 s", "time  totally 0.3 s", False),
        ("source  a.cu (sm_90, NVRTC 13.5)", "source  a.cu (sm_90, NVRTC 14.0)", True),
        ("5 wavefronts", "6 wavefronts", False),
        ("  288   45.0%  axpy.cu:3: if", "  300   46.1%  axpy.cu:3: if", True),
        ("  288   45.0%  axpy.cu:3: if", "  288   45.0%  axpy.cu:3: for", False),
        ("5 passed in 0.1s", "5 passed in 7.33s", True),
        ("5 passed in 0.1s", "4 passed in 0.1s", False),
        ("`ld.global.f32 %f2, [%rd6];`", "`ld.global.f32 %f3, [%rd9];`", True),
        ("a", "compiling the machine, once: this takes some seconds\na", True),
        ("", "", True),
        ("", "something", False),
    ],
)
def test_agreement(shown, printed, same):
    assert extension("examples").agrees(shown, printed) is same


def test_blocks_and_commands_of_a_page():
    examples = extension("examples")
    page = "x\n\n```{code-block} cuda\n:caption: a.cu\nint a;\n```\n\n```console\n$ one \\\n>  more\nout\n$ two\n```\n"
    file, console = examples.blocks(page)
    assert (file.file, file.text, console.language, console.line) == ("a.cu", "int a;\n", "console", 8)
    assert [(c.text, c.output) for c in examples.commands(console)] == [("one \\\n more", "out"), ("two", "")]


def test_output_is_written_anew_where_it_disagrees(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```console\n$ echo 1; false\n2\n$ echo $?\n```\n\n```console\n$ printf 'a\\nb\\nc\\n'\na\n...\n```\n")
    assert extension("examples").rewrite(path) == 1
    assert path.read_text() == "```console\n$ echo 1; false\n1\n$ echo $?\n1\n```\n\n```console\n$ printf 'a\\nb\\nc\\n'\na\n...\n```\n"
    path.write_text(path.read_text() + "```console\n$ echo 'This is a bug in fasim.'\n```\n")
    with pytest.raises(RuntimeError, match=r"page.md:13: echo"):
        extension("examples").rewrite(path)


# --- the parts made from the program -------------------------------------------------------------------------------------------


def test_patterns_stand_for_exactly_the_mnemonics():
    patterns = extension("patterns")
    assert patterns.compress(["a.x.u", "a.y.u", "a.x.v", "a.y.v", "a.z.v", "b"]) == ["a.{x,y}.{u,v}", "a.z.v", "b"]
    all_names = list(ROWS)
    compressed = patterns.compress(all_names)
    assert sorted(name for pattern in compressed for name in patterns.expand(pattern)) == sorted(all_names)
    assert len(compressed) < len(all_names) / 10


def test_the_instruction_table_has_every_row():
    patterns, tables = extension("patterns"), extension("tables")
    spelled = [name for pattern in re.findall(r"`([^`]+)`", tables.instructions()) for name in patterns.expand(pattern)]
    assert set(ROWS) <= set(spelled)
    assert all(f"#{row.anchor})" in tables.instructions() for row in list(ROWS.values())[::500])


def test_the_command_line_reference_has_every_option():
    text = extension("tables").commands()

    def walk(command, name):
        yield name, command
        for key, child in getattr(command, "commands", {}).items():
            yield from walk(child, f"{name} {key}")

    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for name, command in walk(typer.main.get_command(app), "fasim"):
        for param in command.params:
            assert all(f"`{option}`" in sections[name] for option in (*param.opts, *param.secondary_opts) if option.startswith("-"))


def test_every_exception_has_its_exit_code():
    lines = extension("tables").exit_codes().splitlines()[2:]
    by_code = {int(line.split("|")[1]): line for line in lines}
    assert {0, 1, 2, 3, 4, 5, 70, 130} == set(by_code)

    def walk(base):
        for each in base.__subclasses__():
            if each.__module__ == "fasim.errors":
                yield each
                yield from walk(each)

    assert all(f"`{each.__name__}`" in by_code[each.exit_code] for each in walk(FasimError))


def test_every_report_says_where_it_comes_from():
    schemas = extension("schemas")
    assert {"fasim.run/1", "fasim.error/1", "fasim.banks/1", "fasim.check/1", "fasim.compare/1"} <= set(schemas.reports())
    assert schemas.writer("fasim.gpu.run/1") == "`fasim gpu run --json`"
    assert schemas.writer("fasim.nothing/1") == ""
    assert set(schemas.WRITERS) <= set(schemas.reports())
    text = schemas.schemas()
    assert all(f"## {schema}\n" in text for schema in schemas.reports())


def test_docstrings_in_parts():
    found = extension("docstrings").describe(
        """What it is.

        More, with a colon: not a label. rows, columns: sizes in
        elements. deep: how deep; wide: how wide.
        Returns: a thing. Raises: UsageError.
        """,
        ["rows", "columns", "deep", "wide"],
    )
    assert found.text == "What it is.\n\nMore, with a colon: not a label."
    assert [found.of(name) for name in ("rows", "columns", "deep", "wide", "high")] == [
        "sizes in elements.", "sizes in elements.", "how deep", "how wide.", "",
    ]  # fmt: skip
    assert found.headings == {"Returns": "a thing.", "Raises": "UsageError."}


def test_text_in_tables():
    markdown = extension("markdown")
    assert markdown.prose("a_b `c|d` <e>") == r"a\_b `c\|d` \<e\>"
    assert markdown.table(("x", "y"), [("1", "2")]) == "| x | y |\n| --- | --- |\n| 1 | 2 |\n"


def test_parts_named_in_pages_exist():
    parts = extension("tables").PARTS
    marks = [mark for path in DOCS.rglob("*.md") for mark in re.findall(r"^% fasim: (\S+)$", path.read_text(), re.MULTILINE)]
    assert set(marks) == set(parts)


def test_the_table_of_layers_has_every_package():
    text = (DOCS / "explanation" / "how-it-works.md").read_text().partition("## Layers")[2]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))))
    parts = {path.stem for path in (ROOT / "fasim").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert named == {part for part in parts if not part.startswith("_")}
