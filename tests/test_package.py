"""The package as a whole: what it exports, what importing it costs, and that stale machine code is dropped."""

import subprocess
import sys
from pathlib import Path

import surefoot
from surefoot.compiled import compiled


def test_every_exported_name_exists_and_is_typed_where_type_checkers_look() -> None:
    source = Path(surefoot.__file__).read_text()
    for name in surefoot.__all__:
        assert getattr(surefoot, name) is not None
        assert name == "__version__" or f" as {name}\n" in source
    assert sorted(surefoot.__all__) == dir(surefoot)


def test_importing_and_looking_up_policies_loads_no_compiler() -> None:
    code = (
        "import sys, surefoot; surefoot.CLUCB, surefoot.CLUCB2, surefoot.Catalogue, surefoot.theory;"
        "print(*[m for m in ('numba', 'scipy', 'clarabel') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_machine_code_is_cached_so_that_a_second_process_compiles_nothing() -> None:
    code = (
        "import numpy as np, surefoot\n"
        "p = surefoot.LUCB(dim=2, delta=0.1, noise=1.0, ridge=1.0, theta_bound=1.0, feature_bound=1.0)\n"
        "p.observe(p.decide(np.array([[1.0, 0.0]])), 1.0)\n"
        "stats = p._run_step.stats\n"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]


def test_a_change_in_a_callees_file_drops_the_callers_machine_code(tmp_path: Path) -> None:
    (tmp_path / "callee.py").write_text("from surefoot.compiled import compiled\n@compiled\ndef f(x): return x + 1\n")
    (tmp_path / "caller.py").write_text(
        "from surefoot.compiled import compiled\nfrom callee import f\n@compiled\ndef g(x): return f(x)\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import caller; print(caller.g(1))"

    def run() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    assert run() == "2"
    (tmp_path / "callee.py").write_text("from surefoot.compiled import compiled\n@compiled\ndef f(x): return x + 40\n")
    assert run() == "41"


def test_the_plain_function_stays_reachable() -> None:
    @compiled
    def double(x: float) -> float:
        return 2 * x

    assert double.function(3.0) == 6.0
    assert double.__name__ == "double"
