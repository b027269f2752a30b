"""What the service refused, as it said it."""

from typing import Any

from surefoot.errors import SurefootError


class ServiceError(SurefootError):
    """A request that the service refused, or could not answer.

    type:    the stable type of the problem, such as "/problems/invalid"; "" where the service was not reached
    status:  the HTTP status, 0 where there is none
    problem: the whole problem document
    """

    def __init__(self, message: str, *, type: str = "", status: int = 0, problem: dict[str, Any] | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.type, self.status, self.problem = type, status, problem or {}
