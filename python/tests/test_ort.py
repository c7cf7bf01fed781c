# SPDX-License-Identifier: Apache-2.0
"""graphrt.ort beside onnxruntime: the programs of ort_programs.py give the same with either."""
import subprocess
import sys

import graphrt.ort
import numpy as np
import onnx
import pytest
from conftest import ML, dictionary, info, linear, model, told, zip_map
from onnx import TensorProto, helper
from ort_programs import PROGRAMS

FLOAT = TensorProto.FLOAT


def default_model():
    return model([helper.make_node("Add", ["x", "b"], ["y"])], [info("x", FLOAT, [2, 4]), info("b", FLOAT, [1])], [info("y", FLOAT, [2, 4])],
                 [helper.make_tensor("b", FLOAT, [1], [10])])


def pieces_model():
    return model([helper.make_node("SplitToSequence", ["x"], ["s"], axis=0)], [info("x", FLOAT, ["N", 4])],
                 [helper.make_tensor_sequence_value_info("s", FLOAT, None)])


MODELS = {
    "linear": linear(),
    "two": model([helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Exp", ["x"], ["b"])], [info("x", FLOAT, ["N", 4])],
                 [info("a", FLOAT, ["N", 4]), info("b", FLOAT, ["N", 4])]),
    "add": model([helper.make_node("Add", ["p", "q"], ["y"])], [info("p", FLOAT, [2, 4]), info("q", FLOAT, [2, 4])],
                 [info("y", FLOAT, [2, 4])]),
    "half": model([helper.make_node("Neg", ["x"], ["y"])], [info("x", TensorProto.FLOAT16, [2, 4])], [info("y", TensorProto.FLOAT16, [2, 4])]),
    "mixed": model([helper.make_node("Abs", ["i"], ["a"]), helper.make_node("Not", ["c"], ["d"]),
                    helper.make_node("Cast", ["i"], ["e"], to=TensorProto.DOUBLE)],
                   [info("i", TensorProto.INT64, [2]), info("c", TensorProto.BOOL, [2])],
                   [info("a", TensorProto.INT64, [2]), info("d", TensorProto.BOOL, [2]), info("e", TensorProto.DOUBLE, [2])]),
    "text": model([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], [info("x", TensorProto.STRING, [2])],
                  [info("y", TensorProto.STRING, [4])]),
    "pieces": pieces_model(),
    "default": default_model(),
    "numbers": zip_map([7, -3, 0, 1]),
    "names": zip_map(["a", "b", "c", "d\u00e9"]),
    "dict": model([helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["a", "b"])],
                  [dictionary("x", TensorProto.STRING, FLOAT)], [info("y", FLOAT, [1, 2])]),
    "told": told(),
}


def external():
    """linear(), with its weights in weights.bin, which is not there."""
    made = onnx.load_from_string(linear())
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", "48")):
        tensor.external_data.add(key=key, value=value)
    return made.SerializeToString()


def maybe_model():
    """y is how many optionals are given: 0 or 1."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2, 4]))
    return model([helper.make_node("OptionalHasElement", ["x"], ["y"])], [helper.make_value_info("x", kind)], [info("y", TensorProto.BOOL, [])])


def labelled():
    made = onnx.load_from_string(linear())
    helper.set_model_props(made, {"names": "{0: 'cat', 1: 'dog'}", "stride": "32"})
    return made.SerializeToString()


MODELS |= {
    "external": external(),
    "joined": model([helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)], [helper.make_tensor_sequence_value_info("s", FLOAT, None)],
                    [info("y", FLOAT, ["M", 4])]),
    "maybe": maybe_model(),
    "labelled": labelled(),
}


def same(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, np.ndarray):
        return ours.dtype == theirs.dtype and ours.shape == theirs.shape and (
            np.array_equal(ours, theirs) if theirs.dtype == object else np.allclose(ours, theirs, rtol=1e-5))
    return ours == theirs


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda run: run.__name__)
def test_program(run, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    onnxruntime.set_default_logger_severity(4)
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    theirs = run(onnxruntime, tmp_path / "theirs", MODELS)
    assert theirs is not None
    ours = run(graphrt.ort, tmp_path / "ours", MODELS)
    assert same(ours, theirs), f"{ours} instead of {theirs}"


def test_what_cannot_be_done_says_so(tmp_path):
    options = graphrt.ort.SessionOptions()
    session = graphrt.ort.InferenceSession(MODELS["linear"])
    for refused in (lambda: options.register_custom_ops_library("x.so"), lambda: options.add_initializer("w", None),
                    lambda: graphrt.ort.set_seed(1),
                    lambda: graphrt.ort.OrtValue.ortvalue_from_numpy(np.zeros(1), "cuda"),
                    lambda: session.io_binding().bind_output("y", "cuda")):
        with pytest.raises(NotImplementedError):
            refused()


def test_providers_that_are_not_here_are_warned_of():
    with pytest.warns(UserWarning, match="NonsenseExecutionProvider"):
        session = graphrt.ort.InferenceSession(MODELS["linear"], providers=["NonsenseExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_errors_have_onnxruntimes_names():
    session = graphrt.ort.InferenceSession(MODELS["linear"])
    with pytest.raises(graphrt.ort.InvalidArgument):
        session.run(["none"], {"x": np.zeros((1, 4), np.float32)})
    with pytest.raises(graphrt.ort.NoSuchFile):
        graphrt.ort.InferenceSession("none.onnx")
    with pytest.raises(graphrt.ort.Fail):
        graphrt.ort.InferenceSession(onnx.ModelProto().SerializeToString() + b"x")


def test_extended_dtypes_come_as_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = graphrt.ort.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.BFLOAT16)
    assert value.numpy().dtype == ml_dtypes.bfloat16 and value.data_type() == "tensor(bfloat16)"


INSTALLED = """
import sys
import graphrt.ort
graphrt.ort.install()
graphrt.ort.install()
import onnxruntime
import onnxruntime as ort
from onnxruntime import InferenceSession
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
import importlib.util
assert InferenceSession is graphrt.ort.InferenceSession and "CPUExecutionProvider" in C.get_available_providers()
assert onnxruntime.capi._pybind_state is C and importlib.util.find_spec("onnxruntime") is not None
assert tuple(map(int, onnxruntime.__version__.split("."))) >= (1, 20) and graphrt.ort.__version__ == graphrt.version()
try:
    ort.InferenceSession("nowhere.onnx")
except NoSuchFile:
    print("well")
"""
QUANTISED = """
import sys
import graphrt.ort
graphrt.ort.install()
import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": np.full((2, 4), k, np.float32)} for k in range(3)]

    def get_next(self):
        return self.left.pop() if self.left else None

quantize_static("in.onnx", "out.onnx", Samples(), quant_format=QuantFormat.QDQ)
session = graphrt.ort.InferenceSession("out.onnx")
assert np.allclose(session.run(None, {"x": np.ones((2, 4), np.float32)})[0], [18, 22, 26], rtol=0.05)
assert "onnxruntime.capi.onnxruntime_pybind11_state" in sys.modules and not hasattr(sys.modules["onnxruntime.capi"], "__file__")
print("well")
"""


def test_onnxruntimes_quantiser_runs_its_samples_here(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "in.onnx").write_bytes(linear())
    told = subprocess.run([sys.executable, "-c", QUANTISED], cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.endswith("well\n"), told.stderr


def test_packages_that_import_onnxruntime(tmp_path):
    told = subprocess.run([sys.executable, "-c", INSTALLED], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert told.stdout == "well\n"


def test_onnxruntime_is_not_replaced_behind_someones_back(tmp_path):
    pytest.importorskip("onnxruntime")
    told = subprocess.run([sys.executable, "-c", "import onnxruntime, graphrt.ort; graphrt.ort.install()"], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode != 0 and "imported already" in told.stderr
