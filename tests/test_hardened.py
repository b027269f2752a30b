"""A hardened container: an unprivileged user, no HOME, a read-only tree, and a first decision of every policy."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot
import surefoot.core
from tests.bare_python import SETTINGS, base_packages, first_decision, only

NOBODY = 65534
# Mounts of its own: the packages read-only, and the interpreter reachable even where it lives in root's home.
CONTAINER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --bind "$2" "$3"
if [ -n "$4" ]; then mount -t tmpfs -o mode=755 none "$4"; mkdir -p "$2"; mount --bind "$3" "$2"; fi
cd /
exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i "$5" -I -S -B -c "$6"
"""


def closed_to_others(path: Path) -> str:
    """The topmost folder on the way to a path that only its owner may enter; empty if there is none."""
    return next((str(above) for above in [*path.parents][::-1] if not above.stat().st_mode & 0o001), "")


@pytest.fixture(scope="module")
def container() -> Iterator[Path]:
    """A folder that anybody may enter, with the package as it is installed and what it depends on."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs root and mounts of its own, to become nobody")
    # pytest's own temporary folders are closed to others.
    folder = Path(tempfile.mkdtemp(prefix="surefoot-hardened-"))
    try:
        folder.chmod(0o755)
        (folder / "python").mkdir()
        site = base_packages(folder / "site")
        ignored = shutil.ignore_patterns("__pycache__", "*.[ch]pp")
        shutil.copytree(Path(surefoot.__file__).parent, site / "surefoot", ignore=ignored)
        # An editable install keeps the modules of the core beside the sources.
        for found in {so for part in surefoot.core.__path__ for so in Path(part).glob("_*.so")}:
            shutil.copy(found, site / "surefoot" / "core")
        yield folder
    finally:
        shutil.rmtree(folder)


def run(container: Path, code: str) -> subprocess.CompletedProcess[str]:
    base = Path(sys.base_prefix).resolve()
    python = base / "bin" / f"python3.{sys.version_info.minor}"
    site = container / "site"
    arguments = [site, base, container / "python", closed_to_others(base), python, only(site) + code]
    command = ["unshare", "--mount", "sh", "-c", CONTAINER, "sh", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_container_is_what_it_claims_to_be(container: Path) -> None:
    code = (
        "import os, surefoot, sys\n"
        "here = os.path.dirname(surefoot.__file__)\n"
        "print(os.getuid(), 'HOME' in os.environ, os.access(here, os.W_OK), here)\n"
    )
    done = run(container, code)
    assert done.stdout.split() == [str(NOBODY), "False", "False", str(container / "site" / "surefoot")], done.stderr


@pytest.mark.parametrize("policy", SETTINGS)
def test_every_policy_decides_as_nobody_in_a_read_only_tree(policy: str, container: Path) -> None:
    done = run(container, first_decision(policy))
    assert done.stdout.startswith("decided "), done.stderr


def test_every_policy_that_the_package_exports_is_tried() -> None:
    exported = {name for name in surefoot.__all__ if isinstance(getattr(surefoot, name), type)}
    policies = {name for name in exported if hasattr(getattr(surefoot, name), "decide")} - {"Policy"}
    others = {"Client", "AsyncClient", "Experiment", "AsyncExperiment"}
    assert policies - others == set(SETTINGS)
