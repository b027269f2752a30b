"""A world that remembers what was played: the guard compares with the baseline in the state that past plays have left.

Each play of the proposal earns a little more than the baseline and tires the audience, for both. The promise is kept in
every round, and what is earned is a small part of what the baseline alone would have: a condition to be said, not a
break of the promise.
"""

from surefoot import Guard

ALPHA, ROUNDS = 0.1, 20_000


def test_a_guard_keeps_its_promise_and_earns_little_where_plays_carry_over() -> None:
    guard, mood, slack, least, earned = Guard(alpha=ALPHA, delta=0.05, seed=3), 0.9, 0.0, 0.0, 0.0
    for _ in range(ROUNDS):
        made = guard.decide(baseline="fresh", proposal="again")
        learner, baseline = min(1.0, 1.05 * mood), mood
        slack += made.share * (learner - baseline) + ALPHA * baseline
        least = min(least, slack)
        reward = learner if made.source == "learner" else baseline
        earned += reward
        guard.observe(made, reward)
        mood *= 0.9995 if made.source == "learner" else 1.0
    assert least >= 0.0
    assert earned < 0.2 * ROUNDS * 0.9
