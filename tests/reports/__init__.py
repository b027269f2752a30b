"""Each of the pages that we write, from a run that takes a moment."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from surefoot.audit import audit
from surefoot.paper.report import write_report
from surefoot.replay.evaluation import replay
from surefoot.replay.log import BadRows
from surefoot.replay.report import report_html
from surefoot.reports.audit_page import as_html
from surefoot.reports.plan import plan_html
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rollout_plan import Plan, plan
from tests.experiment.honest import played, safe
from tests.paper import made_table
from tests.replay.logs import linear_log

PAGES = ("audit", "paper", "plan", "replay", "sweep")


@cache
def page_of(name: str) -> str:
    """The page of that name, as text."""
    if name in ("paper", "sweep"):
        return _swept("paper/normalized" if name == "paper" else "clicks")
    if name == "audit":
        return as_html(audit(played(safe(), 12), "shop"))
    return plan_html(small_plan()) if name == "plan" else _replayed()


@cache
def small_plan() -> Plan:
    """Two policies, two alphas, three days."""
    return plan(
        dim=3, actions=6, noise=0.1, baseline_reward=0.4, lift=0.25, per_day=200, alphas=[0.1, 0.4], days=3, runs=8
    )


def _swept(world: str) -> str:
    with TemporaryDirectory() as folder:
        return write_report(made_table(world), Path(folder) / "report.html", settings={"seed": 7}).read_text("utf-8")


def _replayed() -> str:
    truth = linear_log(400, seed=1, binary=True)
    specs = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("CLUCB2", alpha=0.3)]
    outcomes = replay(truth.log, specs, declared=truth.declared, evaluator="importance")
    truth.log.bad = BadRows(9, 2, [(7, "reward is missing"), (9, "reward is missing")])
    return report_html(truth.log, outcomes, settings={"seed": 0, "actions": "a name, " * 100})
