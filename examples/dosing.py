"""Dosing: a clinical trial, replayed.

ACTG 175 randomised 2,139 patients to four treatments; `lifelines` carries the data. The baseline is zidovudine alone,
the treatment of that time, and a reward is a CD4 count that did not fall in 20 weeks. Because treatments were drawn
at random, the trial tells what a policy would have done: the patients it would have treated as the trial did are a
run of their own.
"""

import matplotlib.pyplot as plt

from surefoot.replay import datasets, fit_baseline, replay, reward_figure
from surefoot.simulation import Spec

trial = datasets.actg175()
fit = fit_baseline(trial, reward_bounds=(0, 1))
outcomes = replay(trial, [Spec("LUCB"), Spec("SafeLUCB", alpha=0.2)], declared=fit.declared)
for outcome in outcomes:
    lift = outcome.main["gain"]
    print(
        f"{outcome.spec.label}: {outcome.rounds} patients, lift {lift.value:+.2f} [{lift.low:+.2f}, {lift.high:+.2f}], "
        f"{outcome.below[0.2]} rounds below the floor"
    )

figure, ax = plt.subplots(figsize=(6.4, 3.2))
reward_figure(outcomes, ax)
figure.savefig("dosing.svg")
