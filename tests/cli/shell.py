"""The command line as a shell calls it, in this process: a Python that starts takes most of a second."""

import contextlib
import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from surefoot.cli import main


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def shell(*args: object, folder: Path = Path()) -> Done:
    """Run a command in a folder; here by default."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patched.setenv("COLUMNS", "300")
        patched.setattr(sys, "argv", ["surefoot", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())
