"""What MkDocs does not do by itself: pages made from the code, from `examples/` and from files beside `docs/`."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.tools import gallery, reference

ROOT = Path(__file__).parents[2]
# Files at the top of the repository, and the pages that they become.
TOP = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
PROMPTED = re.compile(r"^```python(?=\n>>> )", flags=re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the pages of gallery and reference in the navigation."""
    filled = {
        "Gallery": ["gallery/index.md", *(gallery.address(script.name) for script in gallery.scripts())],
        "Reference": ["reference/index.md", "reference/http.md", *map(reference.address, reference.modules())],
    }
    for part in config.nav or []:
        part.update({title: filled[title] for title in part if title in filled})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that no file of `docs/` holds."""
    made = [*reference.pages(), *gallery.pages(), *((page, (ROOT / name).read_text()) for name, page in TOP.items())]
    for address, text in made:
        files.append(File.generated(config, address, content=text))
    for picture in gallery.pictures():
        files.append(File.generated(config, f"gallery/pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Prompts are highlighted as such, and links to files outside of `docs/` lead to the pages made of them."""
    here = Path(page.file.src_uri).parent
    return LINK.sub(lambda found: moved(found[1], here), PROMPTED.sub("```pycon", markdown))


def moved(link: str, here: Path) -> str:
    """Where a link of the repository leads on the site, seen from the folder of a page."""
    up = "../" * len(here.parts)
    if here == Path() and link in TOP.values():
        return link
    name = link.removeprefix("../" * (len(here.parts) + 1))
    if name in TOP and name != link:
        return up + TOP[name]
    if name.startswith("examples/") and name != link:
        return up + gallery.address(name.removeprefix("examples/"))
    if here == Path() and link.startswith("docs/"):  # of a file at the top
        return link.removeprefix("docs/")
    return link
