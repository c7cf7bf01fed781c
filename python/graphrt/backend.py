# SPDX-License-Identifier: Apache-2.0
"""The interface of onnx.backend, which needs the package onnx: `pip install 'graphrt[backend]'`.

    import graphrt.backend
    outputs = graphrt.backend.run_model(onnx.load("model.onnx"), [array])
"""

import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from ._core import Session, device_count
from ._errors import DeviceError


def _device_name(device):
    parsed = Device(device)
    return "cpu" if parsed.type == DeviceType.CPU else f"cuda:{parsed.device_id}"


class GraphrtRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session):
        self._session = session
        names = [output.name for output in session.outputs]
        self._outputs = namedtupledict("Outputs", names)

    def run(self, inputs, **kwargs):
        """Outputs, by position and name, of inputs in the model's order or by name."""
        return self._outputs(*self._session.run(inputs).values())


class GraphrtBackend(Backend):
    """libgraphrt as onnx.backend.Backend. Devices are "CPU", "CUDA" and "CUDA:1"."""

    @classmethod
    def supports_device(cls, device):
        """Is there such a device ("CPU", "CUDA:0") in this machine?"""
        kind = device.partition(":")[0]
        if kind != "CUDA":
            return kind == "CPU"
        try:
            return device_count("cuda") > 0
        except DeviceError:
            return False

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Does every operator of the model run on the device?"""
        try:
            cls.prepare(model, device, **kwargs)
        except NotImplementedError:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Make a ModelProto, its bytes or the path of a file ready; **kwargs are graphrt.Session's."""
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return GraphrtRep(Session(source, _device_name(device), **kwargs))

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """Run one node on NumPy arrays. `outputs_info`: (dtype, shape) of each output."""
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        of = onnx.helper.np_dtype_to_tensor_dtype
        names = [name for name in node.input if name]
        values = [onnx.helper.make_tensor_value_info(name, of(array.dtype), array.shape) for name, array in zip(names, inputs)]
        if outputs_info is None:
            results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        else:
            results = [onnx.helper.make_tensor_value_info(name, of(dtype), shape)
                       for name, (dtype, shape) in zip(node.output, outputs_info)]
        graph = onnx.helper.make_graph([node], "node", values, results)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model)
        return cls.prepare(model, device).run(dict(zip(names, inputs)))


is_compatible = GraphrtBackend.is_compatible
prepare = GraphrtBackend.prepare
run_model = GraphrtBackend.run_model
run_node = GraphrtBackend.run_node
supports_device = GraphrtBackend.supports_device
