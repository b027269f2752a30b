"""`python -m bench` measures everything; the exit code tells whether every bar holds."""

import sys

from bench import core

sys.exit(0 if core.main() else 1)
