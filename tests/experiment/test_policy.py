"""Policies by name: what is known is made, and everything else is refused in words."""

from typing import Any

import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.policies import LUCB, Policy
from surefoot.policies.by_name import POLICIES, make_policy, policy_class

SETTINGS = {"dim": 2, "delta": 0.1, "noise": 1.0, "ridge": 1.0, "theta_bound": 1.0, "feature_bound": 1.0}


def test_the_names_are_those_of_every_policy_that_surefoot_offers() -> None:
    offered = {getattr(surefoot, name) for name in surefoot.__all__}
    assert {policy_class(name) for name in POLICIES} == {
        kind for kind in offered if isinstance(kind, type) and issubclass(kind, Policy) and kind is not Policy
    }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("SafeLUBC", "Did you mean 'SafeLUCB'"),
        ("Oracle", "Known are CLUCB, CLUCB2"),
        ("LinearPolicy", "must be known"),
    ],
)
def test_another_name_is_refused_with_the_nearest_one(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        make_policy(name, SETTINGS)


def test_a_policy_of_ones_own_is_known_once_it_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "_registry", dict(Policy._registry))
    with pytest.raises(ConfigError, match="once its module is imported"):
        make_policy("Mine", SETTINGS)

    class Mine(LUCB):
        pass

    assert type(make_policy("Mine", SETTINGS)) is Mine


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.1}, r"^`settings` must be those of LUCB: .* 'alpha'\. Try --set\.$"),
        ({"dim": 0.5}, "dim"),
    ],
)
def test_settings_that_do_not_fit_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_policy("LUCB", SETTINGS | change, advice="Try --set.")
