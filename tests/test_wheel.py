"""The sdist and the wheel: what they hold, where they run, and that an empty environment can decide with them."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.bare_python import SETTINGS, base_packages, first_decision, only

ROOT = Path(__file__).parents[1]
LARGEST = 10 * 2**20
pytestmark = pytest.mark.long


def quietly(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist and of the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    quietly(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    (found,) = made.glob("*.whl")
    return found


def test_the_sdist_holds_what_a_build_needs_and_no_build(made: Path) -> None:
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "pyproject.toml", "src/surefoot/core/elementary.hpp"} <= names
    assert not {name for name in names if name.endswith((".so", ".o")) or name.startswith(("build/", "dist/", ".venv"))}


def test_the_wheel_is_small_and_holds_no_sources_but_those_of_a_gpu(wheel: Path) -> None:
    assert wheel.stat().st_size <= LARGEST
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".cpp", ".nbi", ".nbc")) or "/bindings/" in name]
    assert {"surefoot/core/ridge.hpp", "surefoot/core/gpu/play.cu", "surefoot/core/gpu/std/vector"} <= set(names)
    assert [name for name in names if name.startswith("surefoot/core/_") and name.endswith(".so")]


def test_the_wheel_holds_all_of_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "surefoot"
    sources = {
        path
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".cpp", ".pyc", ".so") and path.parent.name != "bindings"
    }
    assert {f"surefoot/{path.relative_to(package)}" for path in sources} - names == set()
    assert {"surefoot/py.typed", "surefoot/service/page/static/index.html", "surefoot/reports/style.css"} <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"surefoot"}
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]


def test_the_wheel_is_a_manylinux_one(wheel: Path) -> None:
    said = " ".join(quietly(sys.executable, "-m", "auditwheel", "show", wheel).split())
    assert 'following platform tag: "manylinux_2_' in said


@pytest.mark.skipif(sys.version_info < (3, 12), reason="nanobind's stable ABI begins with Python 3.12")
def test_the_wheel_serves_later_pythons(wheel: Path) -> None:
    assert "-cp312-abi3-" in wheel.name


def test_the_wheel_decides_where_only_its_base_packages_are(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    quietly(*pip, tmp_path / "wheel", wheel)
    start = only(tmp_path / "wheel", base_packages(tmp_path / "base"))
    for policy in SETTINGS:
        said = quietly(sys.executable, "-I", "-S", "-c", start + first_decision(policy))
        assert said.startswith("decided "), policy
