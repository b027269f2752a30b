"""The option that says where the work runs."""

from typing import Annotated

import typer

OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Where the work runs: local[:threads], ray[://host:port], dask://host:port or gpu[:index]; "
        "the bits are the same.",
    ),
]
