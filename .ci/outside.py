"""For mdBook: links that leave the book name the file instead, since the site has its pages alone, and links to the page of a
folder go to its index.

mdBook starts it with `supports HTML`, then with a context and a book on standard input, and reads the book that it prints.
"""

import json
import posixpath
import re
import sys


def inside(chapter: dict) -> str:
    folder = posixpath.dirname(chapter["path"] or "")

    def written(link: re.Match) -> str:
        text, target = link.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target.split("#")[0]))
        if "://" in target or target.startswith("#"):
            return link[0]
        if path.startswith("docs/"):
            return link[0].replace("README.md", "index.md")
        return f"{text} (`{path}`)"

    return re.sub(r"(?<!!)\[([^][]*)\]\(([^()\s]+)\)", written, chapter["content"])


def walk(items: list) -> None:
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            chapter = item["Chapter"]
            chapter["content"] = inside(chapter)
            walk(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(sys.argv[2] != "html")
_, book = json.load(sys.stdin)
walk(book.get("items") or book["sections"])
json.dump(book, sys.stdout)
