"""The command line: one command per verb, each a thin call into the library."""

import os
import re
import sys
import threading
from importlib import metadata

# Here, and not beside typer, which a base install lacks.
# Every command, with the module that defines it, as a function or a Typer, and the extra that brings its packages.
COMMANDS = {
    "reproduce": ("simulations", "simulation"),
    "simulate": ("simulations", "simulation"),
    "plan": ("simulations", "simulation"),
    "audit": ("audit", "simulation"),
    "serve": ("service", "service"),
    "demo": ("service", "service"),
    "replay": ("logs", "replay"),
    "fit-baseline": ("logs", "replay"),
    "experiment": ("experiment", "simulation"),
    "reward": ("experiment", "replay"),
    "config": ("service", "service"),
    "backup": ("journals", "service"),
    "restore": ("journals", "service"),
    "move": ("journals", "service"),
    "token": ("service", "service"),
}
INTERRUPTED = 130  # as shells say it of a program that Ctrl-C ended
SIMULATING = "surefoot-simulation"  # how names of threads begin that play runs
CONTINUED = ("reproduce", "simulate", "move")  # which keep what they have done


def main() -> None:
    """Run the command line; errors of this package end it with their message and exit code 2."""
    from surefoot import __version__
    from surefoot.errors import SurefootError

    # Before all else, since the base install has no typer.
    if sys.argv[1:] == ["--version"]:
        print(__version__)
        return
    try:
        from surefoot.cli.commands import app

        app()
    except ModuleNotFoundError as error:
        _, extra = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "", ("", "simulation"))
        lacks = sorted({(error.name or "one of them").partition(".")[0], *_not_installed(extra)})
        verb = "is" if len(lacks) == 1 else "are"
        hint = f"this needs a few more packages: pip install 'surefoot[{extra}]' ({', '.join(lacks)} {verb} missing)"
        print(f"surefoot: {hint}", file=sys.stderr)
        sys.exit(2)
    except (SurefootError, ImportError) as error:
        print("\n".join([f"surefoot: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        sys.exit(2)
    except (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        what = error if error.filename is None else f"`{error.filename}`: {error.strerror}"
        print(f"surefoot: A file that was named cannot be used: {what}.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(_interrupted())
    except SystemExit as end:  # what typer makes of Ctrl-C, without a word
        if end.code == INTERRUPTED:
            _interrupted()
        raise


def _not_installed(extra: str) -> set[str]:
    """The packages of an extra that are not installed, under the names by which Python imports them."""
    try:
        required = metadata.requires("surefoot") or []
    except metadata.PackageNotFoundError:  # a folder of sources, which says nothing of what it needs
        return set()
    brought = re.compile(rf"([\w-]+).*\bextra == ['\"]{extra}['\"]")
    names = {match[1] for one in required if (match := brought.match(one))}
    installed = {one.name.lower().replace("_", "-") for one in metadata.distributions()}
    return {name.replace("-", "_") for name in names - installed}


def _interrupted() -> int:
    is_continued = len(sys.argv) > 1 and sys.argv[1] in CONTINUED
    then = "the same command continues where this one stopped." if is_continued else "the same command starts over."
    print(f"\nsurefoot: interrupted; {then}", file=sys.stderr)
    if any(thread.name.startswith(SIMULATING) for thread in threading.enumerate()):
        # Python would wait for the chunks that threads have begun: minutes.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    return INTERRUPTED
