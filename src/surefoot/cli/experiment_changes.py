"""`surefoot experiment fork` and `correct`: what can be changed of an experiment whose settings never change."""

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from surefoot.cli.existing_journal import JournalArgument, open_existing
from surefoot.cli.policy_settings import read_pairs
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment, read_configuration
from surefoot.experiment import fork as begin
from surefoot.rounds.events import ModeName

By = Annotated[str, typer.Option(help="Who does this; kept in the journal.")]
Why = Annotated[str, typer.Option(help="Why; kept in the journal.")]


def fork(
    journal: JournalArgument,
    source: Annotated[str, typer.Argument(help="The experiment whose settled rounds are carried over.")],
    name: Annotated[str, typer.Argument(help="The new experiment's name.")],
    by: By,
    reason: Why,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting that differs, such as alpha=0.2; repeat for several.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml instead of the old settings; rows are recomputed from the contexts."),
    ] = None,
    correct: Annotated[
        list[str] | None,
        typer.Option(help="DECISION=VALUE: the right value of a reward that was learned wrong; repeat for several."),
    ] = None,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(ModeName))}.")] = "shadow",
    reward_window: Annotated[float | None, typer.Option(help="Seconds until a reward is learned; as before.")] = None,
) -> None:
    """Start a new experiment from what another has learned. Says what is lost. The old one stays: pause it."""
    if config is not None and set_:
        raise ConfigError("`--config` must not be given beside --set: the file has the settings.")
    options: dict[str, Any] = {} if reward_window is None else {"reward_window": reward_window}
    with open_existing(journal) as opened:
        new = begin(
            opened,
            source,
            name,
            policy=None if config is None else read_configuration(config),
            changes=read_pairs(None, set_ or []) or None,
            corrections=dict(map(_correction, correct or [])),
            mode=cast("ModeName", mode),
            reason=reason,
            by=by,
            **options,
        )
    typer.echo(f"{name!r} begins with {new.carried:,} rows of {source!r}. Not carried over:")
    for sentence in new.lost:
        typer.echo(f"- {sentence}")


def _correction(text: str) -> tuple[str, float]:
    decision_id, _, value = text.rpartition("=")  # an id may hold the sign, a number cannot
    try:
        return decision_id, float(value)
    except ValueError:
        raise ConfigError(f"`--correct` must be DECISION=VALUE, but got {text!r:.80}.") from None


def correct(
    journal: JournalArgument,
    name: Annotated[str, typer.Argument(help="The experiment's name.")],
    decision_id: Annotated[str, typer.Argument(help="The decision whose reward was wrong.")],
    value: Annotated[float, typer.Argument(help="The reward as it should have been sent.")],
    by: By,
    reason: Why,
) -> None:
    """Replace a reward that was measured wrongly. Possible as long as nothing was learned from it."""
    with open_existing(journal) as opened:
        is_new = Experiment.open(opened, name).correct(decision_id, value, reason=reason, by=by)
    typer.echo(f"The reward of {decision_id!r} is {value:g}{'' if is_new else ', as it was before'}.")
