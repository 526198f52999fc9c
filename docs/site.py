"""Builds the documentation as a site with search, and follows every link of it.

    python3 docs/site.py [FOLDER]        needs mdbook; FOLDER is target/book unless given

The pages link to each other, and to files of the repository, as they lie there. The site therefore has the same folders:
the pages that docs/SUMMARY.md lists, notebooks as pages, and every other file that a page links to.
"""

import base64
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


def notebook_page(path: Path, out: Path) -> str:
    """A notebook as Markdown, with the outputs that it holds; pictures are written beside it."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for place, output in enumerate(cell["outputs"]):
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{path.stem}-{number}-{place}.png"
                (out.parent / picture).write_bytes(base64.b64decode("".join(data["image/png"])))
                parts.append(f"![{''.join(data.get('text/plain', 'A figure'))}]({picture})")
            else:
                text = output.get("text") or data.get("text/plain") or []
                parts.append(f"```text\n{''.join(text).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def gather(pages: Path) -> None:
    """The pages of docs/SUMMARY.md and what they link to, with the folders that they have in the repository."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    listed = {os.path.normpath(os.path.join("docs", link)) for link in LINK.findall(summary)}
    rewritten = LINK.sub(lambda link: f"]({os.path.normpath(os.path.join('docs', link[1]))}", summary)
    (pages / "SUMMARY.md").write_text(rewritten.replace(".ipynb)", ".md)"))
    for name in sorted(listed):
        out = pages / name
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".ipynb":
            text = notebook_page(ROOT / name, out)
            out = out.with_suffix(".md")
        else:
            text = (ROOT / name).read_text()
        for link in LINK.findall(text):
            linked = os.path.normpath(os.path.join(os.path.dirname(name), link))
            if linked not in listed and (ROOT / linked).is_file() and not linked.endswith(".md"):
                (pages / linked).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / linked, pages / linked)
        out.write_text(text.replace(".ipynb)", ".md)"))


class Page(html.parser.HTMLParser):
    """The links of a page, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list) -> None:
        named = dict(attrs)
        self.anchors.update(named[key] for key in ("id", "name") if named.get(key))
        self.links += [named[key] for key in ("href", "src") if named.get(key)]


def dead_links(site: Path) -> list[str]:
    """The links of the site that lead nowhere within it."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or path.name in ("404.html", "print.html", "toc.html"):
                continue
            file = path if not url.path else path.parent / urllib.parse.unquote(url.path)
            file = Path(os.path.normpath(file / "index.html" if file.is_dir() else file))
            anchor = urllib.parse.unquote(url.fragment)
            lost = not file.is_relative_to(site) or not file.is_file()
            if lost or (anchor and file in pages and anchor not in pages[file].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead


def main() -> None:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/book").resolve()
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder)
        shutil.copyfile(ROOT / "book.toml", book / "book.toml")
        (book / "pages").mkdir()
        gather(book / "pages")
        subprocess.run(["mdbook", "build", "--dest-dir", site, book], check=True)
    dead = dead_links(site)
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, no dead links")


if __name__ == "__main__":
    main()
