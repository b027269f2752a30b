"""`surefoot reward JOURNAL NAME --from FILE`: rewards from where they lie."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer


def reward(
    journal: Annotated[str, typer.Argument(help="A SQLite file, postgresql://..., or the service's http://...")],
    name: Annotated[str, typer.Argument(help="The experiment's name.")],
    file: Annotated[
        Path, typer.Option("--from", help="A .parquet, .csv or .jsonl file with decision_id and a column per metric.")
    ],
) -> None:
    """Send the rewards of a file.

    Running it again sends nothing twice, so an interrupted run is continued by the same command. Rows that are refused
    are written beside the file, with the reason.
    """
    import msgspec

    from surefoot.atomic_files import whole_file
    from surefoot.cli.progress import progress_bar
    from surefoot.experiment.reward_file import send_rewards

    refused = file.with_name(f"{file.stem}.refused.jsonl")
    with ExitStack() as stack:
        is_service = journal.startswith(("http://", "https://"))
        send = _to_service(journal, name, stack) if is_service else _to_journal(journal, name, stack)
        report = stack.enter_context(progress_bar("sending", "rewards"))
        sent = send_rewards(file, send, progress=report)
    typer.echo(f"Accepted {sent.accepted:,} rewards, {sent.repeats:,} of which had come before.")
    if sent.refusals:
        with whole_file(refused) as out:
            out.writelines(msgspec.json.encode(one) + b"\n" for one in sent.refusals)
        typer.echo(f"Refused {len(sent.refusals):,}: {refused} says why.", err=True)
    else:
        refused.unlink(missing_ok=True)  # of an earlier run


def _to_journal(journal: str, name: str, stack: ExitStack) -> Any:
    from surefoot.cli.existing_journal import open_existing
    from surefoot.errors import InputError
    from surefoot.experiment import Experiment
    from surefoot.experiment.reward_file import Row, Verdict
    from surefoot.rounds.events import METRIC

    experiment = Experiment.open(stack.enter_context(open_existing(journal)), name)
    is_single = not hasattr(experiment.kind, "metrics")

    def send(rows: Sequence[Row]) -> list[Verdict]:
        verdicts = dict[int, Verdict]()
        sound = list[tuple[int, tuple[str, Any]]]()
        for at, (decision_id, values) in enumerate(rows):
            value: Any = values[METRIC] if is_single and list(values) == [METRIC] else values
            try:
                experiment.read_rewards(decision_id, value)
                sound.append((at, (decision_id, value)))
            except InputError as error:
                verdicts[at] = Verdict(str(error))
        receipts = experiment.reward_all([one for _, one in sound])
        for (at, _), receipt in zip(sound, receipts, strict=True):
            verdicts[at] = Verdict(receipt.refused, receipt.is_repeat)
        return [verdicts[at] for at in range(len(rows))]

    return send


def _to_service(url: str, name: str, stack: ExitStack) -> Any:
    import os

    import httpx

    from surefoot.client.calls import ServiceError
    from surefoot.experiment.reward_file import Row, Verdict
    from surefoot.rounds.events import METRIC

    token = os.environ.get("SUREFOOT_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    http = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False))

    def send(rows: Sequence[Row]) -> list[Verdict]:
        if not rows:
            return []
        body = [
            {"decision_id": decision_id, "value": values[METRIC] if list(values) == [METRIC] else values}
            for decision_id, values in rows
        ]
        try:
            answer = http.post(f"/v1/experiments/{name}/reward-batches", json={"rewards": body})
        except httpx.HTTPError as error:
            raise ServiceError(
                f"The service must answer, but {url} does not: {error}. Run the command again."
            ) from None
        if answer.status_code != 200:
            raise ServiceError(f"The service refused the rewards: {answer.text:.500}", status=answer.status_code)
        return [_verdict(one) for one in answer.json()["results"]]

    return send


def _verdict(outcome: dict[str, Any]) -> Any:
    from surefoot.experiment.reward_file import Verdict

    problem = outcome.get("problem")
    if problem is not None:
        word = problem["type"].rsplit("/", 1)[-1]
        words = {"unknown-decision": "unknown", "invalid": problem.get("detail") or word}
        return Verdict(words.get(word, word.removeprefix("reward-").replace("-", "_")))
    return Verdict(is_repeat=outcome["receipt"].get("is_repeat", False))
