# SPDX-License-Identifier: Apache-2.0
"""Compiling, checking, inspecting, tuning, and the commands."""
import os
import subprocess
import sys
from pathlib import Path

import graphrt
import numpy as np
import onnx
import pytest
from conftest import TOP, info, linear, model, told
from onnx import TensorProto, helper


@pytest.fixture
def onnx_file(tmp_path):
    path = tmp_path / "linear.onnx"
    path.write_bytes(linear())
    return path


def test_compile_reports_and_repeats(tmp_path, onnx_file):
    phases = []
    a, b = tmp_path / "a.grt", tmp_path / "b.grt"
    assert graphrt.compile(onnx_file, a, progress=lambda phase, fraction: phases.append((phase, fraction))) is None
    graphrt.compile(onnx_file, b)
    assert a.read_bytes() == b.read_bytes()
    assert phases[-1][0] == "lower" and all(0 <= fraction <= 1 for _, fraction in phases)


def test_a_callback_that_raises_ends_the_call(tmp_path, onnx_file):
    def fail(*_):
        raise KeyError("mine")
    for options in ({"progress": fail}, {"cancel": fail}):
        with pytest.raises(KeyError, match="mine"):
            graphrt.compile(onnx_file, tmp_path / "no.grt", **options)
    with pytest.raises(graphrt.Cancelled):
        graphrt.compile(onnx_file, tmp_path / "no.grt", cancel=lambda: True)
    assert not (tmp_path / "no.grt").exists()


def test_levels_agree(onnx_file):
    x = np.ones((2, 4), np.float32)
    results = [graphrt.Session(onnx_file, level=level)(x) for level in (None, 0, 1, 2)]
    assert all(np.allclose(result, results[0]) for result in results)
    options = [graphrt.Model(onnx_file, level=level).info["options"] for level in (0, 1, 2)]
    assert [text.split(",")[0] for text in options] == ["level 0", "level 1", "level 2"]
    assert graphrt.Model(onnx_file).info["options"] == options[2]
    with pytest.raises(graphrt.InvalidArgument):
        graphrt.Model(onnx_file, level=7)


def test_options_reach_the_compiler(tmp_path, onnx_file):
    plan = tmp_path / "p.grt"
    graphrt.compile(onnx_file, plan, target="null", precision="fp16", disable_passes=graphrt.passes()[:2], free_dims="*", shapes={"x": [8, 4]})
    told = graphrt.Model(plan).info
    assert told["target"] == "null" and "fp16" in told["options"]
    graphrt.compile(onnx_file, plan, target="null", enable_passes=["rows"])
    assert "rows" in graphrt.Model(plan).info["options"]
    for wrong in ({"precision": "fp7"}, {"disable_passes": ["nonsense"]}, {"enable_passes": ["nonsense"]}, {"trust": "nonsense"}):
        with pytest.raises(graphrt.InvalidArgument):
            graphrt.Model(onnx_file, **wrong)


def test_check_lists_everything(tmp_path, digits):
    assert graphrt.check(digits) == []
    path = tmp_path / "odd.onnx"
    path.write_bytes(model([helper.make_node("Nonsense", ["x"], ["h"], name="first"), helper.make_node("Absurd", ["h"], ["y"], name="second")],
                           [info("x", TensorProto.FLOAT, [2])], [info("y", TensorProto.FLOAT, [2])]))
    found = graphrt.check(path)
    assert [finding.node for finding in found] == ["first", "second"]
    assert [finding.status for finding in found] == ["UNSUPPORTED"] * 2 and "Nonsense" in found[0].op and found[1].message
    with pytest.raises(graphrt.FileError):
        graphrt.check(tmp_path / "none.onnx")


def test_warnings_say_what_was_assumed(tmp_path):
    path = tmp_path / "order.onnx"
    nodes = [helper.make_node("Relu", ["h"], ["y"]), helper.make_node("Neg", ["x"], ["h"])]
    path.write_bytes(model(nodes, [info("x", TensorProto.FLOAT, [2])], [info("y", TensorProto.FLOAT, [2])]))
    warnings = []
    graphrt.compile(path, tmp_path / "order.grt", warning=warnings.append)
    assert warnings and warnings[0].status == "OK"
    assert graphrt.check(path)[0].status == "OK"
    with pytest.raises(graphrt.InvalidModel):
        graphrt.compile(path, tmp_path / "order.grt", strict=True)


def test_inspect(digits):
    told = graphrt.inspect(digits)
    assert told["info"]["parameters"] == 25866 and told["info"]["flops"] > 1e6
    assert told["inputs"][0].name == "image" and told["outputs"][0].dtype == "float32"
    assert len(told["steps"]) == told["info"]["steps"] and {"op", "name", "detail", "flops"} == set(told["steps"][0])


def test_metadata_is_the_models_and_its_plans(tmp_path):
    path, plan = tmp_path / "told.onnx", tmp_path / "told.grt"
    path.write_bytes(told())
    graphrt.compile(path, plan)
    want = {"producer_name": "tests", "producer_version": "1.2", "domain": "org.example", "description": "first line\nsecond",
            "graph_name": "products", "graph_description": "of matrices", "model_version": 7, "ir_version": 10,
            "entries": {"author": "Ada", "note": "caf\u00e9"}}
    assert graphrt.Model(path).metadata == graphrt.Model(plan).metadata == graphrt.inspect(plan)["metadata"] == want
    silent = graphrt.Model(linear()).metadata
    assert silent["domain"] == silent["description"] == "" and silent["model_version"] == 0 and silent["entries"] == {}


def external_model(size):
    """y = x + w for w of floats in the file weights.bin."""
    w = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights.bin", "offset": "0", "length": str(4 * size)}.items():
        w.external_data.add(key=key, value=value)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], [info("x", TensorProto.FLOAT, [size])], [info("y", TensorProto.FLOAT, [size])], [w])


@pytest.mark.parametrize("size", [3, 100_000])
def test_external_data_in_memory(tmp_path, size):
    source, weights = external_model(size), np.arange(size, dtype=np.float32)
    x = np.ones(size, np.float32)
    for content in (weights, weights.tobytes(), memoryview(weights)):
        assert np.array_equal(graphrt.Session(source, external_data={"weights.bin": content})(x), weights + 1)
    session = graphrt.Session(source, external_data={"weights.bin": weights.copy()})  # which only the session keeps alive
    assert np.array_equal(session(x), weights + 1) and np.array_equal(session(x), weights + 1)
    path = tmp_path / "external.onnx"
    path.write_bytes(source)
    graphrt.compile(path, tmp_path / "external.grt", external_data={"weights.bin": weights})
    assert np.array_equal(graphrt.Session(tmp_path / "external.grt")(x), weights + 1)
    for files in ({}, {"other.bin": weights}):
        with pytest.raises(graphrt.Error):
            graphrt.Model(source, external_data=files)
    with pytest.raises(ValueError):  # NumPy's, of memory that is not dense
        graphrt.Model(source, external_data={"weights.bin": np.zeros((4, 4), np.float32)[:, 1]})


def test_external_data_stays_where_it_is():
    """Memory of a bytearray cannot be resized while a model reads it."""
    content = bytearray(400_000)
    opened = graphrt.Model(external_model(100_000), external_data={"weights.bin": content})
    session = graphrt.Session(opened)
    del opened
    with pytest.raises(BufferError):
        content.clear()
    del session
    content.clear()


def test_custom_operators_that_are_none(tmp_path):
    with pytest.raises(graphrt.FileError):
        graphrt.load_custom_ops(tmp_path / "none.so")
    with pytest.raises(TypeError):
        graphrt.load_custom_ops(3)


@pytest.mark.skipif("CUSTOM_OPS" not in os.environ, reason="CUSTOM_OPS names no shared object of examples/custom_ops.c")
def test_custom_operators():
    source = TOP / "examples/custom_ops.onnx"
    assert graphrt.check(source) != []
    for _ in range(2):
        graphrt.load_custom_ops(os.environ["CUSTOM_OPS"])
    assert graphrt.check(source) == []
    signal = np.arange(16, dtype=np.float32).reshape(2, 8)
    frames = graphrt.Session(source).run({"signal": signal})["frames"]
    assert frames.shape == (2, 3, 3) and all(row.tobytes() in signal.tobytes() for row in frames.reshape(-1, 3))


def test_tuning_where_there_is_nothing_to_tune(digits, images):
    report = graphrt.Session(digits).tune(images[:1], seconds=1, progress=lambda what, fraction: True)
    assert report["steps"] == 0 and not report["stopped"]


def test_device_count():
    with pytest.raises(graphrt.DeviceError):
        graphrt.device_count("nosuch")
    assert graphrt.device_count("cpu") == 1


def test_the_commands(tmp_path, digits):
    scripts = Path(sys.executable).parent
    plan = tmp_path / "d.grt"
    subprocess.run([scripts / "graphc", "optimize", digits, "-o", plan], check=True)
    done = subprocess.run([scripts / "graphrun", plan], check=True, stdout=subprocess.PIPE, text=True)
    assert "logits" in done.stdout
    assert subprocess.run([scripts / "graphrun", tmp_path / "none"], stderr=subprocess.DEVNULL).returncode == 2
    listed = subprocess.run([scripts / "graphc", "devices"], check=True, stdout=subprocess.PIPE, text=True)
    assert "h100" in listed.stdout


def test_the_wheel_has_its_licences_and_libraries():
    from importlib.metadata import distribution, files
    names = [str(file) for file in files("graphrt")]
    for library in ("libdnnl", "libgomp", "libsqlite3", "libprotobuf-c", "libsodium", "libxxhash", "libjansson", "libOpenCL"):
        assert any(library in name and ".so" in name for name in names), library
    for licence in ("LICENSE", "libdnnl2", "libgomp1", "libsqlite3-0", "libprotobuf-c1", "libsodium23", "libxxhash0", "nanobind"):
        assert any("licenses" in name and licence in name for name in names), licence
    assert distribution("graphrt").version == graphrt.__version__
