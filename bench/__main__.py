"""`python -m bench` measures everything; the exit code tells whether every bar holds."""

import sys

from bench import core, replay, simulation

sys.exit(0 if all([core.main(), simulation.main(), replay.main()]) else 1)
