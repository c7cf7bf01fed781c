# SPDX-License-Identifier: Apache-2.0
"""graphrt.inspect: what a file is, without running it."""

from ._core import Model


def inspect(model, **options):
    """What a model is: a dict of `inputs`, `outputs` (lists of ValueInfo), `metadata` (what the model says
    of itself), `steps` (op, name, detail, flops of each) and `info` (nodes,
    parameters, weights_bytes, arena_bytes, flops, producer, opset, ...).

    Args:
        model: path of a plan or ONNX model, its bytes, or a graphrt.Model.
        **options: as graphrt.Model has them.
    Raises: FileError, InvalidModel, InvalidPlan, Unsupported, Untrusted.
    """
    opened = model if isinstance(model, Model) else Model(model, **options)
    return {"inputs": opened.inputs, "outputs": opened.outputs, "metadata": opened.metadata, "steps": opened.steps,
            "info": opened.info}
