# SPDX-License-Identifier: Apache-2.0
"""Run ONNX models with libgraphrt.

    import numpy as np, graphrt
    session = graphrt.Session("model.onnx")
    outputs = session.run({"image": np.zeros((1, 3, 224, 224), np.float32)})
"""

from . import _errors
from ._core import Model, Session, version
from ._errors import (Cancelled, DeviceError, Error, FileError, InternalError, InvalidArgument, InvalidModel, InvalidPlan, OutOfMemory,
                      Unsupported, Untrusted)
from ._types import Finding, ValueInfo

__version__ = version()
