"""The gallery: one page for each script of `examples/`, with its picture and its code."""

import ast
from collections.abc import Iterator
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
PICTURES = EXAMPLES / "pictures"


def scripts() -> list[Path]:
    """The examples, by name."""
    return sorted(path for path in EXAMPLES.glob("*.*") if path.suffix in (".py", ".mjs") and path.stem[0] != "_")


def pictures() -> list[Path]:
    """What the examples drew."""
    return sorted(PICTURES.glob("*.svg"))


def address(file: str) -> str:
    """The page of a file of `examples/`."""
    return "gallery/index.md" if file == "README.md" else f"gallery/{Path(file).stem}.md"


def pages() -> Iterator[tuple[str, str]]:
    """The overview and a page for each example: their files, and their Markdown."""
    index = (EXAMPLES / "README.md").read_text()
    for script in scripts():
        index = index.replace(f"({script.name})", f"({script.stem}.md)")
        yield address(script.name), page(script)
    yield address("README.md"), index


def page(script: Path) -> str:
    """Title and words of the docstring, the picture, and the code."""
    title, _, words = (ast.get_docstring(ast.parse(script.read_text())) or script.stem).partition("\n")
    code = script.read_text().partition('"""\n\n')[2]
    shown = f"![{title}](pictures/{script.stem}.svg)\n\n" if (PICTURES / f"{script.stem}.svg").exists() else ""
    return f"# {title.rstrip('.')}\n\n{words.strip()}\n\n{shown}`examples/{script.name}`\n\n```python\n{code}```\n"
