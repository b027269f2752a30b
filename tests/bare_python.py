"""Python with nothing but the named folders to import from: what a test of an install needs."""

import importlib.util
import shutil
from pathlib import Path

# What a base install may bring; `.libs` are the shared libraries that a wheel carries along.
BASE = ("numpy", "numpy.libs", "msgspec", "clarabel")

DECIDE = {
    "LUCB": "policy.decide(ROWS)",
    "CLUCB": "policy.decide(ROWS, baseline=0, baseline_reward=0.5)",
    "CLUCB2": "policy.decide(ROWS, baseline=0)",
    "SafeLUCB": "policy.decide(ROWS, baseline=0)",
    "UCB": "policy.decide()",
    "ConservativeUCB": "policy.decide(baseline=0)",
    "Guard": "policy.decide(baseline='old', proposal='new')",
}
LINEAR = "dim=2, delta=0.1, noise=0.3, ridge=0.7, theta_bound=1.0, feature_bound=1.0"
SETTINGS = {
    "LUCB": LINEAR,
    "CLUCB": f"{LINEAR}, alpha=0.1",
    "CLUCB2": f"{LINEAR}, alpha=0.1",
    "SafeLUCB": f"{LINEAR}, alpha=0.1, reward_range=(0.0, 1.0)",
    "UCB": "arms=3",
    "ConservativeUCB": "arms=3, alpha=0.1, delta=0.1, baseline_reward=0.5",
    "Guard": "alpha=0.1, delta=0.1",
}


def first_decision(policy: str) -> str:
    """Code that makes a policy, lets it decide and learn once, and prints the action."""
    return (
        "import surefoot\n"
        f"ROWS = [[0.6, 0.1], [0.2, 0.5]]\npolicy = surefoot.{policy}({SETTINGS[policy]})\n"
        f"decision = {DECIDE[policy]}\npolicy.observe(decision, 0.5)\nprint('decided', decision.action)\n"
    )


def only(*folders: Path) -> str:
    """Code that lets Python, started with -I and -S, import from these folders and its own library alone."""
    return f"import sys; sys.path[:0] = {[str(folder) for folder in folders]!r}\n"


def base_packages(folder: Path) -> Path:
    """A folder with the packages of a base install, as they stand in this environment, and no other."""
    folder.mkdir()
    found = importlib.util.find_spec("numpy")
    assert found is not None
    assert found.origin is not None
    site = Path(found.origin).parents[1]
    for name in BASE:
        if (site / name).is_dir():
            shutil.copytree(site / name, folder / name, ignore=shutil.ignore_patterns("tests", "*.pyi", "include"))
    return folder
