"""Modules and arguments that had another name once: using one by it still works, and warns."""

import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar, cast

RENAMED = {
    "audit.audit_page": "reports.audit_page",
    "cli.app": "cli.commands",
    "cli.numbers": "cli.number_lists",
    "client.asynchronous": "client.async_client",
    "client.attempts": "client.retries",
    "client.calls": "client.requests",
    "client.errors": "client.service_error",
    "client.later": "client.offline_queue",
    "client.settings": "client.client_options",
    "client.told": "client.models",
    "experiment.alarms": "experiment.acknowledge",
    "experiment.answers": "experiment.answer",
    "experiment.asynchronous": "experiment.async_experiment",
    "experiment.audit": "audit",
    "experiment.audit.account": "audit.audit_ledger",
    "experiment.audit.arms": "audit.arm_checks",
    "experiment.audit.chain": "audit.hash_chain",
    "experiment.audit.declared": "audit.declarations",
    "experiment.audit.estimate": "audit.rebuilt_sets",
    "experiment.audit.facts": "audit.rebuilt_facts",
    "experiment.audit.findings": "audit.findings",
    "experiment.audit.learning": "audit.learned_rewards",
    "experiment.audit.linear": "audit.linear_checks",
    "experiment.audit.page": "reports.audit_page",
    "experiment.audit.proofs": "audit.proof_checker",
    "experiment.audit.reading": "audit.payloads",
    "experiment.audit.report": "audit.audit_report",
    "experiment.audit.seen": "audit.offered_rows",
    "experiment.audit.story": "audit.recorded_round",
    "experiment.audit.sums": "audit.compensated_sums",
    "experiment.audit.tally": "audit.audit_counts",
    "experiment.audit.walk": "audit.auditor",
    "experiment.audit.words": "audit.audit_text",
    "experiment.deciding": "experiment.decide",
    "experiment.evidence": "experiment.certificate_records",
    "experiment.policy": "experiment.policy_by_name",
    "experiment.questions": "experiment.question",
    "experiment.records": "records",
    "experiment.rewarding": "experiment.reward",
    "experiment.settings": "experiment.creation",
    "experiment.tally": "experiment.counts",
    "experiment.turn": "experiment.unit_of_work",
    "experiment.windows": "experiment.attribution_windows",
    "paper.figures": "paper.paper_figures",
    "paper.looks": "reports.policy_style",
    "paper.page": "paper.paper_page",
    "paper.plan_figure": "reports.plan_figure",
    "paper.policy_style": "reports.policy_style",
    "paper.report": "paper.paper_report",
    "paper.rows": "paper.sweep_rows",
    "paper.setting": "paper.section5",
    "paper.tables": "paper.report_tables",
    "policies.arms": "policies.arm_policy",
    "policies.base": "policies.policy",
    "policies.linear": "policies.linear_policy",
    "policies.settings": "policies.linear_settings",
    "replay.chances": "replay.propensities",
    "replay.configuration": "experiment.experiment_toml",
    "replay.doubts": "replay.diagnostics",
    "replay.evaluate": "replay.estimators",
    "replay.figures": "replay.replay_figures",
    "replay.fit": "replay.baseline_fit",
    "replay.frames": "replay.table_reader",
    "replay.history": "replay.warm_start",
    "replay.ids": "replay.seen_ids",
    "replay.lines": "replay.text_blocks",
    "replay.outcome": "replay.replay_outcome",
    "replay.page": "replay.replay_page",
    "replay.player": "replay.replayed_policy",
    "replay.reading": "replay.open_log",
    "replay.report": "replay.replay_report",
    "replay.rounds": "replay.logged_rounds",
    "replay.rows": "replay.feature_rows",
    "replay.tables": "replay.log_files",
    "replay.weighting": "replay.importance_weighting",
    "safety.certify": "safety.facts_gate",
    "safety.gates": "safety.paper_gates",
    "safety.search": "safety.split_search",
    "service.access": "service.authorization",
    "service.answers": "service.response_models",
    "service.beliefs": "service.coefficients",
    "service.demo": "service.demo_server",
    "service.desk": "service.handlers",
    "service.document": "service.openapi",
    "service.express": "service.fast_path",
    "service.hashing": "service.feature_hashing",
    "service.lane": "service.registry",
    "service.picture": "service.history",
    "service.questions": "service.catalogues",
    "service.recent": "service.history",
    "service.rooms": "service.registry",
    "service.routes.answering": "service.routes.route_options",
    "service.routes.parameters": "service.routes.route_options",
    "service.routes.reading": "service.routes.monitoring",
    "service.shell": "service.middleware",
    "service.warmth": "service.registry",
    "service.wire": "service.request_models",
    "simulation.config": "simulation.sweep_config",
    "simulation.environments": "simulation.worlds",
    "simulation.figure_style": "reports.figure_style",
    "simulation.files": "simulation.atomic_files",
    "simulation.objects": "simulation.object_runner",
    "simulation.plan": "simulation.rollout_plan",
    "simulation.specs": "simulation.policy_specs",
    "simulation.style": "reports.figure_style",
    "simulation.table": "simulation.result_table",
}


F = TypeVar("F", bound=Callable[..., Any])


class CallableModule(ModuleType):
    """A module that can be called like its function that had the module's old name (`surefoot.replay.history`)."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call that function."""
        (called,) = (
            getattr(self, leaf)
            for old, new in RENAMED.items()
            if f"surefoot.{new}" == self.__name__ and callable(getattr(self, leaf := old.rpartition(".")[2], None))
        )
        return called(*args, **kwargs)


class OldNames(MetaPathFinder, Loader):
    """Finds a module that was renamed; no module of today has such a name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The way to load an old name; None for every other one."""
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == "surefoot" and name in RENAMED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of today in the place of the old name."""
        old = module.__name__
        new = f"surefoot.{RENAMED[old.removeprefix('surefoot.')]}"
        warnings.warn(f"`{old}` is called `{new}` now; import it by that name.", DeprecationWarning, stacklevel=2)
        found = import_module(new)
        if callable(getattr(found, old.rpartition(".")[2], None)):
            # Python now binds the module to its old name in the package, where a function of that name may stand.
            found.__class__ = CallableModule
        sys.modules[old] = found


def takes_old_name(old: str, new: str) -> Callable[[F], F]:
    """Let a function take the argument `new` by its `old` name too, and a class show it so; both warn."""

    def decorate(target: F) -> F:
        if isinstance(target, type):
            begin: Any = type.__getattribute__(target, "__init__")
            type.__setattr__(target, "__init__", _with_old_keyword(begin, old, new))
            setattr(target, old, property(lambda self: _warned(old, new, getattr(self, new))))
            return target
        return cast("F", _with_old_keyword(target, old, new))

    return decorate


def _with_old_keyword(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> Any:
        if old in kwargs:
            kwargs[new] = _warned(old, new, kwargs.pop(old))
        return function(*args, **kwargs)

    return read


def _warned(old: str, new: str, value: Any) -> Any:
    warnings.warn(f"`{old}` is called `{new}` now.", DeprecationWarning, stacklevel=3)
    return value


def install() -> None:
    """Let old names be found, before a package that moved is searched for them."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldNames())
