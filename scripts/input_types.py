#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes graph/ir/input_types.def: the dtypes that each input of an operator may have and which inputs share a type parameter,
from the schemas of the standard and, for operators of com.microsoft and those that never became standard, of ONNX Runtime.

usage: scripts/input_types.py [--check]    (pip install onnx onnxruntime)
--check writes nothing; it fails if the file is not what these packages say. Beside another onnxruntime only the standard's
operators are compared; beside another onnx none, and it exits with 77 (skipped).
"""
import collections
import pathlib
import re
import sys
import textwrap

try:
    import onnx
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as peer
except ImportError as missing:
    print(f"input_types: skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "graph/ir/input_types.def"

# Older forms whose inputs share types otherwise than those of the newest form, which alone is asked, and what becomes of it.
OLDER_FORMS = {
    "BatchNormalization": "one type for all: mixed ones mean the same in the newest form",
    "Clip": "limits were attributes, which get the input's type",
    "DequantizeLinear": "another name",
    "Pad": "the constant was an attribute, which gets the input's type",
    "Pow": "one type for both: mixed ones mean the same in the newest form",
    "QuantizeLinear": "one type for input and scale: mixed ones mean the same in the newest form",
    "QLinearMatMul": "scales were all float32",
    "Slice": "limits were attributes, which get one type",
    "Split": "sizes had the input's type: mixed ones mean the same in the newest form",
    "Tile": "another form, whose numbers had the input's type",
}

# Dtypes beyond the schemas that exporters write and that have one meaning: of an input, by operator and name.
BEYOND = {
    ("ai.onnx.ml", "ZipMap", "X"): {"DOUBLE"},  # skl2onnx, of classifiers in float64
}

# parameter: the type parameter's name, None for a type that is fixed; repeated: of any number of inputs.
Input = collections.namedtuple("Input", "name parameter repeated dtypes")


def dtype_sets():
    """Sets of dtypes by the names that the table is written in, larger ones first: those of tensor.h, and single ones."""
    numbers = re.findall(r"X\((\w+), (\d+), \d+, \"", (ROOT / "include/graphrt/tensor.h").read_text())
    sets = {}
    for name, text in re.findall(r"#define GRT_SET_(\w+)\s+(.*)",
                                 (ROOT / "src/base/tensor.h").read_text().replace("\\\n", " ")):
        sets[name] = {word for word in re.findall(r"GRT_BIT\((\w+)\)", text)}
        sets[name].update(*(sets[word] for word in re.findall(r"GRT_SET_(\w+)", text)))
    ordered = dict(sorted(sets.items(), key=lambda item: -len(item[1])))
    return ordered | {name: {name} for name, _ in numbers}


SETS = dtype_sets()


def tensors(types):
    """The dtypes of what are tensors among a schema's types. Unknown ones are left out: no value here can have them."""
    names = (re.fullmatch(r"tensor\((\w+)\)", text) for text in types)
    return {name[1].upper() for name in names if name and name[1].upper() in SETS}


def given(name, type_text, option, homogeneous, types):
    """What a schema says of one input."""
    repeated = str(option).endswith("Variadic")
    fixed = "(" in type_text or (repeated and not homogeneous)
    return Input(name, None if fixed else type_text, repeated, tensors(types))


def words(dtypes):
    """A set as the table says it. 0: no tensor, or any."""
    left, found = set(dtypes), []
    for name, members in SETS.items():
        if members and members <= left:
            found.append(name)
            left -= members
    return " | ".join(found) or "0"


def shared(inputs):
    """The type parameter of each input, where another one or a repetition has it too, else ""."""
    uses = collections.Counter(i.parameter for i in inputs)
    return [i.parameter if i.parameter and (uses[i.parameter] > 1 or i.repeated) else "" for i in inputs]


def merged(operator, forms):
    """The inputs of the newest form, with the dtypes that any form allows: an older one may lack the newer types and a newer
    one may drop some. An older form that gave a number the data's type (Split, Tile) meant another thing."""
    newest = forms[max(forms)]
    names = [i.name for i in newest]
    own = [not parameter for parameter in shared(newest)]
    dtypes = [set(i.dtypes) for i in newest]
    for form in forms.values():
        for position, (i, parameter) in enumerate(zip(form, shared(form))):
            at = names.index(i.name) if i.name in names else position
            if at < len(dtypes) and not (own[at] and parameter):
                dtypes[at] |= i.dtypes
    return [i._replace(dtypes=found | BEYOND.get((*operator, i.name), set())) for i, found in zip(newest, dtypes)]


def schemas():
    """(domain, operator): {version: inputs}"""
    found = collections.defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found[schema.domain, schema.name][schema.since_version] = [
                given(i.name, i.type_str, i.option, i.is_homogeneous, i.types) for i in schema.inputs]
    standard = set(found)
    for schema in peer.get_all_operator_schema():
        if schema.domain in ("", "com.microsoft") and (schema.domain, schema.name) not in standard:
            found[schema.domain, schema.name][schema.since_version] = [
                given(i.name, i.typeStr, i.option, i.isHomogeneous, i.types) for i in schema.inputs]
    return found


def check_older_forms(operator, forms):
    """Stops at an older form that shares types in another way, unless that is known."""
    newest = shared(forms[max(forms)])
    for version, form in forms.items():
        old = shared(form)
        size = max(len(old), len(newest))
        if old + [""] * (size - len(old)) != newest + [""] * (size - len(newest)) and operator not in OLDER_FORMS:
            sys.exit(f"input_types: {operator} of version {version} shares types as {old}, the newest form as {newest}: "
                     "decide what becomes of it and say so in OLDER_FORMS")


def line(domain, operator, inputs):
    items = [f'{"INPUTS" if i.repeated else "INPUT"}("{parameter}", {words(i.dtypes)})'
             for i, parameter in zip(inputs, shared(inputs))]
    whole = ", ".join([f'OPERATOR("{domain}"', f'"{operator}"'] + [item.replace(" ", "\0") for item in items]) + ")"
    return textwrap.fill(whole, 110, subsequent_indent="    ", break_long_words=False,
                         break_on_hyphens=False).replace("\0", " ")


def table():
    lines = []
    for (domain, operator), forms in sorted(schemas().items()):
        check_older_forms(operator, forms)
        if forms[max(forms)]:
            lines.append(line(domain, operator, merged((domain, operator), forms)))
    return f"""/* SPDX-License-Identifier: Apache-2.0 */
/* OPERATOR(domain, operator, inputs...), sorted. INPUT(type parameter, dtypes): inputs of one type parameter have one dtype; ""
 * is a type of its own. INPUTS(...): this and all further inputs. The inputs are those of the newest form, the dtypes those
 * that any form allows; 0 is any. Written by scripts/input_types.py from the schemas of {sources()}. */
""" + "\n".join(lines) + "\n"


def sources():
    return f"onnx {onnx.__version__} and onnxruntime {onnxruntime.__version__}"


def standard_part(text):
    """The table's entries of operators that the standard has."""
    standard = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    entries = (entry.strip() for entry in re.split(r"\n(?=OPERATOR)", text)[1:])
    return [entry for entry in entries if re.match(r'OPERATOR\("(.*?)", "(.*?)"', entry).groups() in standard]


def check():
    old, new = TABLE.read_text(), table()
    if f"onnx {onnx.__version__} " not in old:
        print(f"input_types: skipped: {TABLE.name} was not written from {sources()}")
        sys.exit(77)
    if sources() not in old:
        print(f"input_types: the standard's operators only, as {TABLE.name} was not written from onnxruntime {onnxruntime.__version__}")
        old, new = standard_part(old), standard_part(new)
    if old != new:
        sys.exit(f"input_types: {TABLE.name} is not what {sources()} say; run scripts/input_types.py")


if sys.argv[1:] == ["--check"]:
    check()
else:
    TABLE.write_text(table())
