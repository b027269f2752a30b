"""What was declared when the experiment was created, read from its settings: defaults are the policies' own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from surefoot.audit.rebuilt_likelihood import LikelihoodDeclarations
from surefoot.audit.rebuilt_sets import SetDeclarations
from surefoot.audit.rebuilt_watch import WatchDeclarations

LINEAR = ("LUCB", "CLUCB", "CLUCB2", "SafeLUCB")
ARMS = ("UCB", "ConservativeUCB")
BY_LIKELIHOOD = ("likelihood", "best")  # radii that use the likelihood set of bounded rewards
AMOUNTS = {"checkpoints": "every", "reserve": "granted", "realised_path": "lowest_reward"}


@dataclass(frozen=True)
class Declarations:
    """The settings of a linear policy as far as safety depends on them.

    set_delta, sum_delta: the shares of delta behind the confidence set, and behind the realised sum (0: not used)
    amount:               the constraint's own number: rounds of a block, a reserve, the lowest reward
    """

    policy: str
    knowledge: SetDeclarations
    alpha: float
    reward_floor: float
    reward_range: tuple[float, float]
    constraint: str
    amount: float
    sum_delta: float
    is_exact: bool
    learns_baseline: bool
    proposes_by_set: bool
    delta: float
    realised_share: float
    restart_share: float
    watch: WatchDeclarations
    likelihood: LikelihoodDeclarations | None = None
    exploration: float | None = None  # what a proposal counts a width, where that is not the radius of the set

    def after(self, restarts: int) -> "Declarations":
        """What may be spent of delta after so many restarts: 1 - share for the first set, then share 2^-k."""
        left = self._share_of(restarts) * (1.0 - self.watch.share)
        sets = left * (1.0 - self.realised_share) / (2.0 if self.knowledge.kind == "best" else 1.0)
        likelihood = None if self.likelihood is None else replace(self.likelihood, delta=sets)
        knowledge = replace(self.knowledge, delta=sets)
        return replace(self, knowledge=knowledge, likelihood=likelihood, sum_delta=left * self.realised_share)

    def watch_delta(self, restarts: int) -> float:
        """What false alarms of the watch may spend of delta after so many restarts."""
        return self._share_of(restarts) * self.watch.share

    def _share_of(self, restarts: int) -> float:
        kept = self.restart_share
        return self.delta * (1.0 - kept if restarts == 0 else kept * 2.0**-restarts)

    @property
    def worst_round(self) -> float:
        """The most that one round of the learner can lie below the floor, by the declared range or by B D alone."""
        least, most = self._means
        return max(0.0, (1.0 - self.alpha) * most - least)

    @property
    def worst_unplayed(self) -> float:
        """The most that the learner's action can be better than whatever was played in its place."""
        least, most = self._means
        return max(0.0, most - least)

    @property
    def _means(self) -> tuple[float, float]:
        known = self.knowledge
        reach = known.theta_bound * known.feature_bound + self.misspecification
        low, high = self.reward_range
        return max(low, -reach), min(high, reach)

    @property
    def longest_theta(self) -> float:
        """What a proposal counts a length before anything is learned."""
        if self.exploration is None:
            return self.knowledge.theta_bound
        return self.exploration / math.sqrt(self.knowledge.ridge)

    @property
    def misspecification(self) -> float:
        """How far a mean reward may lie from <theta, features>."""
        return self.knowledge.misspecification

    def known(self, given: float | list[float] | None) -> tuple[float, float]:
        """Least and largest mean reward of a round's baseline, by what was given and what was declared."""
        low, high = (
            (0.0, math.inf) if given is None else (given[0], given[1]) if isinstance(given, list) else (given,) * 2
        )
        if self.policy == "CLUCB":
            return low, high
        return max(low, self.reward_floor, self.reward_range[0]), min(high, self.reward_range[1])


def read_linear(policy: str, settings: Mapping[str, Any]) -> Declarations:
    """The declaration of a linear policy."""
    is_safe = policy == "SafeLUCB"
    constraint = settings.get("constraint") or "cumulative"
    plain: dict[str, Any] = {"name": constraint} if isinstance(constraint, str) else dict(constraint)
    name = plain["name"]
    share = float(settings.get("realised_share", 0.1)) if is_safe and settings.get("gate", "facts") == "facts" else 0.0
    delta = float(settings["delta"])
    holdout = float(settings.get("holdout") or 0.0) if policy != "LUCB" else 0.0
    watch = WatchDeclarations(holdout, float(settings.get("watch_share", 0.1)) if holdout else 0.0)
    bounds = settings.get("reward_bounds")
    low, high = settings.get("reward_range") or bounds or (-math.inf, math.inf)
    kind = settings.get("radius", "amm" if is_safe else "paper")
    knowledge = SetDeclarations(
        kind=kind,
        dim=int(settings["dim"]),
        delta=delta,
        noise=float(settings["noise"]),
        ridge=float(settings.get("ridge", 1.0)),
        theta_bound=float(settings["theta_bound"]),
        feature_bound=float(settings["feature_bound"]),
        misspecification=float(settings.get("misspecification", 0.0)),
        is_watched=watch.is_on,
    )
    return Declarations(
        policy=policy,
        knowledge=knowledge,
        alpha=float(settings.get("alpha") or 0.0),
        reward_floor=float(settings.get("reward_floor", 0.0)),
        reward_range=(float(low), float(high)),
        constraint=name,
        amount=float(plain[AMOUNTS[name]]) if name in AMOUNTS else 0.0,
        sum_delta=delta * share,
        is_exact=policy == "CLUCB2" and settings.get("nesting", "exact") == "exact",
        learns_baseline=policy != "CLUCB",
        proposes_by_set=settings.get("optimism", "set") == "set",
        exploration=None if settings.get("exploration") is None else float(settings["exploration"]),
        delta=delta,
        realised_share=share,
        # Not today's default: settings without it are older than restarts.
        restart_share=float(settings.get("restart_share", 0.0)) if is_safe else 0.0,
        watch=watch,
        likelihood=LikelihoodDeclarations(
            dim=knowledge.dim,
            delta=delta,
            bounds=(float(bounds[0]), float(bounds[1])),
            highest_mean=float(high),
            theta_bound=knowledge.theta_bound,
            feature_bound=knowledge.feature_bound,
        )
        if kind in BY_LIKELIHOOD and bounds is not None
        else None,
    ).after(0)
