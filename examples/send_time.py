"""E-mail: when to send, with opens that arrive a day later.

A newsletter goes out at eight in the morning. A model wants to send in the evening to those who read in the evening.
Whether a mail is opened is known only much later, and a mail that is never opened is never reported: after a thousand
further mails the guard counts silence as a zero. It needs no model of who opens when.
"""

from collections import deque

import matplotlib.pyplot as plt
import numpy as np

import surefoot

MAILS, LATE = 12_000, 400
rng = np.random.default_rng(0)
opens = {("early bird", "08:00"): 0.35, ("early bird", "19:00"): 0.20, ("owl", "08:00"): 0.15, ("owl", "19:00"): 0.40}

guard = surefoot.Guard(alpha=0.1, delta=0.05, settle_after=1000, default_reward=0.0, seed=1)
on_their_way: deque[tuple[int, surefoot.policies.GuardDecision]] = deque()
shares, earned, owed = [], 0.0, 0.0
for mail in range(MAILS):
    reader = "owl" if rng.random() < 0.5 else "early bird"
    guess = reader if rng.random() < 0.9 else "owl"  # the model knows its readers, mostly
    decision = guard.decide(baseline="08:00", proposal="19:00" if guess == "owl" else "08:00")
    if rng.random() < opens[reader, decision.action]:
        on_their_way.append((mail + LATE, decision))
    while on_their_way and on_their_way[0][0] <= mail:
        guard.observe(on_their_way.popleft()[1], 1.0)
    earned, owed = earned + opens[reader, decision.action], owed + opens[reader, "08:00"]
    shares.append(guard.share)

low, high = guard.lift_intervals["reward"]
print(f"{earned / owed - 1:+.0%} opens; where the model's word differs it adds {low:.2f} to {high:.2f} per mail")
figure, ax = plt.subplots(figsize=(6.4, 3.0))
ax.plot(range(0, MAILS, 300), np.reshape(shares, (-1, 300)).mean(axis=1))
ax.axhline(0.1, color="tab:red", linestyle="--", linewidth=1, label="free from the start: alpha")
ax.set(xlabel="mails", ylabel="share that the\nmodel may have", ylim=(0, 1))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend()
figure.savefig("send_time.svg")
