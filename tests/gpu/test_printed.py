"""What is written to file descriptor 1 behind Python's back."""

from __future__ import annotations

import os

import pytest

from fasim.gpu.printed import captured_stdout

TEXTS = [b"", b"lane 0\nlane 1\n", b"no newline", "größer\n".encode(), b"\xff broken\n", b"x" * 1_000_000]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_caught(text, capfd):
    with captured_stdout() as printed:
        os.write(1, text)
    assert printed.text == text.decode("utf-8", "replace")
    assert capfd.readouterr().out == ""


def test_what_was_printed_before_and_after_stays(capfd):
    print("before", end=" ")
    with captured_stdout() as printed:
        os.write(1, b"inside")
    print("after")
    assert printed.text == "inside"
    assert capfd.readouterr().out == "before after\n"


def test_stdout_is_back_after_an_error(capfd):
    with pytest.raises(ZeroDivisionError), captured_stdout() as printed:
        os.write(1, b"inside")
        1 / 0  # noqa: B018
    os.write(1, b"after")
    assert printed.text == "inside"
    assert capfd.readouterr().out == "after"
    open_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with captured_stdout():
        pass
    assert not open_files or len(os.listdir("/proc/self/fd")) == open_files
