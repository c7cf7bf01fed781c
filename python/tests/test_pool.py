# SPDX-License-Identifier: Apache-2.0
"""graphrt.Pool: futures, coroutines, many threads."""
import asyncio
import threading

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
