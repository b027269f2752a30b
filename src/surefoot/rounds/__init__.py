"""The vocabulary that carries a round from a caller to a chain and to an auditor: one struct for each thing.

A `Round` is the payload of its event and what a shard keeps of it; an `Answer` is what its caller gets, in Python, over
HTTP and at an edge; `Reward`, `Lease`, `HandIn` and the operators' words are events and bodies alike. `events.py` says
what each event holds and what follows from them; experiments, the service and the audit share this and nothing else.
"""

from surefoot.rounds.answers import Answer as Answer
from surefoot.rounds.answers import Receipt as Receipt
from surefoot.rounds.format import Number as Number
from surefoot.rounds.format import Record as Record
from surefoot.rounds.format import decode as decode
from surefoot.rounds.format import encode as encode
from surefoot.rounds.format import number as number
