"""The error for what the service refused."""

from typing import Any

from surefoot.errors import SurefootError


class ServiceError(SurefootError):
    """A request that the service refused, or could not answer.

    Parameters
    ----------
    message : str
        What went wrong, for people.
    type : str
        The stable type of the problem, such as "/problems/invalid"; "" if the service was not reached.
    status : int
        The HTTP status; 0 if there is none.
    problem : dict, optional
        The whole problem document.

    Examples
    --------
    >>> ServiceError("There is no such experiment", type="/problems/unknown-experiment", status=404).status
    404
    """

    def __init__(self, message: str, *, type: str = "", status: int = 0, problem: dict[str, Any] | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.type, self.status, self.problem = type, status, problem or {}
