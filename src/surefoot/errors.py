"""Everything surefoot raises on purpose.

Every message holds the rule, what came instead, and what to do; a rule about one field has its name, alone, in the
first backticks, and `field` is that name. A call that raises has changed nothing, except that it keeps what contradicts
a declaration: an alarm stays on, and shards that met an older copy of their hub stay paused.

SurefootError
 ├── ConfigError (ValueError)        a setting that no policy can run with
 ├── MissingPackageError (ImportError)  a package that an extra of surefoot brings
 ├── InputError (ValueError)         features, baselines or rewards that break a rule
 │    ├── AssumptionError            input that breaks an assumption the guarantee rests on
 │    ├── LogError                   a log that cannot be read, with its line
 │    └── EvidenceError              a question that a log cannot answer
 ├── DecisionError (LookupError)     a decision that is not this policy's, or was observed before
 │    ├── DecisionConflictError      a decision's id that was used for another question
 │    └── DecisionSettledError       a decision whose reward has come, or whose window has closed
 ├── ModeError (ValueError)          a change of mode that an experiment does not allow
 ├── AlarmError (ValueError)         an answer to an alarm that is not on, or that this policy cannot follow
 ├── ReceiptError (ValueError)       a receipt that the journal does not hold any more
 ├── StateError (ValueError)         a saved state that cannot be restored
 ├── ProofError (ValueError)         a proof that does not hold
 ├── PolicyError (RuntimeError)      a policy of your own that failed in a simulation or a replay
 ├── WorkerError (RuntimeError)      workers that cannot be reached, or were lost too often
 ├── JournalError                    an event that the journal did not acknowledge, or cannot give back
 │    ├── JournalConflictError (ValueError)          a name or a key that is taken
 │    ├── JournalNotFoundError (LookupError)         an experiment or a journal that does not exist
 │    ├── JournalCorruptedError (ValueError)         events that are not what was written
 │    ├── JournalSchemaError (ValueError)            tables of another program, or of a newer surefoot
 │    ├── JournalBusyError (BlockingIOError)         another process or transaction holds what this one needs
 │    ├── JournalReadOnlyError (PermissionError)     a journal that may be read and not written
 │    ├── JournalFullError (OSError)                 no room for what was to be written
 │    ├── JournalUnavailableError (ConnectionError)  a journal that is closed, or a server that does not answer
 │    └── OutcomeUnknownError (ConnectionError)      written or not: only looking it up will tell
 └── SolverError (RuntimeError)      a numerical solver that gave no usable answer
"""

import re

FIRST_RULE, NAME = re.compile("`([^`]*)`"), re.compile(r"\b[A-Za-z_]\w*")


class SurefootError(Exception):
    """The base of every error of this package.

    Catch it to catch all of them; the tree is in the docstring of `surefoot.errors`.

    Examples
    --------
    >>> import surefoot
    >>> try:
    ...     surefoot.UCB(arms=1)
    ... except SurefootError as error:
    ...     print(type(error).__name__, isinstance(error, ValueError), error.field)
    ConfigError True arms
    """

    @property
    def field(self) -> str | None:
        """The argument or setting that the rule is about; None where it is about none, or about several."""
        rule = FIRST_RULE.search(str(self))
        names = set(NAME.findall(rule[1])) if rule else set[str]()
        return names.pop() if len(names) == 1 else None


class ConfigError(SurefootError, ValueError):
    """A setting that no policy can run with."""


class MissingPackageError(SurefootError, ImportError):
    """A package that is not installed; the message names the extra of surefoot that brings it."""


class InputError(SurefootError, ValueError):
    """Features, a baseline or a reward that break a rule."""


class AssumptionError(InputError):
    """Input that breaks an assumption on which the guarantee rests, such as a feature row longer than D."""


class LogError(InputError):
    """A log that cannot be read: a missing column, a truncated file, or more bad rows than allowed."""


class EvidenceError(InputError):
    """A question that a log cannot answer, such as the value of actions that it never could have played."""


class DecisionError(SurefootError, LookupError):
    """A decision that this policy did not make, or that was observed before."""


class DecisionConflictError(DecisionError):
    """A decision's id that was used for another question; the decision that was made stands."""


class DecisionSettledError(DecisionError):
    """A decision whose reward has come, or whose window has closed; what was learned of it stands."""


class ModeError(SurefootError, ValueError):
    """A change of mode that an experiment does not allow."""


class AlarmError(SurefootError, ValueError):
    """An answer to an alarm that is not on, or that this policy cannot follow."""


class ReceiptError(SurefootError, ValueError):
    """A receipt that the journal does not hold any more: it was rewritten, or an older copy was restored."""


class StateError(SurefootError, ValueError):
    """A saved state that cannot be restored."""


class ProofError(SurefootError, ValueError):
    """A proof whose pieces do not add up, or whose bounds its facts do not give."""


class PolicyError(SurefootError, RuntimeError):
    """A policy of your own that failed in a simulation or a replay: which one, in which run and round, and how."""


class WorkerError(SurefootError, RuntimeError):
    """Workers of a simulation or a replay that cannot be reached, were lost too often, or cannot be relied on."""


class SolverError(SurefootError, RuntimeError):
    """A numerical solver that gave no usable answer."""


class JournalError(SurefootError):
    """An event that the journal did not acknowledge, or cannot give back."""


class JournalConflictError(JournalError, ValueError):
    """A name or a key that is taken."""


class JournalNotFoundError(JournalError, LookupError):
    """An experiment or a journal that does not exist."""


class JournalCorruptedError(JournalError, ValueError):
    """Events that are not what was written: edited, missing, out of order, or on a damaged page."""


class JournalSchemaError(JournalError, ValueError):
    """Tables of another program, or of a newer surefoot."""


class JournalBusyError(JournalError, BlockingIOError):
    """Another process or transaction holds what this one needs."""


class JournalReadOnlyError(JournalError, PermissionError):
    """A journal that may be read and not written."""


class JournalFullError(JournalError, OSError):
    """No room for what was to be written; none of it was."""


class JournalUnavailableError(JournalError, ConnectionError):
    """A journal that is closed, or a server that does not answer; nothing was written."""


class OutcomeUnknownError(JournalError, ConnectionError):
    """Contact was lost while committing: written or not, only looking it up will tell."""
