"""The alarm: something that was declared has been contradicted, and how a person may answer.

While it is on, a policy that keeps a floor plays only the baseline, and its certificates promise nothing. The answers:

stay     play the baseline from now on; the alarm stays on
relearn  learn again from here under the same promise. Rounds played so far stay in the account, every learner round at
         its worst case. That debt must be earned back before the learner plays again, which may never happen
renew    start a new promise with a new ledger: earlier losses are not made good

Both restarts need a part of delta (`surefoot.policies.delta_split`). The paper's policies spend all of it on their
first set, as in the paper; they can only stay.
"""

from typing import Any, Literal

from surefoot.values import Value

AlarmKind = Literal["contradiction", "reward", "baseline_reward", "features", "drift", "void"]
Response = Literal["stay", "relearn", "renew"]
RESPONSES: tuple[Response, ...] = ("stay", "relearn", "renew")


class Alarm(Value, frozen=True, eq=True):
    """What contradicted a declaration, and when.

    Attributes
    ----------
    kind : {"contradiction", "reward", "baseline_reward", "features", "drift", "void"}
        "contradiction" if no theta satisfies data and declarations, "reward" for a reward out of bounds,
        "baseline_reward" for one that no theta allows, "features" for a row that is too long, "drift" if
        the watch saw that rewards do not follow one theta any more, "void" for a void that came so late that later
        rewards may have influenced it.
    round : int
        Rounds decided when it was raised.
    text : str
        What happened, in words.

    Examples
    --------
    >>> import surefoot
    >>> policy = surefoot.UCB(arms=2)
    >>> policy.report_breach("reward", "A reward of 7 came in, but 0 to 1 was declared.")
    >>> policy.alarm.kind, policy.responses
    ('reward', ('stay',))
    """

    kind: AlarmKind
    round: int
    text: str

    def plain(self) -> dict[str, Any]:
        """Plain data from which the same alarm is made."""
        return {"kind": self.kind, "round": self.round, "text": self.text}
