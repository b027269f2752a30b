"""Everything surefoot raises on purpose.

Every message holds the rule, what came instead, and what to do. A call that raises has changed nothing.

SurefootError
 ├── ConfigError (ValueError)        a setting that no policy can run with
 ├── InputError (ValueError)         features, baselines or rewards that break a rule
 │    ├── AssumptionError            input that breaks an assumption the guarantee rests on
 │    ├── LogError                   a log that cannot be read, with its line
 │    └── EvidenceError              a question that a log cannot answer
 ├── DecisionError (LookupError)     a decision that is not this policy's, or was observed before
 ├── StateError (ValueError)         a saved state that cannot be restored
 ├── ProofError (ValueError)         a proof that does not hold
 └── SolverError (RuntimeError)      a numerical solver that gave no usable answer
"""


class SurefootError(Exception):
    """The base of every error of this package."""


class ConfigError(SurefootError, ValueError):
    """A setting that no policy can run with."""


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


class StateError(SurefootError, ValueError):
    """A saved state that cannot be restored."""


class ProofError(SurefootError, ValueError):
    """A proof whose pieces do not add up, or whose bounds its facts do not give."""


class SolverError(SurefootError, RuntimeError):
    """A numerical solver that gave no usable answer."""
