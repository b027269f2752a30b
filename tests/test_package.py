"""The package as a whole: what it exports, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import surefoot


def test_every_exported_name_exists_and_is_typed_where_type_checkers_look() -> None:
    source = Path(surefoot.__file__).read_text()
    for name in surefoot.__all__:
        assert getattr(surefoot, name) is not None
        assert name == "__version__" or f" as {name}\n" in source
    assert sorted(surefoot.__all__) == dir(surefoot)


def test_importing_and_looking_up_policies_loads_no_solver() -> None:
    code = (
        "import sys, surefoot; surefoot.CLUCB, surefoot.CLUCB2, surefoot.Catalogue, surefoot.theory;"
        "print(*[m for m in ('numba', 'scipy', 'clarabel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
