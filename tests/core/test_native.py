"""The core's own tests, written in C++: built when they or a header changed, then run.

SUREFOOT_NATIVE_BUILD is another folder to build them in: `make test-native` gives one with sanitizers.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import nanobind
import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("SUREFOOT_NATIVE_BUILD", ROOT / "build" / "native"))
TESTS = sorted(path.stem for path in (Path(__file__).parent / "native").glob("test_*.cpp"))
CMAKE = [sys.executable, "-m", "cmake"]


def quietly(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    # Workers of one run share the folder.
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (BUILD / "Makefile").exists():
            python = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"]
            quietly(*CMAKE, "-S", str(ROOT), "-B", str(BUILD), "-G", "Unix Makefiles", *python, "-DSUREFOOT_TESTS=ON")
        quietly(*CMAKE, "--build", str(BUILD), "--target", "native_tests")
    return BUILD


@pytest.mark.parametrize("name", TESTS)
def test_native(name: str, built: Path) -> None:
    done = subprocess.run([built / name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_check_that_fails_is_said(tmp_path: Path) -> None:
    # A runner that never fails would let every test of the core pass.
    source = tmp_path / "fails.cpp"
    source.write_text(
        '#include "check.hpp"\nint main() { surefoot::check(1 > 2, "1 > 2"); return surefoot::failures; }\n'
    )
    compiler = os.environ.get("CXX", "c++")
    quietly(compiler, "-std=c++20", f"-I{Path(__file__).parent / 'native'}", str(source), "-o", str(tmp_path / "fails"))
    done = subprocess.run([tmp_path / "fails"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("fails.cpp:2: it does not hold that 1 > 2\n")
