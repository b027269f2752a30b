"""A disk whose flushes fail while a file exists: a library that is loaded before the C library's own functions."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
  const char *path = getenv("FAILING_FLUSH");
  return path != NULL && access(path, F_OK) == 0;
}

#define FLUSH(name)                                        \\
  int name(int file) {                                     \\
    if (fails()) { errno = EIO; return -1; }               \\
    return ((int (*)(int))dlsym(RTLD_NEXT, #name))(file);  \\
  }
FLUSH(fsync)
FLUSH(fdatasync)
"""


def failing_flush(folder: Path) -> tuple[dict[str, str], Path]:
    """The environment of a process whose flushes fail while the second, a file, exists."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("a C compiler makes the library")
    source, library, switch = folder / "flush.c", folder / "flush.so", folder / "fails"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library), "FAILING_FLUSH": str(switch)}, switch
