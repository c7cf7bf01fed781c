# SPDX-License-Identifier: Apache-2.0
"""graphrt.Pool: futures, coroutines, many threads."""
import asyncio
import os
import signal
import threading
import time

import graphrt
import numpy as np
import pytest
from conftest import endless, identity
from conftest import model as model_of
from onnx import TensorProto, helper


@pytest.fixture
def want(digits, images):
    return graphrt.Session(digits, threads=1)(images)


def test_futures_in_any_order(digits, images, want):
    with graphrt.Pool(graphrt.Session(digits, threads=1), contexts=2) as pool:
        futures = [pool.submit(images[i:i + 1]) for i in range(100)]
        for i in reversed(range(100)):
            np.testing.assert_allclose(futures[i].result()["logits"], want[i:i + 1], atol=1e-5)
        assert [result["logits"].shape for result in pool.map(images[i:i + 2] for i in range(3))] == [(2, 10)] * 3


def test_many_sessions_many_threads(digits, images, want):
    model = graphrt.Model(digits)
    sessions = [graphrt.Session(model, threads=1) for _ in range(2)]
    wrong = []
    with graphrt.Pool(sessions, contexts=2, queue=3) as pool:
        def work(offset):
            for i in range(offset, 200, 4):
                if not np.allclose(pool.run({"image": images[i:i + 1]})["logits"], want[i], atol=1e-5):
                    wrong.append(i)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_coroutines_leave_the_loop_free(digits, images, want):
    async def main():
        ticks = 0
        with graphrt.Pool(graphrt.Session(digits, threads=1)) as pool:
            runs = [asyncio.ensure_future(pool.run_async(images)) for _ in range(50)]
            while not all(run.done() for run in runs):
                await asyncio.sleep(0)
                ticks += 1
            return ticks, await asyncio.gather(*runs)
    ticks, results = asyncio.run(main())
    assert ticks > 5
    assert all(np.allclose(result["logits"], want, atol=1e-5) for result in results)


def test_errors_belong_to_their_request(digits, images):
    with graphrt.Pool(graphrt.Session(digits, threads=1)) as pool:
        bad, good = pool.submit(images.astype(np.float64)), pool.submit(images)
        assert good.result()["logits"].shape == (450, 10)
        with pytest.raises(graphrt.InvalidArgument, match="float64"):
            bad.result()
    with pytest.raises(RuntimeError):
        pool.submit(images)


def test_values_that_are_no_tensors():
    sequence = helper.make_tensor_sequence_value_info
    session = graphrt.Session(model_of([helper.make_node("SequenceInsert", ["s", "x"], ["t"]), helper.make_node("SequenceLength", ["s"], ["n"])],
                                       [sequence("s", TensorProto.FLOAT, None), helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                                       [sequence("t", TensorProto.FLOAT, None), helper.make_tensor_value_info("n", TensorProto.INT64, [])]))
    x = np.array([1], np.float32)
    with graphrt.Pool(session) as pool:
        for n in range(3):
            result = pool.run([[x] * n, x + n])
            assert result["n"] == n and [item.tolist() for item in result["t"]] == [[1]] * n + [[1 + n]]
    with graphrt.Pool(graphrt.Session(identity(TensorProto.STRING, [1]))) as pool:
        assert pool.run([["a"]])["y"].tolist() == ["a"]
    with pytest.raises(graphrt.InvalidArgument):
        graphrt.Pool([])


def test_requests_end_in_time_and_when_they_are_told_to():
    session, forever, stop = graphrt.Session(endless(), threads=1), {"n": np.array(2**62)}, graphrt.Stop()
    with graphrt.Pool(session, contexts=1) as pool:
        with pytest.raises(graphrt.DeadlineExceeded):
            pool.run(forever, timeout=0.05)
        futures = [pool.submit(forever, stop=stop) for _ in range(4)]  # one at work, others wait in the library and outside it
        late = pool.submit(forever, timeout=0.05)
        stop.set()
        for future in futures:
            with pytest.raises(graphrt.Cancelled):
                future.result(30)
        with pytest.raises(graphrt.DeadlineExceeded):
            late.result(30)
        assert pool.run({"n": np.array(3)}, priority=1)["y"] == 3


def test_a_coroutine_that_is_cancelled_ends_its_request():
    async def main(pool):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pool.run_async({"n": np.array(2**62)}), 0.05)
        return (await pool.run_async({"n": np.array(3)}))["y"]

    with graphrt.Pool(graphrt.Session(endless(), threads=1), contexts=1) as pool:
        assert asyncio.run(main(pool)) == 3


def test_lanes_counts_and_times(digits, images, want):
    sessions = [graphrt.Session(digits, threads=1), graphrt.Session(endless(), threads=1)]
    with graphrt.Pool() as pool:
        assert pool.add(sessions[0], contexts=1, queue=8) == 0 and pool.add([sessions[1]], contexts=1, share=2.0) == 1
        np.testing.assert_allclose(pool.run(images, lane=0)["logits"], want, atol=1e-5)
        assert pool.run({"n": np.array(3)}, lane=1)["y"] == 3
        assert pool.submit({"n": np.array(4)}, lane=1).result()["y"] == 4
        with pytest.raises(graphrt.DeadlineExceeded):
            pool.run({"n": np.array(2**62)}, lane=1, timeout=0.02)
        stats, times = pool.stats(1), pool.times("run", 1)
        assert (stats["submitted"], stats["succeeded"], stats["late"], stats["running"]) == (3, 2, 1, 0)
        assert times["count"] == 2 == sum(n for _, n in times["buckets"]) and 0 < times["p50_ms"] <= times["p99_9_ms"]
        assert pool.stats()["submitted"] == 1
        for wrong in (lambda: pool.run(images, lane=2), lambda: pool.times("wait"), lambda: pool.stats(2)):
            with pytest.raises(graphrt.InvalidArgument):
                wrong()
        with pytest.raises(IndexError):
            pool.submit(images, lane=2)
    with pytest.raises(TypeError):
        graphrt.Pool(sessions[0], rows=3)
    with pytest.raises(graphrt.InvalidArgument, match="padding"):
        graphrt.Pool(sessions[0], padding="some")


def test_batches(digits, images, want):
    session = graphrt.Session(digits, threads=1)
    with graphrt.Pool(session, contexts=1, queue=64, max_batch=8, max_delay=10.0, padding="none") as pool:
        futures = [pool.try_submit(images[i:i + 1]) for i in range(16)]
        for i, future in enumerate(futures):
            np.testing.assert_allclose(future.result(60)["logits"], want[i:i + 1], atol=1e-5)
        assert (pool.stats()["batches"], pool.stats()["batch_rows"]) == (2, 16)


def test_submissions_that_never_wait():
    session, forever, stop, told = graphrt.Session(endless(), threads=1), {"n": np.array(2**62)}, graphrt.Stop(), []
    with graphrt.Pool(session, contexts=1, queue=1) as pool:
        futures = []
        with pytest.raises(graphrt.Busy):
            for _ in range(3):
                futures.append(pool.try_submit(forever, stop=stop))
        for future in futures:
            future.add_done_callback(lambda done: told.append(type(done.exception())))
        stop.set()
        for future in futures:
            with pytest.raises(graphrt.Cancelled):
                future.result(30)
        pool.drain()
        assert told == [graphrt.Cancelled] * 2 and pool.stats()["refused"] == 1
        with pytest.raises(graphrt.Cancelled):
            pool.try_submit(forever, stop=stop).result(30)
        waits = pool.try_submit(forever)
        with pytest.raises(graphrt.Busy):
            pool.drain(0.02)
        pool.cancel()
        with pytest.raises(graphrt.Cancelled):
            waits.result(30)
        ends = pool.try_submit(forever)
        with pytest.raises(graphrt.DeadlineExceeded):
            pool.shutdown(0.02)
        with pytest.raises(graphrt.Cancelled):
            ends.result(30)
        with pytest.raises(graphrt.Cancelled):
            pool.run({"n": np.array(1)})


def test_streams_with_state_keep_their_order():
    nodes = [helper.make_node("Add", ["sum", "sum"], ["twice"]), helper.make_node("Add", ["twice", "x"], ["next"]),
             helper.make_node("Neg", ["next"], ["y"])]
    two = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "sum", "y", "next")]
    session, ones = graphrt.Session(model_of(nodes, two[:2], two[2:]), threads=1), np.ones(2, np.float32)
    states = [graphrt.State(session, {"next": "sum"}) for _ in range(4)]
    with graphrt.Pool(session, contexts=3, queue=2) as pool:
        futures = [[pool.submit({"x": ones}, state=state) for _ in range(20)] for state in states]
        for stream in futures:
            for step, future in enumerate(stream):
                outputs = future.result(60)
                assert list(outputs) == ["y"] and outputs["y"][0] == -(2.0**(step + 1) - 1)
        pool.drain()
        assert pool.run({"x": ones}, state=states[0])["y"][0] == -(2.0**21 - 1)
        with pytest.raises(graphrt.InvalidArgument, match="'sum' belongs to the state"):
            pool.run({"x": ones, "sum": ones}, state=states[0])
    assert states[1].save()["sum"][0] == 2.0**20 - 1


def test_a_session_is_replaced(digits, images, want):
    model = graphrt.Model(digits)
    with graphrt.Pool(graphrt.Session(model, threads=1)) as pool:
        pool.replace(0, graphrt.Session(model, threads=1))
        np.testing.assert_allclose(pool.run(images)["logits"], want, atol=1e-5)
        with pytest.raises(graphrt.InvalidArgument, match="another model"):
            pool.replace(0, graphrt.Session(endless()))


def test_processes_that_are_killed_are_replaced(digits, images, want):
    with graphrt.Pool() as pool:
        lane = pool.add_processes(graphrt.Model(digits), ["cpu", "cpu"], threads=1)
        for kill in range(3):
            np.testing.assert_allclose(pool.run(images, lane=lane)["logits"], want, atol=1e-5)
            before = pool.process(kill % 2, lane=lane)
            os.kill(before["pid"], signal.SIGKILL)
            futures = [pool.submit(images[i:i + 1], lane=lane) for i in range(8)]
            for i, future in enumerate(futures):
                np.testing.assert_allclose(future.result(60)["logits"], want[i:i + 1], atol=1e-5)
            for _ in range(1000):  # the other one may have served all of them: nobody has missed it yet
                now = pool.process(kill % 2, lane=lane)
                if now["pid"] and now["started"] > before["started"]:
                    break
                pool.submit(images[:1], lane=lane).result(60)
                time.sleep(0.01)
        assert pool.process(0, lane=lane)["started"] == 3
        with pytest.raises(graphrt.DeviceError, match="nosuch"):
            pool.add_processes(graphrt.Model(digits), ["nosuch"])
        with pytest.raises(graphrt.Unsupported, match="leave multiprocessors 0"):
            pool.add_processes(graphrt.Model(digits), ["cpu"], multiprocessors=8)
        with pytest.raises(graphrt.Unsupported):
            pool.replace(0, graphrt.Session(digits), lane=lane)
