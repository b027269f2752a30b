"""Names of features and arms: given once, checked, kept in the journal, and carried by a fork."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment, fork
from surefoot.experiment.configuration import Configuration, column_names, feature_names
from surefoot.linear.encoding import CategoricalColumn, Encoder, NumericColumn

TOLD: dict[str, Any] = {"alpha": 0.1, "delta": 0.1, "noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.5}
CONFIGURED = {**TOLD, "policy": "SafeLUCB", "ridge": None, "baseline_reward": 0.5, "baseline": "red"}


def safe(dim: int = 2) -> surefoot.SafeLUCB:
    return surefoot.SafeLUCB(dim=dim, **TOLD)


def test_names_are_kept_and_a_fork_has_them_unless_its_rows_are_new() -> None:
    journal = surefoot.open_journal("memory:")
    shop = Experiment.create(journal, "shop", safe(), feature_names=["price", "age"])
    shop.reward(shop.decide(np.eye(2), baseline=0).decision_id, 0.5)
    assert feature_names(Experiment.open(journal, "shop").settings) == ["price", "age"]
    assert feature_names(fork(journal, "shop", "bolder", reason="a try").experiment.settings) == ["price", "age"]
    anew = fork(journal, "shop", "other", reason="a try", features=lambda request: np.array(request.features)[:, ::-1])
    assert feature_names(anew.experiment.settings) is None


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", " "], ["a", "b", "c"], "ab", ["a", "b" * 201]])
def test_wrong_names_are_refused_and_nothing_is_created(names: Any) -> None:
    journal = surefoot.open_journal("memory:")
    with pytest.raises(ConfigError, match="must be 2 different names"):
        Experiment.create(journal, "shop", safe(), feature_names=names)
    assert journal.names() == []


def test_a_guard_and_a_configuration_take_none() -> None:
    journal = surefoot.open_journal("memory:")
    with pytest.raises(ConfigError, match="for policies with features or arms"):
        Experiment.create(journal, "shop", surefoot.Guard(alpha=0.1, delta=0.1), feature_names=["a"])
    told = Configuration(**CONFIGURED, actions=("red", "blue"), encoder=Encoder(()))
    with pytest.raises(ConfigError, match="must be left out where a configuration is given"):
        Experiment.create(journal, "shop", told, feature_names=["a", "b"])


AGE = NumericColumn("age", 20.0, 60.0)
PLAN = CategoricalColumn("plan", ("basic", "pro"))
FEATURES = {"red": (1.0, 0.0), "blue": (0.0, 1.0)}


@pytest.mark.parametrize(
    ("columns", "action_features"),
    [((), None), ((AGE,), None), ((AGE, PLAN), None), ((), FEATURES), ((AGE, PLAN), FEATURES)],
)
def test_every_weight_of_a_configuration_has_a_name_of_its_own(columns: Any, action_features: Any) -> None:
    told = Configuration(
        **CONFIGURED, actions=("red", "blue"), encoder=Encoder(columns), action_features=action_features
    )
    names = column_names(told.phi, told.actions, told.encoder)
    assert len(names) == len(set(names)) == told.phi.dim


def test_a_name_says_which_entry_of_a_row_it_stands_for() -> None:
    # A context of age alone moves the weights that age is named in, and no others.
    told = Configuration(**CONFIGURED, actions=("red", "blue"), encoder=Encoder((AGE, PLAN)), action_features=FEATURES)
    low, high = (told.rows({"age": age, "plan": "pro"}) for age in (20, 60))
    moved = {
        name
        for name, change in zip(
            column_names(told.phi, told.actions, told.encoder), np.abs(high - low).max(axis=0), strict=True
        )
        if change
    }
    assert moved == {name for name in column_names(told.phi, told.actions, told.encoder) if name.startswith("age")}
