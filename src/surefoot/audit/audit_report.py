"""What an audit says, as data and in words."""

import math
from dataclasses import dataclass
from typing import Any

from surefoot.audit.audit_counts import AuditCounts
from surefoot.audit.coins import CoinFairness
from surefoot.audit.findings import Findings
from surefoot.journal.events import Head
from surefoot.rounds import events


@dataclass(frozen=True)
class Report:
    """The result of an audit.

    findings: everything that does not fit; empty for an honest journal
    head:     where the chain ended; keep it elsewhere, and give it to the next audit as `expect`
    coins:    of a guard, how fair its coins look
    heads:    heads that are part of the chain, of those that the journal's own chain or others have noted
    """

    name: str
    created: events.Created | None
    tally: AuditCounts
    findings: Findings
    head: Head
    coins: CoinFairness | None = None
    heads: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether everything fits."""
        return len(self.findings) == 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a number that is not finite is None."""
        tally, created = self.tally, self.created
        coins = {} if self.coins is None else {"coins": self._coins(self.coins), "visits": tally.visits}
        return {
            "experiment": self.name,
            "is_clean": self.is_clean,
            "head": {"number": self.head.number, "hash": self.head.hash},
            "policy": None if created is None else created.policy,
            "settings": None if created is None else created.settings,
            "events": tally.events,
            "heads_found": self.heads,
            "decisions": tally.decisions,
            "learner_rounds": tally.learner,
            "baseline_rounds": tally.baseline,
            "held_rounds": tally.held,
            "learner_share": tally.learner_share,
            "rewards_learned": tally.learned,
            "default_rewards": tally.defaults,
            "pending_rewards": tally.pending,
            "refused_rewards": dict(tally.refused),
            "proofs_checked": tally.proofs,
            "pieces_checked": tally.pieces,
            "abandoned_rewards": tally.abandoned,
            "voided_rounds": tally.voided,
            "is_refuted": tally.is_refuted,
            "alarms": [{"event": event, "text": text} for event, text in tally.alarms],
            "answers": [
                {
                    "event": event,
                    "after_round": round_,
                    "response": answer.response,
                    "reason": answer.reason,
                    "by": answer.by,
                }
                for event, round_, answer in tally.answers
            ],
            "private_texts": tally.texts,
            "erasures": [
                {"event": event, "texts": len(erased.events), "by": erased.by, "reason": erased.reason}
                for event, erased in tally.erasures
            ],
            "corrections": [
                {
                    "event": event,
                    "values": {name: _finite(float(value)) for name, value in one.values.items()},
                    "by": one.by,
                    "reason": one.reason,
                }
                for event, one in tally.corrections
            ],
            "promise_from_round": tally.promise_round,
            "closest": {
                "margin": _finite(tally.closest.margin),
                "round": tally.closest.round,
                "event": tally.closest.event,
                "time": tally.closest.time,
            }
            if tally.closest.round
            else None,
            "findings": len(self.findings),
            "findings_by_check": dict(self.findings.counts),
            "listed": [{"event": one.event, "check": one.what, "text": one.text} for one in self.findings],
            **coins,
        }

    def _coins(self, coins: CoinFairness) -> dict[str, Any]:
        return {
            "drawn": coins.coins,
            "learner": coins.learner,
            "expected_learner": coins.expected,
            "most_evidence": _finite(coins.most),
            "are_fair": self.findings.counts["coins"] == 0,
            "blocks": self.tally.coin_blocks,
            "recomputed": self.tally.coins_recomputed,
            "not_revealed": self.tally.coins_hidden.total(),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
