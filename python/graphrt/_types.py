# SPDX-License-Identifier: Apache-2.0
"""Records that the library's descriptions become."""

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

# What Session.run takes: arrays by name, by position, or the only one. An array is anything with the buffer protocol or DLPack.
Inputs = Union[Dict[str, Any], Sequence[Any], Any]


class ValueInfo(NamedTuple):
    """An input or output of a model.

    Attributes:
        name: as the model has it.
        kind: "tensor", "sequence", "optional" or "map".
        element_kind: what an optional holds; "map" of a sequence of maps; otherwise equal to kind.
        dtype: of the tensor, of the tensors in it, or of the values of maps: "float32", "int64", "string", "bfloat16", ...
        shape: a number for a fixed dim, its name or expression ("batch", "2*seq") for a symbolic one; None if the rank is unknown.
        has_default: an input that may be left out.
        keys: dtype of the keys of maps, "int64" or "string"; None of all else.
    """

    name: str
    kind: str
    element_kind: str
    dtype: str
    shape: Optional[Tuple[Union[int, str], ...]]
    has_default: bool
    keys: Optional[str] = None

    def __str__(self):
        """As `graphc inspect` says it: "image: float32[Nx1x8x8]"."""
        around = ("optional " if self.kind == "optional" else "") + \
            ("sequence of " if "sequence" in (self.kind, self.element_kind) else "")
        if self.keys:
            return f"{self.name}: {around}map from {self.keys} to {self.dtype}"
        dims = " of unknown rank" if self.shape is None else f"[{'x'.join(map(str, self.shape))}]"
        return f"{self.name}: {around}{self.dtype}{dims}"


class Finding(NamedTuple):
    """One thing that graphrt.check found.

    Attributes:
        status: "INVALID_MODEL" or "UNSUPPORTED"; "OK" for a warning, whose message says what was assumed.
        node: name of the node, or "".
        op: "domain::Op", or "".
        opset: of the op.
        message: with dtypes, shapes, and the nearest supported form.
    """

    status: str
    node: str
    op: str
    opset: int
    message: str
