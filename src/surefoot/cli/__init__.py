"""The command line: one command per verb, each a thin call into the library."""

import sys

EXTRA = "The command line needs a few more packages: pip install 'surefoot[simulation]'"


def main() -> None:
    """Run the command line; errors of this package end it with their message and exit code 2."""
    try:
        from surefoot.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"{EXTRA} ({error.name} is missing)")
    from surefoot.errors import SurefootError

    try:
        app()
    except SurefootError as error:
        print(f"surefoot: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nsurefoot: interrupted; the same command continues where this one stopped.", file=sys.stderr)
        sys.exit(130)
