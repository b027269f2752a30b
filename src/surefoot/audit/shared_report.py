"""The result of an audit over shards that share one floor."""

from dataclasses import dataclass

from surefoot.audit.audit_report import Report


@dataclass(frozen=True)
class SharedReport:
    """The result of an audit over shards.

    Attributes
    ----------
    hub : Report
        Of the chain where they meet.
    shards : dict of str to Report
        Of the chain of each, as far as its journal was given.
    missing : tuple of str
        Shards whose journal was not given: their rounds are taken as they were handed in.

    Examples
    --------
    >>> SharedReport.__name__
    'SharedReport'
    """

    hub: Report
    shards: dict[str, Report]
    missing: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether everything fits, and no journal is missing."""
        return not self.missing and all(report.is_clean for report in (self.hub, *self.shards.values()))
