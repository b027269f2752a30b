"""The gallery: one page for each script of `examples/`, with its picture, what it prints, and its code.

`python -m docs.tools.gallery` runs the scripts and keeps what they drew and printed; with names, those alone.
"""

import ast
import contextlib
import io
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURES = EXAMPLES / "pictures"


def scripts() -> list[Path]:
    """The examples, by name."""
    return sorted(EXAMPLES.glob("*.py"))


def pictures() -> list[Path]:
    """What the examples drew."""
    return sorted(PICTURES.glob("*.svg"))


def address(file: str) -> str:
    """The page of a file of `examples/`."""
    return "gallery/index.md" if file == "README.md" else f"gallery/{Path(file).stem}.md"


def pages() -> Iterator[tuple[str, str]]:
    """The overview and a page for each example: their files, and their Markdown."""
    index = (EXAMPLES / "README.md").read_text().replace("](../docs/", "](../")
    for script in scripts():
        index = index.replace(f"({script.name})", f"({script.stem}.md)")
        yield address(script.name), page(script)
    yield address("README.md"), index


def page(script: Path) -> str:
    """Title and words of the docstring, the picture, what is printed, and the code; of a client beside it, too."""
    source = script.read_text()
    title, _, words = (ast.get_docstring(ast.parse(source)) or script.stem).partition("\n")
    parts = [f"# {title.rstrip('.')}", words.strip(), f"![{title}](pictures/{script.stem}.svg)"]
    parts += ["It prints:", f"```text\n{(PICTURES / f'{script.stem}.txt').read_text()}```"]
    client = script.with_suffix(".mjs")
    if client.exists():
        parts.append(f"`examples/{client.name}`\n\n```javascript\n{client.read_text()}```")
    code = source.partition('"""\n\n')[2]
    return "\n\n".join([*parts, f"`examples/{script.name}`\n\n```python\n{code}```"]) + "\n"


def run(script: Path, folder: Path) -> str:
    """Runs a script in a folder, where its picture goes; what it printed."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    from surefoot.reports.figures import SERIES, STYLE, slim

    look: dict[Any, Any] = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": "surefoot", "savefig.bbox": "tight"}
    look["axes.prop_cycle"] = cycler(color=list(SERIES))
    printed, before = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with plt.rc_context(look), contextlib.redirect_stdout(printed):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(before)
        plt.close("all")
    picture = folder / f"{script.stem}.svg"
    picture.write_text(slim(picture.read_text("utf-8")), encoding="utf-8")
    return printed.getvalue()


def main(*chosen: str) -> None:
    """Runs them all, or those that are named."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # matplotlib writes the date into a picture otherwise
    PICTURES.mkdir(exist_ok=True)
    for script in scripts():
        if not chosen or script.stem in chosen:
            (PICTURES / f"{script.stem}.txt").write_text(run(script, PICTURES))


if __name__ == "__main__":
    main(*sys.argv[1:])
