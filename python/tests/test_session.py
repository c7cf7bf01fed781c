# SPDX-License-Identifier: Apache-2.0
"""graphrt.Session: feeding, results, errors."""
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import graphrt
import numpy as np
import pytest
from conftest import endless, info, linear, model
from onnx import TensorProto, helper

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def session():
    return graphrt.Session(linear(), threads=1)


def test_inputs_by_name_position_and_alone(session):
    x = np.ones((2, 4), np.float32)
    want = x @ WEIGHTS
    for given in ({"x": x}, [x], (x,), x):
        assert np.array_equal(session.run(given)["y"], want)
    assert np.array_equal(session(x), want)
    assert np.array_equal(session(x=x), want)


def test_what_a_model_says(session):
    assert session.inputs == [graphrt.ValueInfo("x", "tensor", "tensor", "float32", ("N", 4), False)]
    assert session.outputs[0].shape == ("N", 3)
    assert session.model.info["producer"] == "tests"
    assert session.threads == 1 and session.device == "cpu"
    assert session.load_info["device"] == "cpu:0"
    assert {"name", "begin_ms", "end_ms"} == set(session.phases[0]) == set(session.model.phases[0])


def test_what_is_printed(session):
    assert repr(session) == "<graphrt.Session on cpu: x: float32[Nx4] -> y: float32[Nx3]>"
    assert repr(session.model) == "<graphrt.Model x: float32[Nx4] -> y: float32[Nx3]>"
    many = graphrt.Model(model([helper.make_node("Sum", [f"x{i}" for i in range(6)], ["y"])],
                               [info(f"x{i}", TensorProto.FLOAT, []) for i in range(6)], [info("y", TensorProto.FLOAT, [])]))
    assert "x3: float32[], and 2 more -> y: float32[]>" in repr(many)


@pytest.mark.parametrize("value, text", [
    (("x", "tensor", "tensor", "int64", None, False), "x: int64 of unknown rank"),
    (("x", "sequence", "sequence", "float32", (2, "n"), False), "x: sequence of float32[2xn]"),
    (("x", "optional", "tensor", "float32", (2,), False), "x: optional float32[2]"),
    (("x", "optional", "sequence", "float32", (2,), False), "x: optional sequence of float32[2]"),
    (("x", "map", "map", "float32", None, False, "int64"), "x: map from int64 to float32"),
    (("x", "sequence", "map", "float32", None, False, "string"), "x: sequence of map from string to float32"),
])
def test_what_an_input_is_printed_as(value, text):
    assert str(graphrt.ValueInfo(*value)) == text


def test_outputs_are_the_callers_own(session):
    first = session.run(np.ones((1, 4), np.float32))["y"]
    kept = first.copy()
    for n in (1, 1, 2, 1):
        session.run(np.zeros((n, 4), np.float32))
    assert np.array_equal(first, kept) and first.flags.owndata and first.flags.writeable


def test_changing_dims(session):
    for n in (1, 3, 3, 0, 7, 3):
        x = np.random.default_rng(n).random((n, 4), np.float32)
        np.testing.assert_allclose(session(x), x @ WEIGHTS, rtol=1e-6)


def test_outputs_whose_dims_depend_on_data():
    nonzero = graphrt.Session(model([helper.make_node("NonZero", ["x"], ["y"])], [info("x", TensorProto.FLOAT, [6])],
                                    [info("y", TensorProto.INT64, [1, "n"])]))
    for x in ([1, 0, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0] * 6, [1] * 6, [1, 0, 0, 0, 0, 0]):
        assert np.array_equal(nonzero(np.array(x, np.float32)), np.array(np.nonzero(x)))


def test_wanted_outputs_and_memory_for_them(digits, images):
    session = graphrt.Session(digits)
    logits = np.empty((450, 10), np.float32)
    result = session.run(images, into={"logits": logits})
    assert result["logits"] is logits
    assert np.array_equal(logits, session(images))
    assert session.run(images, outputs=[]) == {}
    assert list(session.run(images, ["logits"])) == ["logits"]
    with pytest.raises(graphrt.InvalidArgument, match="450x10"):
        session.run(images, into={"logits": np.empty((3, 10), np.float32)})
    logits.flags.writeable = False
    with pytest.raises(graphrt.InvalidArgument, match="can be written"):
        session.run(images, into={"logits": logits})
    assert session(images).shape == (450, 10)


def test_errors_name_what_is_wrong(session):
    x = np.ones((1, 4), np.float32)
    with pytest.raises(graphrt.InvalidArgument, match="there is no input 'z'; the model has 'x'"):
        session.run({"z": x})
    with pytest.raises(graphrt.InvalidArgument, match="there is no output 'z'"):
        session.run(x, ["z"])
    with pytest.raises(graphrt.InvalidArgument, match=r"'x' must be float32\[\?x4\], found float64\[1x4\]"):
        session.run(x.astype(np.float64))
    with pytest.raises(graphrt.InvalidArgument, match="2 inputs are given"):
        session.run([x, x])
    with pytest.raises(graphrt.InvalidArgument, match="given twice"):
        session(x, x=x)
    with pytest.raises(graphrt.InvalidArgument, match="x"):
        session.run({})
    with pytest.raises(ValueError):  # what Python code catches
        session.run({})
    with pytest.raises(TypeError, match="datetime64"):
        session.run(np.zeros((1, 4), "datetime64[s]"))
    assert session(x).shape == (1, 3)


def test_errors_have_a_status_and_a_message(tmp_path):
    with pytest.raises(graphrt.FileError) as caught:
        graphrt.Session(tmp_path / "none.onnx")
    assert isinstance(caught.value, OSError) and isinstance(caught.value, graphrt.Error)
    assert caught.value.status == "IO" and "none.onnx" in caught.value.message and "none.onnx" in str(caught.value)
    for broken in (b"", b"\0\1\2", linear()[:40]):
        with pytest.raises(graphrt.InvalidModel):
            graphrt.Session(broken)
    with pytest.raises(graphrt.DeviceError, match="nosuch"):
        graphrt.Session(linear(), "nosuch")
    with pytest.raises(TypeError, match="no option 'levle'"):
        graphrt.Session(linear(), levle=1)
    with pytest.raises(TypeError):
        graphrt.Session(12)


def test_an_input_left_out_keeps_its_default():
    default = helper.make_tensor("b", TensorProto.FLOAT, [2], [10, 20])
    session = graphrt.Session(model([helper.make_node("Add", ["a", "b"], ["y"])],
                                    [info("a", TensorProto.FLOAT, [2]), info("b", TensorProto.FLOAT, [2])],
                                    [info("y", TensorProto.FLOAT, [2])], [default]))
    a = np.array([1, 2], np.float32)
    assert session.inputs[1].has_default
    for b, want in ((None, [11, 22]), (a, [2, 4]), (None, [11, 22])):
        assert session.run({"a": a} if b is None else {"a": a, "b": b})["y"].tolist() == want
        assert session.run([a, b])["y"].tolist() == want


def test_a_path_bytes_a_plan_or_a_model(tmp_path, digits, images):
    plan = tmp_path / "digits.grt"
    graphrt.compile(digits, plan)
    opened = graphrt.Model(plan)
    want = graphrt.Session(digits)(images)
    for source in (Path(digits), Path(digits).read_bytes(), memoryview(plan.read_bytes()), plan, opened):
        assert np.array_equal(graphrt.Session(source)(images), want)
    with pytest.raises(graphrt.InvalidArgument, match="belong to graphrt.Model"):
        graphrt.Session(opened, level=1)


def test_a_plan_in_aligned_memory_outlives_its_bytes(tmp_path, digits, images):
    import mmap
    plan = tmp_path / "digits.grt"
    graphrt.compile(digits, plan)
    want = graphrt.Session(plan)(images)
    with open(plan, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)  # page-aligned: the library would use it where it is
    session = graphrt.Session(mapped)
    mapped.close()
    assert np.array_equal(session(images), want)


def test_sessions_are_freed(digits, images):
    x = images[:1].copy()
    before = weakref.ref(x)
    session = graphrt.Session(digits)
    session.run(x)
    del x
    gc.collect()
    assert before() is None, "a run holds on to its input"


LOOP = """<ir_version: 10, opset_import: ["" : 20]>
slow (int64 n, float[2] x) => (float[2] y)
{
    on = Constant <value = bool {1}> ()
    y = Loop (n, on, x) <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] b) { d = Identity (c)  b = Sin (a) }>
}"""


def test_the_gil_is_free_during_a_run():
    import onnx.parser
    session = graphrt.Session(onnx.parser.parse_model(LOOP).SerializeToString(), threads=1)
    feed = {"n": np.array(300_000), "x": np.ones(2, np.float32)}
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    session.run(feed)
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(begin < tick < end for tick in ticks)
    assert end - begin > 0.02 and inside >= 5, f"{inside} ticks of another thread in {end - begin:.3f} s"


def test_threads_share_a_session(digits, images):
    session = graphrt.Session(digits, threads=1)
    want = session(images)
    wrong = []

    def work(offset):
        for i in range(200):
            n = 1 + (i + offset) % 5
            at = (7 * i + offset) % 400
            if not np.allclose(session(images[at:at + n]), want[at:at + n], atol=1e-5):
                wrong.append((offset, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FOREVER = np.array(2**62)


def test_a_run_ends_in_time(session):
    loop = graphrt.Session(endless(), threads=1)
    begin = time.monotonic()
    with pytest.raises(graphrt.DeadlineExceeded) as raised:
        loop.run({"n": FOREVER}, timeout=0.05)
    assert isinstance(raised.value, TimeoutError)
    assert 0.04 < time.monotonic() - begin < 10
    assert loop.run({"n": np.array(5)}, timeout=60.0)["y"] == 5
    with pytest.raises(graphrt.DeadlineExceeded):
        session.run(np.ones((2, 4), np.float32), timeout=0)
    for wrong in (-1, float("nan")):
        with pytest.raises(graphrt.InvalidArgument):
            session.run(np.ones((2, 4), np.float32), timeout=wrong)


def test_a_stop_ends_all_that_it_was_given_to(session):
    loop, stop, ended = graphrt.Session(endless(), threads=1), graphrt.Stop(), []

    def work():
        try:
            loop.run({"n": FOREVER}, stop=stop)
        except graphrt.Cancelled as error:
            ended.append(error.status)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    assert not ended and not stop.is_set()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert ended == ["CANCELLED"] * 3
    x = np.ones((2, 4), np.float32)
    with pytest.raises(graphrt.Cancelled):
        session.run(x, stop=stop)
    assert session.run(x, stop=graphrt.Stop())["y"].shape == (2, 3)


def test_ctrl_c_ends_a_run():
    """In a process of its own: the handler is Python's, and the exception is KeyboardInterrupt."""
    program = ("import signal, sys, graphrt, numpy as np\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nsession = graphrt.Session(sys.stdin.buffer.read(), threads=1)\nprint('ready', flush=True)\n"
               "pool = graphrt.Pool(session)\nfor call in (lambda: session.run({'n': np.array(2**62)}), lambda: pool.run({'n': np.array(2**62)})):\n"
               "    try:\n        call()\n    except KeyboardInterrupt:\n        print('interrupted', flush=True)\n"
               "print(int(session.run({'n': np.array(7)})['y']))\n")
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    process.stdin.write(endless())
    process.stdin.close()
    assert process.stdout.readline() == b"ready\n"
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
    assert process.stdout.read() == b"7\n" and process.wait(30) == 0
