"""Orders that a call gives to one round, beside "let the gate decide". A number of at least 0 is the learner's row."""

from surefoot.core import native

FREE: int = native.FREE
HOLD: int = native.HOLD  # the baseline plays, at the caller's wish
ALARMED: int = native.ALARMED  # the baseline plays while the alarm is on
HELD_OUT: int = native.HELD_OUT  # the baseline plays by the coin of a holdout
TRY: int = native.TRY  # TRY - row: somebody else's proposal, which the gate may refuse
