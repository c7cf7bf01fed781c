# SPDX-License-Identifier: Apache-2.0
"""onnx's own tests of backends. What conformance names is expected here, too: those lists are the same ones."""
import re
from pathlib import Path

import graphrt
import graphrt.backend
import numpy as np
import onnx
import onnx.backend.test
import pytest
from conftest import TOP

# onnx 1.23 compares the items of this result, which is right, by len(), which arrays without dims have not.
RUNNER = ["test_loop16_seq_none"]
# Weights are fetched from the network.
LARGE = "test_(resnet50|densenet121|vgg19|bvlc_alexnet|inception_v[12]|squeezenet|shufflenet|zfnet512|emotion_ferplus|tiny_yolov2)_"


def listed(name):
    text = (TOP / "tests/conformance" / name).read_text()
    return re.findall(r"^\s*([^#:\s][^:]*):", text, re.MULTILINE)


suite = onnx.backend.test.BackendTest(graphrt.backend, __name__)
# Wheels carry the module that decodes images where its libraries were found when the library was built.
DECODES = (Path(graphrt.__file__).parent / "libgraphrt-image.so").exists()
for name in [re.escape(name) for name in listed("expected_failures.txt")] + ([] if DECODES else ["test_image_decoder_.*"]):
    suite.xfail(f"^{name}_cpu$")
NOT_RUN = {f"{name}_cpu" for name in listed("not_run.txt") + RUNNER}
for title, case in suite.test_cases.items():
    for name in [name for name in vars(case) if name.endswith("_cuda") or name in NOT_RUN or re.match(LARGE, name)]:
        delattr(case, name)
    globals()[title] = case


def test_a_node_alone():
    node = onnx.helper.make_node("Add", ["a", "b"], ["y"])
    a = np.array([1, 2], np.float32)
    assert graphrt.backend.run_node(node, [a, a])[0].tolist() == [2, 4]
    assert graphrt.backend.run_node(node, [a, a], outputs_info=[(a.dtype, a.shape)]).y.tolist() == [2, 4]


def test_devices():
    assert graphrt.backend.supports_device("CPU") and not graphrt.backend.supports_device("TPU")
    unknown = onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node("Nonsense", ["x"], ["y"])], "g", [
        onnx.helper.make_tensor_value_info("x", 1, [1])], [onnx.helper.make_tensor_value_info("y", 1, [1])]))
    assert not graphrt.backend.is_compatible(unknown)
    with pytest.raises(NotImplementedError):
        graphrt.backend.prepare(unknown)
