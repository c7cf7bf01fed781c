# SPDX-License-Identifier: Apache-2.0
"""Values of graphrt.ort: OrtValue, OrtDevice, IOBinding, and the names of their types."""

import numpy as np

from . import _arrays, _core
from ._errors import Error, InvalidArgument, Unsupported

_TENSOR_TYPES = {"float32": "float", "float64": "double"}


def _tensor_type(dtype):
    return f"tensor({_TENSOR_TYPES.get(dtype, dtype)})"


def _type_text(info):
    text = _tensor_type(info.dtype)
    if info.keys:
        text = f"map({info.keys},{text})"
    if "sequence" in (info.kind, info.element_kind):
        text = f"seq({text})"
    return f"optional({text})" if info.kind == "optional" else text


class OrtDevice:
    def __init__(self, device_type, device_id=0):
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(device_type, device_id=0):
        return OrtDevice(device_type, device_id)

    cpu = staticmethod(lambda: 0)
    cuda = staticmethod(lambda: 1)

    def device_type(self):
        return self._type

    def device_id(self):
        return self._id


def _element_name(element_type):
    """Our name of a NumPy dtype or of ONNX's number."""
    if isinstance(element_type, int):
        for name, number in _arrays._NUMBERS.items():
            if number == element_type:
                return name
        raise InvalidArgument(f"{element_type} is no element type of ONNX")
    dtype = np.dtype(element_type)
    name = _arrays._NAMES.get(dtype, dtype.name)
    return "string" if dtype.kind in "OUS" else name


def _only_host(device_type):
    if str(device_type) not in ("cpu", "cuda_pinned"):
        raise Unsupported(f"this package allocates no memory on '{device_type}': make the tensor with torch or CuPy and use "
                          "OrtValue.from_dlpack")


class OrtValue:
    """A tensor, sequence, map or nothing (an empty optional). NumPy's memory, or that of a DLPack tensor, is used where it is."""

    def __init__(self, value, device="cpu", type_text=None):
        self._value, self._device, self._type_text = value, device, type_text

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        _only_host(device_type)
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array, onnx_element_type):
        dtype = _arrays.numpy_dtype(_element_name(onnx_element_type))
        return OrtValue(array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array.astype(dtype))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type=np.float32, device_type="cpu", device_id=0):
        _only_host(device_type)
        return OrtValue(np.zeros(shape, _arrays.numpy_dtype(_element_name(element_type))))

    @staticmethod
    def from_dlpack(data, is_bool_tensor=False):
        """A tensor of torch, CuPy, JAX ...: on the host or on a GPU, not copied."""
        kind, number = data.__dlpack_device__()
        if kind == 2:
            return OrtValue(data, f"cuda:{number}")
        array = np.from_dlpack(data)
        return OrtValue(array.view(np.bool_) if is_bool_tensor else array)

    def numpy(self):
        if not isinstance(self._value, np.ndarray):
            raise Error(f"{self.data_type()} in '{self._device}' is no NumPy array")
        return self._value

    @property
    def _ortvalue(self):
        return self  # many programs go through this name of onnxruntime's to to_dlpack()

    def to_dlpack(self):
        return self._value.__dlpack__()

    def __dlpack__(self, **kwargs):
        return self._value.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()

    def has_value(self):
        return self._value is not None

    def is_tensor(self):
        return hasattr(self._value, "shape")

    def is_tensor_sequence(self):
        return isinstance(self._value, list) and not (self._value and isinstance(self._value[0], dict))

    def is_sparse_tensor(self):
        return False

    def shape(self):
        return list(self._value.shape)

    def element_type(self):
        return _arrays._NUMBERS[_element_name(self._value.dtype)]

    def data_type(self):
        if self._type_text:
            return self._type_text
        if isinstance(self._value, list):
            return f"seq({OrtValue(self._value[0]).data_type()})" if self._value else "seq()"
        dtype = getattr(self._value, "dtype", None)
        return _tensor_type(_element_name(dtype)) if isinstance(dtype, np.dtype) else _tensor_type(str(dtype).removeprefix("torch."))

    def device_name(self):
        return self._device.partition(":")[0]

    def data_ptr(self):
        return self._value.ctypes.data if isinstance(self._value, np.ndarray) else self._value.data_ptr()

    def tensor_size_in_bytes(self):
        return self._value.nbytes

    def update_inplace(self, array):
        self.numpy()[...] = array


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session):
        self._session = session
        self._inputs, self._outputs, self._results = {}, {}, {}

    def bind_cpu_input(self, name, array):
        self._inputs[name] = array

    def bind_ortvalue_input(self, name, value):
        self._inputs[name] = value._value

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        self._inputs[name] = _pointer(device_type, device_id, element_type, shape, buffer_ptr)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        if buffer_ptr is None:
            _only_host(device_type)
            self._outputs[name] = None
        elif element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._outputs[name] = _pointer(device_type, device_id, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name, value):
        self._outputs[name] = value._value

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._results = {}

    def synchronize_inputs(self):
        """Nothing: a run returns when all of it is done."""

    synchronize_outputs = synchronize_inputs

    def get_outputs(self):
        """OrtValues of the outputs in the order in which they were bound."""
        return [self._session._ort_value(name, self._results[name]) for name in self._outputs]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self):
        return [_on_host(name, self._results[name]) for name in self._outputs]


SessionIOBinding = IOBinding


def _on_host(name, value):
    if isinstance(value, _core.Pointer):
        raise Unsupported(f"output '{name}' was bound to an address: its owner has it")
    return value if isinstance(value, (np.ndarray, list, type(None))) else np.array(value.cpu() if hasattr(value, "cpu") else value.get())


def _pointer(device_type, device_id, element_type, shape, address):
    number = _arrays._NUMBERS[_element_name(element_type)]
    return _core.Pointer(address, number, list(shape), -1 if device_type in ("cpu", "cuda_pinned") else device_id)
