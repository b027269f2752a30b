"""A guard that also believes a linear model: it opens where either the bank or the model proves the share.

The linear side answers the averaged question: with rows phi_a and phi_b of proposal and baseline,

    S = <theta, Q>,    Q = sum of p (phi_a - phi_b) + alpha phi_b,

so a share is proved if the least of <theta, Q> over the confidence set stays above the reserve. Half of delta goes to
each side. The bank's promise needs no model; what only the model proves is true if its declarations are, and its
certificate says so.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from surefoot.arrays import Vector, finite_array
from surefoot.core.native_guard import allowed
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.linear.scores import LENGTH_TOLERANCE
from surefoot.policies.guard import Guard
from surefoot.policies.guard_decision import GuardDecision
from surefoot.policies.guard_settings import REWARD
from surefoot.policies.safe_lucb import SafeLUCB
from surefoot.policies.saved_state import refill
from surefoot.safety.bank_proof import GuardProof
from surefoot.safety.guard_certificate import GuardCertificate
from surefoot.safety.proof import Proof, assemble

BISECTIONS = 40
MODEL = "the linear model"
CONDITION = "true with probability 1 - delta if everything that the linear model declares is true"


class LinearGuard(Guard):
    """A guard for actions with features: it opens where either the bank or a linear model proves the share.

    Never a default: what only the model proves is lost where the model is wrong.

    Parameters
    ----------
    also : SafeLUCB
        A new policy that declares the model; its delta is at most half of the guard's. It decides nothing.
    settings : object
        As in `Guard`, with one metric.

    Raises
    ------
    ConfigError
        If a setting is invalid, or `also` spends more than half of delta.

    Examples
    --------
    >>> import surefoot
    >>> model = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.025, noise=0.5, theta_bound=1.5, feature_bound=1.0)
    >>> guard = LinearGuard(also=model, alpha=0.1, delta=0.05, seed=1)
    >>> guard.decide(baseline=[1.0, 0.0], proposal=[0.0, 1.0]).share < 0.11
    True
    """

    def __init__(self, *, also: SafeLUCB | Mapping[str, Any], **settings: Any) -> None:
        model = also if isinstance(also, SafeLUCB) else SafeLUCB(**dict(also))
        delta = settings.get("delta", 0.0)
        if settings.get("metrics") is not None or settings.get("unit_window") is not None:
            raise ConfigError("A linear guard has one metric and no units: give `alpha`, and leave the others out.")
        if not model.settings["delta"] <= delta / 2:
            raise ConfigError(
                f"`also` must spend at most half of delta, {delta / 2:g}, but has delta={model.settings['delta']}."
            )
        super().__init__(**{**settings, "delta": delta / 2})
        self._config |= {"delta": delta, "also": model.settings}
        self._model, self._question = SafeLUCB(**model.settings), np.zeros(model.dim)
        self._rows: deque[Vector] = deque()  # played in rounds that teach and are not settled, oldest first

    def decide(self, *, baseline: Any, proposal: Any, **more: Any) -> GuardDecision:
        """Draw the coin, as `Guard.decide` does; both actions are feature rows.

        Parameters
        ----------
        baseline, proposal : array_like of shape (dim,)
            Rows of the two actions.
        more : object
            As in `Guard.decide`.

        Returns
        -------
        GuardDecision
            The row to play, its propensity and the certificate.

        Raises
        ------
        InputError
            If a row is invalid; nothing has changed.
        """
        return super().decide(baseline=self._read_row(baseline), proposal=self._read_row(proposal), **more)

    def recall(self, *, baseline: Any, proposal: Any, **more: Any) -> GuardDecision:
        """Repeat a round, as `Guard.recall` does."""
        return super().recall(baseline=self._read_row(baseline), proposal=self._read_row(proposal), **more)

    def _read_row(self, row: Any) -> Vector:
        vector = finite_array("row", row, ndim=1).copy()
        bound, length = self._model.settings["feature_bound"], float(np.linalg.norm(vector))
        if vector.size != self._model.dim:
            raise InputError(f"A row must have dim={self._model.dim} numbers, but got {vector.size}.")
        if length > bound * (1.0 + LENGTH_TOLERANCE):
            raise AssumptionError(f"`||row|| <= {bound:g}` was declared, but a row has length {length:g}.")
        return vector

    def _share(self, baseline: Any = None, proposal: Any = None) -> float:
        share = super()._share()
        if proposal is None or self._steps is not None:
            return share
        return max(share, self._proved_share(baseline, proposal))

    def _asked(self, baseline: Vector, proposal: Vector, share: float) -> Vector:
        """Q after a round with this share."""
        asked: Vector = self._question + share * (proposal - baseline) + self._config["alpha"] * baseline
        return asked

    def _proof(self, baseline: Vector, proposal: Vector, share: float, known: Ball | Ellipsoid) -> Proof:
        question = self._asked(baseline, proposal, share)
        return assemble(question, [(known, question)], rest=Ball(self._model.settings["theta_bound"]))

    def _proved_share(self, baseline: Vector, proposal: Vector) -> float:
        """The largest share that the model proves; what it proves is concave in the share."""
        known, least = self._model.confidence_set, -float(self._config["reserve"])

        def is_proved(share: float) -> bool:
            return self._proof(baseline, proposal, share, known).value >= least

        low, high = 0.0, self.step_settings.largest_share
        if not is_proved(low):
            return 0.0
        if is_proved(high):
            return high
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if is_proved(middle) else (low, middle)
        return low

    def _play(self, baseline: Any, proposal: Any, share: float, draw: float, *rest: Any) -> GuardDecision:
        is_banked = share <= allowed(self._promises[0], self._books.banks[0])
        proof, teaches = self._proof(baseline, proposal, share, self._model.confidence_set), rest[-1]
        if teaches:
            self._rows.append(proposal if draw < share else baseline)
            self._question = proof.question
        decision = super()._play(baseline, proposal, share, draw, *rest)
        if is_banked:
            return decision
        certificate = GuardCertificate(share, share, MODEL, lambda: GuardProof((), proof), False, CONDITION)
        return msgspec.structs.replace(decision, _certify=lambda: certificate)

    def _learn(self, features: Vector, reward: Any, is_learner: bool) -> None:
        super()._learn(features, reward, is_learner)
        row = self._rows.popleft()
        if not np.isnan(reward[0]):
            self._model._enter(row[None, :], np.array([reward[0] * self.metrics[REWARD].high]))

    def _arrays(self) -> dict[str, Any]:
        rows = np.array(self._rows).reshape(len(self._rows), self._model.dim)
        return {**super()._arrays(), "question": self._question.copy(), "rows": rows, "model": self._model.state()}

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        super()._restore(arrays)
        refill(self._question, arrays["question"], "question")
        self._rows = deque(np.asarray(arrays["rows"], dtype=np.float64).reshape(-1, self._model.dim))
        self._model = SafeLUCB.from_state(arrays["model"])
