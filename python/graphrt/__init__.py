# SPDX-License-Identifier: Apache-2.0
"""Run ONNX models with libgraphrt.

    import numpy as np, graphrt
    session = graphrt.Session("model.onnx")
    outputs = session.run({"image": np.zeros((1, 3, 224, 224), np.float32)})

graphrt.ort has onnxruntime's InferenceSession over it, graphrt.backend the interface of onnx.backend.
"""

from ._core import (Model, Session, State, Stop, check, compile, device_count, load_custom_ops, passes, read_pb, set_log,
                    set_threads, set_trace, version)
from ._errors import (Busy, Cancelled, DeadlineExceeded, DeviceError, Error, FileError, InternalError, InvalidArgument, InvalidModel,
                      InvalidPlan, OutOfMemory, Unsupported, Untrusted)
from ._inspect import inspect
from ._pool import Pool
from ._types import Finding, ValueInfo

__version__ = version()

__all__ = [
    "Busy", "Cancelled", "DeadlineExceeded", "DeviceError", "Error", "FileError", "Finding", "InternalError", "InvalidArgument",
    "InvalidModel", "InvalidPlan", "Model", "OutOfMemory", "Pool", "Session", "State", "Stop", "Unsupported", "Untrusted", "ValueInfo", "check", "compile",
    "device_count", "inspect", "load_custom_ops", "passes", "read_pb", "set_log", "set_threads", "set_trace", "version",
]
