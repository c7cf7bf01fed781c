# SPDX-License-Identifier: Apache-2.0
"""Eight threads at once on everything that threads may share. On a free-threaded Python they run truly at once, as no GIL comes back."""
import itertools
import sys
import sysconfig
import threading

import graphrt
import numpy as np
import pytest
from conftest import info, linear, model
from onnx import TensorProto, helper

THREADS = 8
WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


def at_once(work):
    """Run work(k) in eight threads that begin together; raise what one of them raised."""
    barrier, raised = threading.Barrier(THREADS), []

    def run(k):
        try:
            barrier.wait()
            work(k)
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def total():
    """y = a + b"""
    return model([helper.make_node("Add", ["a", "b"], ["y"])], [info(name, TensorProto.FLOAT, ["N"]) for name in "ab"],
                 [info("y", TensorProto.FLOAT, ["N"])])


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_the_module_does_not_bring_the_gil_back():
    assert not sys._is_gil_enabled()


def test_one_session():
    session = graphrt.Session(linear(), threads=1)

    def work(k):
        for n in range(200):
            x = np.full((1 + (n + k) % 5, 4), k + n, np.float32)
            into = np.empty((len(x), 3), np.float32)
            assert np.array_equal(session(x), x @ WEIGHTS)
            assert session.run({"x": x}, into={"y": into})["y"] is into and np.array_equal(into, x @ WEIGHTS)
            assert session.inputs[0].name == "x" and session.model.steps and session.load_info["device"] == "cpu:0"

    at_once(work)


def test_models_sessions_and_pools_are_made_and_dropped():
    shared = graphrt.Model(linear())

    def work(k):
        for _ in range(5):
            x = np.full((2, 4), k, np.float32)
            with graphrt.Pool([graphrt.Session(shared, threads=1), graphrt.Session(shared, threads=1)], contexts=2) as pool:
                futures = [pool.submit({"x": x}) for _ in range(8)]
                assert all(np.array_equal(future.result()["y"], x @ WEIGHTS) for future in futures)
            assert np.array_equal(graphrt.Session(linear(), threads=1)(x), x @ WEIGHTS)

    at_once(work)


def test_a_pool_and_a_stop_are_shared():
    stop = graphrt.Stop()
    with graphrt.Pool(graphrt.Session(linear(), threads=1)) as pool:

        def work(k):
            x = np.full((2, 4), k, np.float32)
            with pytest.raises(graphrt.Cancelled):  # each thread's, once the first one has made fifty runs
                for n in itertools.count():
                    if k == 0 and n == 50:
                        stop.set()
                    assert np.array_equal(pool.run({"x": x}, stop=stop)["y"], x @ WEIGHTS)

        at_once(work)


@pytest.mark.parametrize("kind", [dict, list])
def test_a_container_changes_while_others_run_it(kind):
    session = graphrt.Session(total(), threads=1)
    shared = {"a": np.zeros(64, np.float32), "b": np.zeros(64, np.float32)} if kind is dict else [np.zeros(64, np.float32)] * 2
    keys = ("a", "b") if kind is dict else (0, 1)

    def work(k):
        for n in range(300):
            if k < 2:
                shared[keys[k]] = np.full(64, n, np.float32)  # the one before it goes
            else:
                y = session.run(shared)["y"]
                assert (y == y[0]).all() and y[0] == int(y[0])

    at_once(work)


@pytest.mark.parametrize("kind", [dict, list])
def test_converting_an_input_may_drop_the_others(kind):
    session = graphrt.Session(total(), threads=1)

    class Drops:
        def __array__(self, dtype=None, copy=None):
            feed.clear()
            return np.ones(1 << 16, np.float32)

    feed = {"a": Drops(), "b": np.full(1 << 16, 2, np.float32)} if kind is dict else [Drops(), np.full(1 << 16, 2, np.float32)]
    assert (session.run(feed)["y"] == 3).all()
    assert not feed


def test_an_adapter_of_onnxruntimes_interface():
    from graphrt import ort
    session = ort.InferenceSession(linear(), providers=["CPUExecutionProvider"])

    def work(k):
        binding = session.io_binding()
        for n in range(100):
            x = np.full((2, 4), k + n, np.float32)
            binding.bind_cpu_input("x", x)
            binding.bind_output("y")
            session.run_with_iobinding(binding)
            assert np.array_equal(binding.copy_outputs_to_cpu()[0], x @ WEIGHTS)
            assert np.array_equal(session.run(None, {"x": x})[0], x @ WEIGHTS)

    at_once(work)
