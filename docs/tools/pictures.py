"""The pictures of the documentation, drawn from runs of the library: `python -m docs.tools.pictures`."""

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import surefoot
from docs.tools.scale import INTERVALS, TABLE
from surefoot.arrays import Vector
from surefoot.reports.figures import DARK_GREY, FLOOR, INK, STYLE, series_colour, slim

FOLDER = Path(__file__).parents[1] / "pictures"
SVG: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "surefoot"}
BLUE, GREEN, RED, PURPLE, ORANGE = (series_colour(place) for place in range(5))


def save(figure: Figure, path: Path) -> None:
    """Writes a figure as SVG, the same bytes each time."""
    with plt.rc_context(SVG):
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None}, bbox_inches="tight")
    path.write_text(slim(written.getvalue()), encoding="utf-8")
    plt.close(figure)


def try_it() -> Figure:
    """What the learner of docs/try-it.md earned, beside its floor."""
    rates, rng = np.array([[0.30, 0.30], [0.20, 0.55], [0.45, 0.20]]), np.random.default_rng(1)
    phi = surefoot.Disjoint(actions=3, context_dim=2, context_bound=1.0, intercept=False)
    policy = surefoot.SafeLUCB(
        dim=phi.dim, alpha=0.1, delta=0.01, reward_bounds=(0, 1), theta_bound=6**0.5, feature_bound=phi.bound
    )
    earned, today = [], []
    for _ in range(4000):
        group = int(rng.integers(2))
        decision = policy.decide(phi(np.eye(2)[group]), baseline=0)
        policy.observe(decision, float(rng.random() < rates[decision.action, group]))
        earned.append(rates[decision.action, group])
        today.append(rates[0, group])
    figure, ax = plt.subplots(figsize=(6.4, 3.0))
    rounds = np.unique(np.geomspace(1, 4000, 200).astype(int))
    ax.plot(
        rounds, (np.cumsum(earned) / np.cumsum(today))[rounds - 1], color=GREEN, label="the learner, under its floor"
    )
    ax.axhline(1.0, color=DARK_GREY, linewidth=1, label="offer 0, today")
    ax.axhline(0.9, color=RED, linestyle=FLOOR, linewidth=1, label="the floor, 90% of it")
    ax.set(xscale="log", xlabel="customers", ylabel="earned so far,\nas a share of offer 0")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(loc="upper left")
    return figure


def ledger() -> Figure:
    """The ledger: rounds of the baseline pay in, tries of the learner draw on it, and the floor is never crossed."""
    rows, theta, rng = np.array([[0.6, 0.0], [0.0, 1.0], [0.9, 0.1]]), np.array([0.5, -0.3]), np.random.default_rng(3)
    policy = surefoot.CLUCB(
        dim=2, alpha=0.1, delta=0.01, noise=0.1, ridge=1.0, theta_bound=0.6, feature_bound=1.0, radius="amm"
    )
    slack, learner, margins = [0.0], [], []
    for round_ in range(1, 116):
        decision = policy.decide(rows, baseline=0, baseline_reward=0.3)
        mean = float(rows[decision.action] @ theta)
        policy.observe(decision, mean + 0.1 * rng.normal())
        slack.append(slack[-1] + mean - 0.9 * 0.3)
        if decision.source == "learner":
            learner.append(round_)
            margins.append(decision.certificate.margin)
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    ax.step(range(116), slack, where="post", color=GREEN, label="earned in expectation, above the floor")
    ax.plot(learner, margins, "o", color=BLUE, markersize=3.5, label="what was proved when the learner played")
    ax.axhline(0.0, color=RED, linestyle=FLOOR, linewidth=1, label="the floor: 90% of the baseline")
    pointer = {"arrowstyle": "->"}
    ax.annotate("each round of the\nbaseline pays in 10%", (12, slack[12]), (1, 2.0), arrowprops=pointer)
    ax.annotate(
        "a bad try\ndraws on it", (learner[0] + 0.5, slack[learner[0]]), (learner[0] + 9, 2.0), arrowprops=pointer
    )
    ax.set(xlabel="round", ylabel="above the floor", ylim=(-0.3, None))
    ax.legend(loc="upper left")
    return figure


def arrows() -> Figure:
    """A proof as a sum of arrows: the pieces lead from 0 to the question, and each is bounded by one fact."""
    proof = decision_of_certificates().certificate.proof
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    place = np.zeros(2)
    for piece, colour in zip(proof.pieces, (BLUE, GREEN, PURPLE), strict=True):
        # The last piece leads back along the one before, so it is drawn a little beside it.
        aside = np.array([0.0, -0.07]) if colour == PURPLE else np.zeros(2)
        _arrow(ax, place + aside, place + piece.vector + aside, colour)
        ax.plot([], [], color=colour, linewidth=2, label=f"at least {piece.bound:+.2f}, by the {piece.fact.name}")
        place = place + piece.vector
    _arrow(ax, np.zeros(2), np.asarray(proof.question), INK)
    ax.plot(
        [], [], color=INK, linewidth=2, label=f"the question: at least {proof.value:+.2f} in all, so it may be played"
    )
    ax.plot(0, 0, "o", color=INK, markersize=4)
    ax.set(xlabel="first feature", ylabel="second feature")
    ax.margins(0.12, 0.25)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    return figure


def decision_of_certificates() -> surefoot.Decision:
    """The decision that docs/certificates.md takes apart."""
    policy = surefoot.CLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    rows, truth = np.array([[0.6, 0.1], [0.0, 1.0], [0.9, 0.3]]), np.array([0.8, 0.1])
    coin, played = np.random.default_rng(7), 0
    while True:
        decision = policy.decide(rows, baseline=0, baseline_reward=0.49)
        policy.observe(decision, float(coin.random() < rows[decision.action] @ truth))
        played += decision.source == "learner"
        if played == 2:
            return decision


def _arrow(ax: Axes, start: Vector, end: Vector, colour: str) -> None:
    ax.plot(*np.stack([start, end]).T, alpha=0)  # so that the axes make room for it
    shape = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (end[0], end[1]), (start[0], start[1]), arrowprops=shape)


def free_share() -> Figure:
    """Why a share of at most alpha is free: even a proposal that earns nothing leaves 1 - alpha of the baseline."""
    alpha, shares = 0.1, np.linspace(0, 0.4, 81)
    figure, ax = plt.subplots(figsize=(6.4, 3.0))
    ax.fill_between([0, alpha], 0.55, 1.02, color=GREEN, alpha=0.15, linewidth=0)
    ax.plot(shares, 1 - shares, color=BLUE, label="kept if the proposal earns nothing: 1 - p")
    ax.plot(shares, 1 + 0 * shares, color=DARK_GREY, linewidth=1, label="kept if it earns what the baseline does")
    ax.axhline(1 - alpha, color=RED, linestyle=FLOOR, linewidth=1, label="the floor: 1 - alpha")
    ax.annotate("free:\nno data needed", (alpha / 2, 0.76), ha="center", color=INK)
    ax.annotate("paid from the bank,\nwhich only data can fill", (0.27, 0.81), ha="center", color=INK)
    ax.set(
        xlabel="p, the proposal's share of the rounds", ylabel="earned, as a share\nof the baseline", ylim=(0.55, 1.05)
    )
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.25))
    return figure


def scale() -> Figure:
    """What leases cost against the number of shards, and what a lease is worth (docs/scale.md)."""
    with TABLE.open() as file:
        rows = [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0))
    for interval, colour in zip(INTERVALS, (GREEN, BLUE), strict=True):
        found = [row for row in rows if row["interval"] == interval]
        shards, label = [row["shards"] for row in found], f"renewed every {interval:,} rounds of the fleet"
        left.plot(shards, [row["conservative"] for row in found], "o-", color=colour, markersize=3.5, label=label)
        right.plot(shards, [row["lease"] for row in found], "o-", color=colour, markersize=3.5, label=label)
    left.axhline(rows[0]["conservative"], color=DARK_GREY, linestyle="--", linewidth=1, label="one ledger")
    left.set(xscale="log", yscale="log", xlabel="shards", ylabel="rounds of the baseline")
    right.set(xscale="log", yscale="log", xlabel="shards", ylabel="mean lease, in rewards")
    figure.legend(*left.get_legend_handles_labels(), loc="upper center", ncols=3, bbox_to_anchor=(0.5, 1.06))
    figure.tight_layout()
    return figure


def acting_learners() -> Figure:
    """Learners that learn by acting (docs/real-data.md), from `python -m bench.acting_learners --curves FILE`."""
    with (FOLDER / "acting_learners.csv").open() as file:
        rows = list(csv.DictReader(file))
    figure, grid = plt.subplots(2, 3, figsize=(7.2, 4.6), sharex=True, sharey=True)
    for place, table in enumerate(dict.fromkeys(row["table"] for row in rows)):
        for is_broken, ax in enumerate(grid[:, place]):
            mine = [row for row in rows if row["table"] == table and int(row["is_broken"]) == is_broken]
            for rollout, colour in {"unguarded": RED, "canary": PURPLE, "reactive": BLUE, "guard": GREEN}.items():
                found = [(float(row["round"]), float(row["earned"])) for row in mine if row["rollout"] == rollout]
                ax.plot(*zip(*found, strict=True), color=colour, linewidth=1.2, label=rollout)
            ax.axhline(0.9, color=DARK_GREY, linestyle=FLOOR, linewidth=1, label="the floor")
            ax.set(xscale="log", title=f"{table}, then random" if is_broken else table)
            ax.yaxis.set_major_formatter("{x:.0%}")
    figure.supylabel("earned so far, of today's rule's", fontsize="medium")
    figure.supxlabel("rounds", fontsize="medium")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="upper center", ncols=5, bbox_to_anchor=(0.5, 1.04))
    figure.tight_layout()
    return figure


def guard_limit() -> Figure:
    """A guard beside the limit and other rollouts (docs/guard.md), from `python -m bench.guard --curves FILE`."""
    with (FOLDER / "guard_limit.csv").open() as file:
        rows = list(csv.DictReader(file))
    colours = {
        "limit": DARK_GREY, "limit of its bets": RED, "guard": GREEN, "guard, to save": ORANGE, "canary": PURPLE,
        "reactive": BLUE,
    }  # fmt: skip
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.6), sharex=True)
    for ax, learner in zip(axes, dict.fromkeys(row["learner"] for row in rows), strict=True):
        what = "kept" if float(learner) >= 0.3 else "earned"
        for rollout, colour in colours.items():
            mine = [row for row in rows if (row["learner"], row["rollout"]) == (learner, rollout)]
            points = [(float(row["round"]), float(row[what])) for row in mine]
            if points:
                ax.plot(*zip(*points, strict=True), color=colour, linewidth=1.2, label=rollout)
        ax.set(xscale="log", title=f"{learner} against 0.3", xlabel="rounds")
        if what == "kept":
            ax.set(yscale="log", ylim=(1, None), ylabel="rounds of the baseline")
        else:
            ax.axhline(0.9, color=DARK_GREY, linestyle=FLOOR, linewidth=1, label="the floor")
            ax.set_ylabel("earned, of the baseline's")
            ax.yaxis.set_major_formatter("{x:.0%}")
    named = dict(pair for ax in axes for pair in zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(named.values(), named, loc="upper center", ncols=6, bbox_to_anchor=(0.5, 1.08))
    figure.tight_layout()
    return figure


def bill() -> Figure:
    """What is saved, and kept where a model degrades (docs/bill.md), from `python -m bench.bill --curves FILE`."""
    with (FOLDER / "bill.csv").open() as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharex=True)
    others = {"rollout": "--", "canary": ":", "all at once": "-."}
    for ax, what, colours in zip(axes, ("saved", "kept"), ((BLUE, GREEN, PURPLE, INK), (GREEN,)), strict=True):
        guards = iter(colours)
        for name in dict.fromkeys(row["by"] for row in rows if row["what"] == what):
            points = [
                (float(row["prompts"]), float(row["share"])) for row in rows if (row["what"], row["by"]) == (what, name)
            ]
            colour = DARK_GREY if name in others else next(guards)
            ax.plot(
                *zip(*points, strict=True), color=colour, linestyle=others.get(name, "-"), linewidth=1.2, label=name
            )
        ax.set_xlabel("prompts")
        ax.yaxis.set_major_formatter("{x:.0%}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    axes[0].set(ylabel="saved of the bill so far", title="Mistral Large, by the guard's floor", ylim=(0, 1))
    axes[1].axhline(0.95, color=RED, linestyle=FLOOR, linewidth=1)
    axes[1].set(ylabel="kept of the quality so far", title="It degrades in the middle", yticks=(0.85, 0.9, 0.95, 1.0))
    figure.tight_layout()
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "try_it": try_it,
    "ledger": ledger,
    "arrows": arrows,
    "free_share": free_share,
    "scale": scale,
    "acting_learners": acting_learners,
    "guard_limit": guard_limit,
    "bill": bill,
}


def main() -> None:
    """Draws them all."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        with plt.rc_context(STYLE):
            save(draw(), FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
