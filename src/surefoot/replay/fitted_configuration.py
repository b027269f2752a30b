"""The experiment's configuration that a fit to a log suggests."""

from surefoot.errors import AssumptionError, InputError
from surefoot.experiment.configuration import UNGUARDED, Configuration, not_linear
from surefoot.experiment.configuration import read_configuration as read_configuration
from surefoot.replay.baseline_fit import Fit
from surefoot.replay.diagnostics import LINEARITY
from surefoot.replay.log_files import TableLog


def configuration_of(
    fit: Fit,
    log: TableLog,
    *,
    policy: str,
    alpha: float,
    delta: float,
    ridge: float | None = None,
    radius: str | None = None,
    reward_bounds: tuple[float, float] | None = None,
    reward_window: float | None = None,
    default_reward: float | None = None,
    despite_doubt: bool = False,
    exploration: float | None = None,
) -> Configuration:
    r"""The experiment's configuration that a fit suggests.

    Parameters
    ----------
    fit : Fit
        What `fit_baseline` returned.
    log : TableLog
        The log that was fitted, a table read by `read_log`.
    policy : str
        Name of the policy.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    ridge : float, optional
        Regulariser lambda; by default the policy's own.
    radius : str, optional
        Radius of the confidence set; by default the policy's own.
    reward_bounds : (low, high), optional
        Bounds that no single reward leaves. SafeLUCB learns by them, and one that does not keep them raises the alarm.
    reward_window, default_reward : float, optional
        Seconds after which a reward is learned, and what is learned if none came.
    despite_doubt : bool
        Take a linear policy with a floor although the log speaks against a linear model.
    exploration : float, optional
        LUCB's radius as a constant (LinUCB's alpha); by default one that holds at all times.

    Returns
    -------
    Configuration
        Writes itself as TOML, makes the policy, and maps a context to feature rows.

    Raises
    ------
    AssumptionError
        If the baseline's mean reward is negative in the log, or linearity is doubtful.
    InputError
        If the log is no table, and so has no columns that live contexts could be encoded by.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surefoot.replay import fit_baseline, read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("action,reward,age\n" + "red,0.2,30\nblue,0.7,40\n" * 20)
    ...     log = read_log(path, baseline="red")
    ...     found = configuration_of(fit_baseline(log), log, policy="SafeLUCB", alpha=0.1, delta=0.01, ridge=1.0)
    >>> sorted(found.actions), found.baseline
    (['blue', 'red'], 'red')
    """
    if not isinstance(log, TableLog):
        raise InputError(
            f"`log` must be a table read by `read_log`, but got a {type(log).__name__}. Where propensities were "
            "estimated, give the log that they were estimated for."
        )
    declared = fit.declared
    doubt = next((doubt.seen for doubt in fit.doubts if doubt.assumption == LINEARITY and doubt.is_doubtful), "")
    if doubt and policy != UNGUARDED and not despite_doubt:
        raise AssumptionError(not_linear(doubt, policy, alpha, delta, reward_bounds or fit.reward_bounds))
    one = None if log.follows_log or log.columns.baseline else log.actions[log.baseline_row]
    return Configuration(
        policy=policy,
        alpha=alpha,
        delta=delta,
        noise=declared.noise,
        ridge=ridge,
        theta_bound=declared.theta_bound,
        feature_bound=log.feature_bound,
        baseline_reward=declared.baseline_reward,
        actions=log.actions,
        baseline=one,
        encoder=log.encoder,
        action_features=log.action_features,
        radius=radius,
        reward_bounds=reward_bounds,
        reward_window=reward_window,
        default_reward=default_reward,
        doubt=doubt,
        exploration=exploration,
    )
