"""A machine without a compiler is told so in one sentence, before anything is fetched; root on Debian gets one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SENTENCE = (
    "surefoot needs a compiler for C++20, such as g++ 11 or newer: apt-get install g++, or set CXX to one you have."
)
ROOT_USER, OTHER_USER = "0", "1000"


class Machine:
    """A folder of programs that is all of PATH, and an empty checkout beside it."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.checkout = folder / "programs", folder / "checkout"
        self.programs.mkdir()
        (self.checkout / "src" / "surefoot" / "core").mkdir(parents=True)
        (self.checkout / "requirements").mkdir()
        requirements = [f"requirements/{name}.txt" for name in ("dev", "docs", "litellm")]
        for name in (*requirements, "pyproject.toml", "CMakeLists.txt", "Makefile"):
            shutil.copy(ROOT / name, self.checkout / name)
        for name in ("sh", "find", "ln", "make"):
            (self.programs / name).symlink_to(str(shutil.which(name)))

    def add(self, name: str, script: str) -> None:
        (self.programs / name).write_text(f"#!{self.programs / 'sh'}\n{script}\n")
        (self.programs / name).chmod(0o755)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.checkout, env={"PATH": str(self.programs)}, capture_output=True, text=True, timeout=120
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.add("id", f"echo {OTHER_USER}")
    made.add("python3", 'echo "nothing may be installed yet"')
    return made


def test_setup_says_what_is_missing_before_anything_else(machine: Machine) -> None:
    machine.add("apt-get", 'echo "only root may"')
    done = machine.run("make", "setup")
    assert done.returncode != 0
    assert done.stdout == SENTENCE + "\n"


def test_a_compiler_older_than_gcc_11_does_not_count(machine: Machine) -> None:
    # g++ 10 knows concepts, but neither `using enum` nor x86-64-v3.
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    machine.add("grep", f'exec {shutil.which("grep")} "$@"')
    machine.add("c++", f"if grep -q 'using enum'; then exit 1; fi; exec {compiler} \"$@\"")
    assert machine.run("make", "compiler").stdout == SENTENCE + "\n"


@pytest.mark.parametrize("brings_one", [True, False])
def test_root_gets_one_from_debian(machine: Machine, brings_one: bool) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    machine.add("id", f"echo {ROOT_USER}")
    installs = f'case "$*" in *install*) ln -s {compiler} {machine.programs}/c++;; esac' if brings_one else ""
    machine.add("apt-get", f'echo "$DEBIAN_FRONTEND $*" >> asked\n{installs}')
    done = machine.run("make", "compiler")
    install = "noninteractive install -y -qq --no-install-recommends g++"
    assert (machine.checkout / "asked").read_text().splitlines() == [" update -qq", install]
    assert (done.returncode == 0) == brings_one
    assert done.stdout == ("" if brings_one else SENTENCE + "\n")


def test_a_build_by_pip_says_the_same(machine: Machine) -> None:
    done = machine.run(sys.executable, "-m", "cmake", "-S", str(ROOT), "-B", "build", "-G", "Unix Makefiles")
    assert done.returncode != 0
    assert SENTENCE in " ".join(done.stderr.split())
    assert "CMAKE_CXX_COMPILER" not in done.stderr
