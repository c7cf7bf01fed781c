# SPDX-License-Identifier: Apache-2.0
"""What services need of a session: state, memory, weights that are replaced, and what is told of runs."""
import threading

import graphrt
import numpy as np
import pytest
from conftest import info, model
from onnx import TensorProto, helper, numpy_helper


def doubling():
    """next = 2 sum + x; y = -next"""
    nodes = [helper.make_node("Add", ["sum", "sum"], ["twice"]), helper.make_node("Add", ["twice", "x"], ["next"]),
             helper.make_node("Neg", ["next"], ["y"])]
    return model(nodes, [info("x", TensorProto.FLOAT, [2]), info("sum", TensorProto.FLOAT, [2])],
                 [info("y", TensorProto.FLOAT, [2]), info("next", TensorProto.FLOAT, [2])])


ONES = np.ones(2, np.float32)


@pytest.mark.parametrize("in_place", [False, True])
def test_state_goes_on_from_run_to_run(in_place):
    session = graphrt.Session(doubling())
    states = [graphrt.State(session, {"next": "sum"}, in_place=in_place) for _ in range(3)]
    for step in range(1, 6):
        for state in states:
            outputs = session.run({"x": ONES}, state=state)
            assert list(outputs) == ["y"] and outputs["y"][0] == -(2.0**step - 1)
    states[0].reset()
    states[1].restore({"sum": [10, 20]})
    states[2].copy_from(states[1])
    assert [list(state.save()["sum"]) for state in states] == [[0, 0], [10, 20], [10, 20]]
    assert list(session.run({"x": ONES}, state=states[2])["y"]) == [-21, -41]
    assert list(session.run({"x": ONES, "sum": ONES})["next"]) == [3, 3]  # without state
    assert session.memory["state_bytes"] > 0


def test_state_begins_with_what_is_given():
    session = graphrt.Session(doubling())
    state = graphrt.State(session, {"next": "sum"}, {"sum": np.float32([3, 4])})
    assert list(session.run({"x": ONES}, state=state)["y"]) == [-7, -9]
    with pytest.raises(graphrt.InvalidArgument, match="'sum' belongs to the state"):
        session.run({"x": ONES, "sum": ONES}, state=state)
    with pytest.raises(graphrt.InvalidArgument, match="'next' belongs to the state"):
        session.run({"x": ONES}, into={"next": np.empty(2, np.float32)}, state=state)
    with pytest.raises(graphrt.InvalidArgument, match="no input 'x'"):
        state.restore({"x": ONES})
    with pytest.raises(graphrt.InvalidArgument, match="no pair|graphrt.state|declares"):
        graphrt.State(session)
    assert list(state.save()["sum"]) == [7, 9]


def test_a_plan_declares_state(tmp_path):
    (tmp_path / "m.onnx").write_bytes(doubling())
    graphrt.compile(tmp_path / "m.onnx", tmp_path / "m.grt", state={"next": "sum"})
    session = graphrt.Session(tmp_path / "m.grt")
    state = graphrt.State(session)
    assert list(session.run({"x": ONES}, state=state)) == ["y"]


def test_a_state_is_one_threads_at_a_time():
    session, refused = graphrt.Session(doubling(), threads=1), []
    state = graphrt.State(session, {"next": "sum"})

    def work():
        for _ in range(300):
            try:
                session.run({"x": ONES}, state=state)
            except graphrt.InvalidArgument as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("another thread" in text for text in refused)


def test_memory_is_predicted_and_bounded(digits, images):
    opened = graphrt.Model(digits)
    predicted = opened.predict_memory(threads=1, shapes={"image": [32, 1, 8, 8]})
    session = graphrt.Session(opened, threads=1, memory_limit=predicted["total_bytes"])
    session.run(images[:32])
    memory = session.memory
    assert memory["limit_bytes"] == predicted["total_bytes"] >= memory["total_bytes"] > 0
    assert predicted["process_bytes"] > 0
    with pytest.raises(graphrt.OutOfMemory):
        graphrt.Session(opened, threads=1, memory_limit=predicted["total_bytes"] - 1).run(images[:32])


def test_weights_are_replaced():
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    linear = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", TensorProto.FLOAT, [1, 4])],
                   [info("y", TensorProto.FLOAT, [1, 2])], [numpy_helper.from_array(weights, "w")])
    session = graphrt.Session(linear, keep_weights=["w"])
    x = np.ones((1, 4), np.float32)
    assert np.array_equal(session.run({"x": x})["y"], x @ weights)
    session.set_weights({"w": 2 * weights})
    assert np.array_equal(session.run({"x": x})["y"], x @ (2 * weights))
    with pytest.raises(graphrt.InvalidArgument, match="none"):
        session.set_weights({"none": weights})
    with pytest.raises(graphrt.InvalidArgument, match="w"):
        session.set_weights({"w": weights[:1]})
    assert np.array_equal(session.run({"x": x})["y"], x @ (2 * weights))
    session.check()


def test_messages_are_told(digits):
    told = []
    graphrt.set_log("info", lambda *message: told.append(message))
    session = graphrt.Session(digits)
    with pytest.raises(graphrt.InvalidArgument):
        session.run({"image": np.zeros((1, 1, 9, 9), np.float32)})
    graphrt.set_log("off", None)
    graphrt.Session(digits)
    assert told and {level for level, _, _ in told} <= {"error", "warning", "info"} and any(category == "load" for _, category, _ in told)
    n = len(told)
    graphrt.Session(digits)
    assert len(told) == n
    with pytest.raises(graphrt.InvalidArgument, match="loud"):
        graphrt.set_log("loud", print)


def test_spans_are_told(digits, images):
    told = []
    session = graphrt.Session(digits, threads=1)
    graphrt.set_trace(told.append)
    with graphrt.Pool(session) as pool:
        [future.result() for future in [pool.submit(images[:1]) for _ in range(5)]]
    graphrt.set_trace(None)
    kinds = [span["kind"] for span in told]
    assert kinds.count("request") == kinds.count("queue") == kinds.count("run") == 5
    assert any(span["kind"] == "step" and span["op"] == "Conv" and "conv1" in span["name"] for span in told)
    assert all(span["begin_ms"] <= span["end_ms"] for span in told)
    n = len(told)
    session.run(images[:1])
    assert len(told) == n


def test_threads_are_shared(digits, images):
    session = graphrt.Session(digits, threads=2)
    expected = session.run(images[:1])
    graphrt.set_threads(1)
    alone = session.run(images[:1])
    graphrt.set_threads(0)
    assert all(np.allclose(alone[name], expected[name], atol=1e-5) for name in expected)
    with pytest.raises(graphrt.InvalidArgument, match="0 to 1024"):
        graphrt.set_threads(-1)


def test_dims_before_the_run_and_memory_given_back():
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("NonZero", ["x"], ["places"])]
    session = graphrt.Session(model(nodes, [info("x", TensorProto.FLOAT, ["N", 3])],
                                    [info("y", TensorProto.FLOAT, ["N", 3]), info("places", TensorProto.INT64, [2, "M"])]))
    assert session.output_dims({"x": np.ones((5, 3), np.float32)}) == {"y": (5, 3), "places": (2, None)}
    session.run({"x": np.ones((500, 3), np.float32)})
    before = session.memory["total_bytes"]
    assert session.trim() > 0 and session.memory["total_bytes"] < before
    assert session.run({"x": np.ones((2, 3), np.float32)})["y"].shape == (2, 3)


def test_memory_for_outputs_when_their_size_is_known():
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("NonZero", ["x"], ["places"])]
    session = graphrt.Session(model(nodes, [info("x", TensorProto.FLOAT, ["N"])],
                                    [info("y", TensorProto.FLOAT, ["N"]), info("places", TensorProto.INT64, [1, "M"])]))
    asked, made = [], []

    def allocate(dtype, shape):
        asked.append((dtype, shape))
        made.append(np.empty(shape, dtype))
        return made[-1]

    x = np.array([0, 1, 0, 2], np.float32)
    for _ in range(2):
        outputs = session.run({"x": x}, into={"y": allocate, "places": allocate})
        assert outputs["y"].tolist() == [0, 2, 0, 4] and outputs["places"].tolist() == [[1, 3]]
    assert outputs["places"] is made[-1] and sorted(asked[:2]) == [("float32", (4,)), ("int64", (1, 2))]
    assert session.run({"x": x * 0}, into={"places": allocate})["places"].shape == (1, 0) and len(asked) == 4
    with pytest.raises(ZeroDivisionError):
        session.run({"x": x}, into={"places": lambda dtype, shape: 1 // 0})
    with pytest.raises(graphrt.InvalidArgument, match="another dtype or size"):
        session.run({"x": x}, into={"places": lambda dtype, shape: np.empty(7, dtype)})
    assert session.run({"x": x})["places"].tolist() == [[1, 3]]


def test_each_tensor_of_a_run_is_shown():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"), helper.make_node("Softmax", ["h"], ["y"], name="last")]
    weight = numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    session, seen = graphrt.Session(model(nodes, [info("x", TensorProto.FLOAT, [1, 3])], [info("y", TensorProto.FLOAT, [1, 3])], [weight])), []
    session.watch(seen.append)
    x = np.float32([[1, 2, 3]])
    y = session(x)
    session.watch(None)
    session(x)
    assert [(row["op"], row["tensor"]) for row in seen][-1] == ("Softmax", "y") and len(seen) == len(session.model.steps)
    np.testing.assert_array_equal(seen[-1]["value"], y)
    np.testing.assert_allclose(seen[0]["value"], x)
