#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes type_parameters.def beside itself: which inputs of an operator share a type parameter, from the schemas of the
standard and, for operators of com.microsoft and those that never became standard, of ONNX Runtime.
test_type_parameters.c compares the rows of graph/ops/ with it.

usage: type_parameters.py    (pip install onnx onnxruntime)
"""
import collections
import pathlib

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as peer

# name: the parameter's, None for a type that is fixed; repeated: of any number of inputs.
Input = collections.namedtuple("Input", "name repeated")


def given(type_text, option, homogeneous):
    """What a schema says of one input."""
    repeated = str(option).endswith("Variadic")
    fixed = "(" in type_text or (repeated and not homogeneous)
    return Input(None if fixed else type_text, repeated)


def statement(inputs):
    """As rows state it: graph/ir/op.h, op_row.types."""
    uses = collections.Counter(i.name for i in inputs)
    words = []
    for i in inputs:
        shared = i.name and (uses[i.name] > 1 or i.repeated)
        words.append(i.name + ("..." if i.repeated else "") if shared else "-")
    while words and words[-1] == "-":
        words.pop()
    return " ".join(words)


def forms():
    """(domain, operator): {version: statement}"""
    found = collections.defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found[schema.domain, schema.name][schema.since_version] = statement(
                [given(i.type_str, i.option, i.is_homogeneous) for i in schema.inputs])
    standard = set(found)
    for schema in peer.get_all_operator_schema():
        if schema.domain in ("", "com.microsoft") and (schema.domain, schema.name) not in standard:
            found[schema.domain, schema.name][schema.since_version] = statement(
                [given(i.typeStr, i.option, i.isHomogeneous) for i in schema.inputs])
    return found


lines = []
for (domain, name), versions in sorted(forms().items()):
    before = None
    for version, text in sorted(versions.items()):
        if text != before:
            lines.append(f'TYPES("{domain}", "{name}", {version}, "{text}")')
        before = text
pathlib.Path(__file__).with_suffix(".def").write_text(
    f"""/* SPDX-License-Identifier: Apache-2.0 */
/* TYPES(domain, operator, version, types): which inputs share a type parameter, as op_row.types says it, from this version of
 * the operator on. Written by tests/unit/type_parameters.py from the schemas of onnx {onnx.__version__} and onnxruntime
 * {onnxruntime.__version__}. */
""" + "\n".join(lines) + "\n")
