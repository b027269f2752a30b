"""What callers say of rounds afterwards: a reward never comes, or was wrong; what was played, and that it was."""

from collections.abc import Sequence
from typing import Any

from surefoot.errors import InputError
from surefoot.experiment.answer import or_raise
from surefoot.experiment.confirm import confirm
from surefoot.experiment.correct import correct
from surefoot.experiment.erasure import Erasures
from surefoot.experiment.question import read_id, read_ids, read_text
from surefoot.experiment.reward import abandon, read_reward
from surefoot.experiment.transacted_state import Call
from surefoot.experiment.void import void
from surefoot.journal.private_text import by_alias


class Afterwards(Erasures):
    """An experiment as far as it decides, forgets, and is told how rounds went on."""

    def abandon(self, decision_id: str, *, reason: str = "", by: str = "") -> bool:
        """Settle a decision without its reward, so that no other reward waits for it.

        Valid only if neither the reward nor anything that came after it has influenced this call (`Policy.abandon`).

        Parameters
        ----------
        decision_id : str
            The decision's id.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if it was abandoned before.

        Raises
        ------
        DecisionError
            If there is no such decision.
        DecisionSettledError
            If its reward has come, or its window has closed.
        """
        known, why, who = read_id(decision_id), read_text("reason", reason), read_text("by", by)
        keys = self._reward_keys([known])
        return or_raise(self._run(Call(lambda turn: abandon(turn, known, why, who), keys=keys)))

    def void(self, decision_id: str, action: Any = None, *, reason: str = "", by: str = "") -> bool:
        """Say that a round was not played as decided, so that ledger and later proofs are about what was played.

        Allowed until a reward of the round has come, and valid if what is said does not depend on it. A reward that
        comes later counts for what was played. A guard's round keeps its coin and its probability.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        action : int, str or any JSON value, optional
            What was played: a row, or its name; of a guard the action itself. The baseline by default.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if nothing was moved: it was played as decided, or the same was said before.

        Raises
        ------
        DecisionError
            If there is no such decision.
        DecisionSettledError
            If its reward has come, or its window has closed.
        DecisionConflictError
            If something else was said before.
        """
        known, why, who = read_id(decision_id), read_text("reason", reason), read_text("by", by)
        keys = [*self._reward_keys([known]), f"v:{known}"]
        return or_raise(self._run(Call(lambda turn: void(turn, known, action, why, who), keys=keys)))

    def correct(self, decision_id: str, value: float, *, reason: str, by: str = "") -> bool:
        """Replace a reward that was measured wrongly, as long as nothing was learned from it; once for each decision.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        value : float
            The reward as it should have been sent.
        reason, by : str
            Why, and who says so; kept in the journal.

        Returns
        -------
        bool
            False if the reward has that value already.

        Raises
        ------
        DecisionError
            If there is no such decision, or no reward of it.
        DecisionSettledError
            If the reward was learned; then only a fork with `corrections` can begin anew (`surefoot.experiment.fork`).
        DecisionConflictError
            If it was corrected before, to another value.
        InputError
            If the value is no finite number, the reason is empty, or the experiment has a guard.
        """
        (known, number), why, who = read_reward(decision_id, value), read_text("reason", reason), read_text("by", by)
        if not why.strip():
            raise InputError("`reason` must say why the reward is corrected: an auditor will ask.")
        keys = [*self._reward_keys([known]), f"x:{known}"]
        return or_raise(self._run(Call(lambda turn: correct(turn, known, number, why, who), keys=keys)))

    def confirm(self, decision_ids: Sequence[str]) -> int:
        """Say that decisions were played as they were decided, where the experiment asks for it (`confirm_within`).

        Parameters
        ----------
        decision_ids : sequence of str
            The decisions; those that do not wait for it are passed over.

        Returns
        -------
        int
            How many waited for it.
        """
        known = read_ids("decision_ids", decision_ids)
        keys = [by_alias(one) for one in known] if self._is_sealed else ()
        return self._run(Call(lambda turn: confirm(turn, known), keys=keys))
