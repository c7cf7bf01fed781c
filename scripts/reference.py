#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""References of the C and Python interfaces, as Markdown, out of the public headers' comments and the package's docstrings.

usage: scripts/reference.py c|python    print one
       scripts/reference.py --check     name public functions without a description or, in C, without the threads that may call them or how they fail
"""
import ast
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
HEADERS = ["graphrt", *sorted(path.stem for path in (TOP / "include/graphrt").glob("*.h") if path.stem != "graphrt")]
MODULES = {"graphrt": ["_core.pyi", "_pool.py", "_inspect.py", "_types.py"], "graphrt.ort": ["ort.py", "_ort_values.py"], "graphrt.backend": ["backend.py"],
           "graphrt.ray": ["ray.py"]}

# A comment that begins a line, or one declaration, up to the semicolon outside braces.
PIECE = re.compile(r"^/\*(?P<comment>.*?)\*/[ ]*\n|^(?P<define>#(?:[^\n]*\\\n)*[^\n]*\n)|"
                   r"^(?P<code>(?:typedef|struct|enum|static|GRT_API)\b(?:[^;{/]|/\*.*?\*/|\{(?:[^{}]|\{[^{}]*\})*\})*;[^\n]*\n)", re.DOTALL | re.MULTILINE)


def plain(comment):
    """The text of a comment without its stars."""
    return "\n".join(re.sub(r"^ ?\* ?", "", line).rstrip() for line in comment.strip().split("\n")).strip()


def declarations(text):
    """(description, [declarations]): what stands together under one comment. Sections have no declarations."""
    groups, position = [], 0
    for piece in PIECE.finditer(text):
        gap = text[position:piece.start()].strip("\n ")
        apart = "\n\n" in text[position:piece.start()] or text[max(0, piece.start() - 2):piece.start()] == "\n\n"
        position = piece.end()
        if piece["comment"] is not None:
            groups.append((plain(piece["comment"]), []))
        elif piece["code"] and not gap.endswith("\\"):
            if apart and groups and groups[-1][1]:
                groups.append(("", []))
            groups[-1][1].append(piece["code"].rstrip())
    return groups


def functions(code):
    return re.findall(r"GRT_API[^;(]*?\b(grt_\w+)\(", code)


def section_title(text):
    """The title of a section's comment, which is framed by lines of dashes."""
    framed = re.fullmatch(r"-+\n(.*?)\n-+", text, re.DOTALL)
    return framed and " ".join(framed[1].split())


def c_reference():
    out = ["# C reference\n", "Made from the comments of `<graphrt/graphrt.h>` and its parts. [C](c.md) is the introduction.\n"]
    for name in HEADERS:
        out.append(f"\n## `<graphrt/{name}.h>`\n")
        for text, codes in declarations((TOP / f"include/graphrt/{name}.h").read_text()):
            if text.startswith("SPDX") or text.startswith("IWYU") or not (text or codes):
                continue
            title = section_title(text)
            names = [f"`{function}`" for code in codes for function in functions(code)]
            names = names or [f"`{n}`" for code in codes for n in re.findall(r"^typedef (?:struct|enum) (\w+)", code)]
            if title:
                out.append(f"\n### {title}\n")
                continue
            if names:
                out.append(f"\n#### {', '.join(names)}\n")
            out += ["```c\n" + re.sub(r"GRT_API |GRT_MUST_USE ", "", "\n".join(codes)) + "\n```\n"] if codes else []
            out.append(escaped(text) + "\n")
    return "\n".join(out)


def escaped(text):
    """Comments and docstrings are plain text: what Markdown would take for markup stays as it is, and lines stay lines where they are
    indented."""
    text = re.sub(r"([*_<>`#|\[\]])", r"\\\1", text)
    return re.sub(r"\n( +)", lambda found: "  \n" + "&nbsp;" * len(found[1]), text)


def public(node):
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (not node.name.startswith("_") or node.name in (
        "__init__", "__call__"))


def signature(node):
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    kind = "property " if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list) else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{kind}{node.name}" + ("" if kind else f"({ast.unparse(node.args)})") + returns


def exported():
    """Names in __all__ of the package itself."""
    tree = ast.parse((TOP / "python/graphrt/__init__.py").read_text())
    return next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")


def python_things():
    """(module, node, members) of every public class and function."""
    for module, files in MODULES.items():
        seen = set()
        for file in reversed(files):  # graphrt.Pool is that of _pool.py
            for node in ast.parse((TOP / "python/graphrt" / file).read_text()).body:
                wanted = public(node) and node.name not in seen and (module != "graphrt" or node.name in exported())
                if wanted:
                    seen.add(node.name)
                    yield module, node, [m for m in node.body if public(m)] if isinstance(node, ast.ClassDef) else []


def python_reference():
    out, module = ["# Python reference\n", "Made from the docstrings. [Python](python.md) is the introduction.\n"], None
    for name, node, members in python_things():
        if name != module:
            out.append(f"\n## `{name}`\n")
            module = name
        out.append(f"\n### `{signature(node)}`\n\n{escaped(ast.get_docstring(node) or '')}\n")
        out += [f"\n#### `{signature(member)}`\n\n{escaped(ast.get_docstring(member) or '')}\n" for member in members]
    return "\n".join(out)


def statuses():
    """Names of what can go wrong."""
    return [name for name in re.findall(r"^    X\((\w+), \"", (TOP / "include/graphrt/status.h").read_text(), re.MULTILINE) if name != "OK"]


def lacking():
    """What --check finds. The thread rule may be that of a function before it under the same comment; releases have the general one."""
    failures = "|".join(["Errors: "] + [rf"\b{status}\b" for status in statuses()])
    for name in HEADERS:
        for text, codes in declarations((TOP / f"include/graphrt/{name}.h").read_text()):
            for code, function in [(code, function) for code in codes for function in functions(code)]:
                if text and re.match(r"GRT_API[^(]*\bgrt_status ", code) and not re.search(failures, text):
                    yield f"{name}.h: {function} does not say how it fails"
                if not text:
                    yield f"{name}.h: {function} has no description"
                elif "Threads:" not in text and not function.endswith("_release"):
                    yield f"{name}.h: {function} does not say which threads may call it"
    for module, node, members in python_things():
        for thing in [node, *members]:
            own = ast.get_docstring(thing) or (thing.name == "__init__" and ast.get_docstring(node))
            if not own and module != "graphrt.ort":  # whose calls are onnxruntime's
                yield f"{module}: {node.name if thing is node else node.name + '.' + thing.name} has no docstring"


def main(arguments):
    if arguments == ["--check"]:
        found = list(lacking())
        print(*found, sep="\n", end="\n" if found else "")
        return 1 if found else 0
    if arguments not in (["c"], ["python"]):
        print(__doc__, file=sys.stderr)
        return 2
    print(c_reference() if arguments == ["c"] else python_reference())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
