"""What the addresses of routes hold."""

from typing import Annotated

from litestar.params import PathParameter, QueryParameter

ExperimentName = Annotated[str, PathParameter(description="The experiment's name.", max_length=200)]
DecisionId = Annotated[str, PathParameter(description="The decision's id.", max_length=200)]
EventId = Annotated[str, PathParameter(description="The event's id.", max_length=200)]
Version = Annotated[str, PathParameter(description="Any version: they mean the same here.", max_length=40)]
ProblemWord = Annotated[str, PathParameter(description="The last word of a problem's type.", max_length=100)]
Limit = Annotated[int, QueryParameter(description="How many at most.", ge=1, le=100)]
