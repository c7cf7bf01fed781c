# SPDX-License-Identifier: Apache-2.0
"""What the compiled part asks of NumPy beyond plain buffers: dtypes of ml_dtypes, packed elements, strings."""

import operator

import numpy as np

try:
    import ml_dtypes
except ImportError:  # models with such dtypes say so when they are met
    ml_dtypes = None

# Names as in grt_dtype_name -> (ml_dtypes' name, bits).
_EXTENDED = {
    "bfloat16": ("bfloat16", 16), "float8e4m3fn": ("float8_e4m3fn", 8), "float8e4m3fnuz": ("float8_e4m3fnuz", 8),
    "float8e5m2": ("float8_e5m2", 8), "float8e5m2fnuz": ("float8_e5m2fnuz", 8), "float8e8m0": ("float8_e8m0fnu", 8),
    "uint4": ("uint4", 4), "int4": ("int4", 4), "float4e2m1": ("float4_e2m1fn", 4), "uint2": ("uint2", 2), "int2": ("int2", 2),
}
_PLAIN = ["float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool", "float16", "float64", "uint32", "uint64", "complex64",
          "complex128"]
# As ONNX numbers them.
_NUMBERS = {name: number for number, name in enumerate(
    ["float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32", "uint64", "complex64",
     "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0",
     "uint2", "int2"], 1)}
_STORAGE = {16: np.dtype(np.uint16), 8: np.dtype(np.uint8)}


def _extended_dtype(name):
    """ml_dtypes' dtype for one of ours; None if it is not there."""
    kind = getattr(ml_dtypes, _EXTENDED[name][0], None)
    return None if kind is None else np.dtype(kind)


_NAMES = {_extended_dtype(name): name for name in _EXTENDED if _extended_dtype(name) is not None}


def element_dtypes():
    """name -> (dtype of the memory that the library uses, dtype that users see instead). Packed elements have no such memory, and no
    array is made of what NumPy cannot name."""
    table = {name: (np.dtype(name), None) for name in _PLAIN}
    for name, (_, bits) in _EXTENDED.items():
        seen = _extended_dtype(name)
        table[name] = (_STORAGE[bits] if bits >= 8 and seen is not None else None, seen)
    return table


def missing_dtype(name):
    raise ImportError(f"NumPy has no {name}, ml_dtypes has: pip install 'ml_dtypes>=0.5'")


def numpy_dtype(name):
    """The NumPy dtype in which the library's `name` comes and goes: np.dtype(object) for strings."""
    if name == "string":
        return np.dtype(object)
    if name not in _EXTENDED:
        return np.dtype(name)
    return _extended_dtype(name) or missing_dtype(name)


def _packed(array, bits):
    """Elements of 4 or 2 bits, one to a byte in NumPy, low bits first and padded to whole bytes."""
    per_byte = 8 // bits
    flat = array.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    return np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8)


def unpack_output(data, name, shape):
    bits = _EXTENDED[name][1]
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    flat = (np.frombuffer(data, np.uint8)[:, None] >> shifts & np.uint8((1 << bits) - 1)).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    return flat.view(numpy_dtype(name)).reshape(shape)


def string_output(items, shape):
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def map_output(keys, values):
    return dict(zip(keys.tolist(), values.tolist()))


def prepare_map(value, keys, values):
    """(keys, values) of a dict for a map whose dtypes are these. Keys are int or str as the map has them; values keep a dtype of theirs."""
    if not isinstance(value, dict):
        raise TypeError(f"a map is a dict, not {type(value).__name__}")
    pairs = list(value.items())
    names, items = [name for name, _ in pairs], [item for _, item in pairs]
    own = [item.dtype for item in items if hasattr(item, "dtype")]
    if values != "string":
        items = np.asarray(items, np.result_type(*own) if own else numpy_dtype(values))
    return string_output(names, (-1,)) if keys == "string" else np.array([operator.index(name) for name in names], np.int64), items


def _bytes(item):
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "surrogateescape")
    raise TypeError(f"elements of string tensors are str or bytes, not {type(item).__name__}")


def _as_array(value, wanted):
    """Things without a dtype take the model's."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        return np.require(np.from_dlpack(value), requirements="C")
    if isinstance(value, np.generic) or hasattr(value, "__array__"):
        return np.asarray(value)
    return np.asarray(value, None if wanted == "none" else numpy_dtype(wanted))


def prepare_input(value, wanted):
    """(object with a plain buffer, number of its dtype, dims) for what is no dense buffer of NumPy's own dtypes. Strings are a list of
    bytes. Memory is shared where it can be."""
    array = _as_array(value, wanted)
    dims = tuple(array.shape)
    if array.dtype.kind in "OUST":
        return [_bytes(item) for item in array.reshape(-1).tolist()], _NUMBERS["string"], dims
    if array.dtype in _NAMES:
        name = _NAMES[array.dtype]
        bits = _EXTENDED[name][1]
        if not array.flags.c_contiguous:
            array = np.require(array, requirements="C")
        return _packed(array, bits) if bits < 8 else array.view(_STORAGE[bits]), _NUMBERS[name], dims
    if array.dtype.name not in _NUMBERS:
        raise TypeError(f"arrays of {array.dtype} are no tensors")
    array = np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
    return array, _NUMBERS[array.dtype.name], dims
