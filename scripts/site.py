#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents as a site of plain HTML files: README, docs/, references of C and Python, man pages. Wants cmark-gfm, and scdoc and mandoc for
the man pages.

usage: scripts/site.py DIRECTORY

Ends with 1 if a link between the pages leads nowhere, 77 if a program is missing.
"""
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import reference

TOP = Path(__file__).resolve().parent.parent
# What the menu shows, in its order; other documents are reached by links.
MENU = [("README", "Overview"), ("docs/guide", "Guide"), ("docs/c", "C"), ("docs/cpp", "C++"), ("docs/python", "Python"), ("docs/onnxruntime", "From ONNX Runtime"), ("docs/triton", "Triton"),
        ("docs/ray", "Ray"), ("docs/operator", "Operating it"), ("docs/services", "Services"), ("docs/cuda", "GPUs"), ("docs/models", "Models"),
        ("docs/quantize", "Quantising"), ("docs/reference-c", "C reference"), ("docs/reference-python", "Python reference"),
        ("docs/man/graphc.1", "graphc"), ("docs/man/graphrun.1", "graphrun"), ("docs/README", "All documents"), ("docs/architecture", "Architecture"), ("CHANGELOG", "Changes")]
STYLE = """body{margin:0;display:flex;font:16px/1.5 sans-serif;color:#222}nav{flex:0 0 12em;padding:1em;background:#f4f4f4;min-height:100vh}
nav a{display:block;color:#222;text-decoration:none}nav a.here{font-weight:bold}main{padding:1em 2em;max-width:56em;min-width:0}
pre{background:#f4f4f4;padding:.7em;overflow-x:auto}code{font-size:90%}table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}h4{margin-bottom:.2em}"""


def sources():
    """path without its suffix -> Markdown or, for man pages, scdoc."""
    pages = {}
    for path in [*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("docs/man/*.scd"), TOP / "python/README.md"]:
        pages[str(path.relative_to(TOP).with_suffix(""))] = path.read_text()
    pages["docs/reference-c"] = reference.c_reference()
    pages["docs/reference-python"] = reference.python_reference()
    return pages


def filtered(text, *command):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def slug(heading, used):
    """The anchor that GitHub gives to a heading."""
    base = name = re.sub(r"[^\w\- ]", "", html.unescape(re.sub(r"<.*?>", "", heading)).strip().lower()).replace(" ", "-")
    number = 0
    while name in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name)
    return name


def body_of(name, text):
    """HTML of a page, and its anchors."""
    if name.startswith("docs/man/"):
        return filtered(filtered(text, "scdoc"), "mandoc", "-T", "html", "-O", "fragment"), set()
    used = set()
    body = filtered(text, "cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough")
    return re.sub(r"<h([1-6])>(.*?)</h\1>", lambda h: f'<h{h[1]} id="{slug(h[2], used)}">{h[2]}</h{h[1]}>', body, flags=re.DOTALL), used


def linked(name, body, anchors, problems):
    """The body with links to other documents leading to their pages, and to files of the tree as they are named there."""
    here = os.path.dirname(name)

    def link(found):
        target, _, anchor = html.unescape(found[1]).partition("#")
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = os.path.normpath(os.path.join(here, target)) if target else name + ".md"
        page = re.sub(r"\.(md|scd)$", "", path)
        if page not in anchors:
            if not (TOP / path).exists():
                problems.append(f"{name}: {found[1]} leads nowhere")
            return f'href="#" title="{html.escape(path)}, in the source tree"'
        if anchor and anchor not in anchors[page] and not page.startswith("docs/man/"):
            problems.append(f"{name}: {page} has no heading #{anchor}")
        return f'href="{os.path.relpath(page, here or ".")}.html{"#" + anchor if anchor else ""}"'

    return re.sub(r'href="([^"]*)"', link, body)


def page_of(name, body, title):
    up = os.path.relpath(".", os.path.dirname(name) or ".")
    menu = "\n".join(f'<a href="{up}/{page}.html"{" class=here" if page == name else ""}>{label}</a>' for page, label in MENU)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>
<style>{STYLE}</style></head>
<body><nav>{menu}</nav><main>
{body}
</main></body></html>
"""


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    missing = [program for program in ("cmark-gfm", "scdoc", "mandoc") if not shutil.which(program)]
    if missing:
        print(f"site.py: not installed: {', '.join(missing)}", file=sys.stderr)
        return 77
    out, problems, pages = Path(arguments[0]), [], {}
    for name, text in sources().items():
        pages[name] = body_of(name, text)
    anchors = {name: used for name, (_, used) in pages.items()}
    problems += [f"the menu names {name}, which is not there" for name, _ in MENU if name not in pages]
    for name, (body, _) in pages.items():
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.DOTALL)
        path = out / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_of(name, linked(name, body, anchors, problems), re.sub(r"<.*?>", "", title[1]) if title else name))
    shutil.copyfile(out / "README.html", out / "index.html")
    print(*sorted(problems), sep="\n", end="\n" if problems else "")
    print(f"{len(pages)} pages in {out}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
