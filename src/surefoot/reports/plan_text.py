"""A rollout plan in words: the same rows and notes in the terminal and on the page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from surefoot.simulation.guard_plan import GuardRollout
from surefoot.simulation.rollout_plan import Answer, Plan


def heading(plan: Plan) -> str:
    """What was simulated."""
    settings = plan.settings
    return f"{plan.days:g} days, {settings['per_day']:g} decisions a day, {settings['runs']} simulated worlds"


def policy_title(policy: str) -> str:
    """A policy, and whose it is."""
    return f"{policy}, recommended" if policy == "SafeLUCB" else f"{policy}, the paper's"


def notes(plan: Plan) -> Iterator[str]:
    """How to read the rows."""
    settings = plan.settings
    if settings["simulated_rounds"] < plan.rounds:
        yield f"Simulated {settings['simulated_rounds']:,} of {plan.rounds:,} rounds; the rest is extrapolated."
    yield "±: a 95% interval, over the simulated worlds."
    yield "Free: the learner acts as it likes, no baseline round in the last fifth of what was simulated."
    if "CLUCB" in plan.policies:
        yield "The theorem's bound holds wherever its assumptions do, and lies far above what is seen."
    if settings["clicks"]:
        yield from _needed(plan)
    elif "SafeLUCB" in plan.policies and settings["reward_range"] is None:
        yield "If every mean reward lies in a known range, say so (--reward-range 0,1): SafeLUCB is then free sooner."


def _needed(plan: Plan) -> Iterator[str]:
    """How many rewards are needed, and what to do where there are too few."""
    needs = [plan.needed(alpha) for alpha in dict.fromkeys(answer.alpha for answer in plan.answers)]
    rewards = ", ".join(f"{need.rewards(need.alpha):.0f} at {need.alpha:g}" for need in needs)
    days = ", ".join(f"{needed_days(plan, need.alpha, need.alpha):.3g}" for need in needs)
    yield (
        f"Needed by bounds that hold at all times, by alpha: {rewards} rewards of a better arm that nothing else tells "
        f"of. At a share alpha of the rounds that takes {days} days; it is sooner where the share grows with what is "
        "proved, or where rounds of the baseline teach, too."
    )
    if all(needed_days(plan, need.alpha, 1.0) > plan.days for need in needs):
        yield (
            f"{plan.days:g} days are hopeless at this traffic. What would help: a larger alpha, a reward that comes "
            "more often (a proxy), a log to start warm from, or the guard (--policy guard), which needs no proof to "
            "begin."
        )


def needed_days(plan: Plan, alpha: float, share: float) -> float:
    """Days until enough rewards have come at this share for the better arm; at 1 its own rewards alone count."""
    told = plan.settings
    needed = replace(plan.needed(alpha), is_known=True) if share == 1.0 else plan.needed(alpha)
    return needed.rounds(told["baseline_reward"], share) / float(told["per_day"])


def rows(plan: Plan, policy: str) -> Iterator[tuple[str, list[str]]]:
    """What is told of a policy: a name, and a cell for each alpha. Names that begin with blanks are nested."""
    answers = plan.of(policy)
    for name, cell in _ROWS:
        if name not in _WHERE_FINITE or any(math.isfinite(_WHERE_FINITE[name](answer)) for answer in answers):
            yield name, [cell(answer) for answer in answers]


def guard_heading(answers: Sequence[GuardRollout], days: float) -> str:
    """What was simulated of a guard."""
    simulated = min(answer.simulated_days for answer in answers)
    beyond = "" if simulated >= days else f", {simulated:.3g} of them simulated"
    return f"Guard, any learner, rewards of 0 or 1: {days:g} days{beyond}"


def guard_rows(answers: Sequence[GuardRollout], days: float) -> Iterator[tuple[str, list[str]]]:
    """What is told of a guard: a name, and a cell for each alpha."""

    def shown(answer: GuardRollout, day: float) -> str:
        is_open = math.isinf(day) and answer.simulated_days < days
        return f"more than {answer.simulated_days:.3g}" if is_open else _days(day)

    cells: tuple[tuple[str, Callable[[GuardRollout], str]], ...] = (
        ("days until half of the rounds, for good (median)", lambda a: shown(a, a.half_day)),
        ("days until nine tenths of them (median)", lambda a: shown(a, a.most_day)),
        ("  in nine worlds of ten", lambda a: shown(a, a.most_day_slow)),
        ("the learner's share at the end", lambda a: f"{a.share:.0%}"),
        ("rounds of the baseline, expected here (mean)", lambda a: _number(a.baseline_rounds)),
        ("  computed limit for a fixed schedule", lambda a: _number(a.limit_rounds)),
        ("  proved of every guard: at least (theorem)", lambda a: _number(a.proved_rounds) if a.proved_rounds else "-"),
        ("lift over the baseline", lambda a: f"{a.gained:+,.0f}"),
        ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
        ("worlds ever below the floor", lambda a: f"{a.broken}"),
    )
    for name, cell in cells:
        yield name, [cell(answer) for answer in answers]


def verdict(plan: Plan) -> tuple[str, bool]:
    """Whether it would pay, how soon, and whether every floor held; and whether all of that is good news."""
    first = plan.of(plan.policies[0])
    best = max(first, key=lambda answer: answer.gained)
    reach, below = 1.96 * best.gained_stderr, sum(answer.violations for answer in plan.answers)
    pays = best.gained > reach
    soon = f"free after {best.free_day:.2g} days" if math.isfinite(best.free_day) else "not free in time"
    answer = "It would pay" if pays else "It would not pay in this time"
    said = (
        f"{answer}: {best.policy} with α = {best.alpha:g} earns {best.gained_share:+.1%} in {plan.days:g} days "
        f"({best.gained:+,.0f} ± {reach:,.0f}), and is {soon}."
    )
    kept = "No policy fell below its floor." if not below else f"Below the floor in {below:,} simulated rounds."
    return f"{said} {kept}", pays and not below


def at_stake(plan: Plan) -> list[str]:
    """The share of the baseline's reward that each alpha puts at risk."""
    return [f"{answer.at_stake_share:.1%}" for answer in plan.of(plan.policies[0])]


def _number(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.0f}"


def _days(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.1f}"


def _millions(value: float) -> str:
    """Two digits and no exponent."""
    rounded = float(f"{value:.2g}")
    return f"{rounded / 1e6:,.0f} million" if rounded >= 1e7 else f"{rounded:,.0f}"


_BOUND, _TIMES = "  the theorem's bound on them", "rewards seen until free"
_NEEDED = "  until enough rewards have come, at a share alpha"
_WHERE_FINITE: dict[str, Callable[[Answer], float]] = {
    _BOUND: lambda a: a.bound_rounds,
    _NEEDED: lambda a: a.needed_day,
    _TIMES: lambda a: a.needed_times,
}
_ROWS: tuple[tuple[str, Callable[[Answer], str]], ...] = (
    ("days until free (median)", lambda a: _days(a.free_day)),
    ("  in nine worlds of ten", lambda a: _days(a.free_day_slow)),
    (_NEEDED, lambda a: _days(a.needed_day)),
    (_TIMES, lambda a: f"{a.needed_times:.1f} x what is needed" if math.isfinite(a.needed_times) else "not in time"),
    ("rounds until free (median)", lambda a: _number(a.free_round)),
    ("  in nine worlds of ten", lambda a: _number(a.free_round_slow)),
    ("worlds in which it is free in time", lambda a: f"{a.free_share:.0%}"),
    ("rounds of the baseline (median)", lambda a: _number(a.baseline_rounds)),
    (_BOUND, lambda a: _millions(a.bound_rounds)),
    ("furthest behind the baseline, ever", lambda a: f"{a.worst_seen_share:.1%}"),
    ("rounds below the floor, all worlds", lambda a: f"{a.violations}"),
    ("lift over the baseline", lambda a: f"{a.gained:+,.0f} ± {1.96 * a.gained_stderr:,.0f}"),
    ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
)
