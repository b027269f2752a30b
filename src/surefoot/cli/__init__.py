"""The command line: one command per verb, each a thin call into the library."""

import sys

INTERRUPTED = 130  # as shells say it of a program that Ctrl-C ended
CONTINUED = ("reproduce", "simulate", "move")  # which keep what they have done


def main() -> None:
    """Run the command line; errors of this package end it with their message and exit code 2."""
    from surefoot import __version__
    from surefoot.errors import SurefootError

    # Before all else, since the base install has no typer.
    if sys.argv[1:] == ["--version"]:
        print(__version__)
        return
    extra = "simulation"
    try:
        # Within the try, since even typer may be missing: then the extra that brings it is named.
        from surefoot.cli.commands import COMMANDS, app

        extra = COMMANDS.get(sys.argv[1] if len(sys.argv) > 1 else "", extra)
        app()
    except ModuleNotFoundError as error:
        package = (error.name or "one of them").partition(".")[0]
        hint = f"this needs a few more packages: pip install 'surefoot[{extra}]' ({package} is missing)"
        print(f"surefoot: {hint}", file=sys.stderr)
        sys.exit(2)
    except SurefootError as error:
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


def _interrupted() -> int:
    is_continued = len(sys.argv) > 1 and sys.argv[1] in CONTINUED
    then = "the same command continues where this one stopped." if is_continued else "the same command begins anew."
    print(f"\nsurefoot: interrupted; {then}", file=sys.stderr)
    return INTERRUPTED
