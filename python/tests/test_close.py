# SPDX-License-Identifier: Apache-2.0
"""Session.close and `with`: runs that go on end first, later calls raise."""
import threading
import time

import graphrt
import numpy as np
import pytest
from conftest import linear

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
X = np.ones((2, 4), np.float32)


def test_with():
    with graphrt.Session(linear(), threads=1) as session:
        assert np.array_equal(session(X), X @ WEIGHTS)
        assert not session.closed
    assert session.closed
    session.close()  # again
    with pytest.raises(ValueError), graphrt.Session(linear(), threads=1) as session:
        raise ValueError
    assert session.closed


def calls(session):
    """All that a session can be asked for that needs it."""
    return [lambda: session(X), lambda: session.run({"x": X}), lambda: session.output_dims({"x": X}), session.trim, session.check, lambda: session.tune({"x": X}),
            lambda: session.set_weights({}), lambda: session.profile(None), lambda: session.watch(None), lambda: session.memory, lambda: session.load_info,
            lambda: session.phases, lambda: session.threads, lambda: graphrt.State(session, {}), lambda: graphrt.Pool(session), session.__enter__]


def test_calls_of_a_closed_session():
    session = graphrt.Session(linear(), threads=1)
    session.close()
    for call in calls(session):
        with pytest.raises(graphrt.InvalidArgument, match="the session is closed"):
            call()
    pool = graphrt.Pool()
    with pytest.raises(graphrt.InvalidArgument, match="the session is closed"):
        pool.add(session)
    assert session.device == "cpu" and session.model and [port.name for port in session.inputs] == ["x"] and len(session.outputs) == 1
    assert "graphrt.Session" in repr(session)


def test_it_waits_for_a_run():
    session = graphrt.Session(linear(), threads=1)
    begun, go_on, order = threading.Event(), threading.Event(), []

    def seen(events):
        begun.set()
        go_on.wait()
        order.append("run")

    def close():
        session.close()
        order.append("closed")

    session.profile(seen)
    running, closing = threading.Thread(target=session, args=(X,)), threading.Thread(target=close)
    running.start()
    begun.wait()
    closing.start()
    while not session.closed:
        time.sleep(0.001)
    with pytest.raises(graphrt.InvalidArgument, match="the session is closed"):
        session(X)
    closing.join(0.1)
    assert closing.is_alive()
    go_on.set()
    for thread in running, closing:
        thread.join()
    assert order == ["run", "closed"]


def test_a_run_cannot_close_its_session():
    session, raised = graphrt.Session(linear(), threads=1), []

    def seen(events):
        with pytest.raises(graphrt.InvalidArgument, match="would wait for itself"):
            session.close()
        raised.append(True)

    session.profile(seen)
    session(X)
    assert raised and not session.closed
    session.close()


def test_what_it_was_given_to_goes_on():
    session = graphrt.Session(linear(), threads=1)
    with graphrt.Pool(session) as pool:
        session.close()
        assert np.array_equal(pool.run({"x": X})["y"], X @ WEIGHTS)


def test_threads_run_until_it_is_closed():
    for _ in range(10):
        session, ended = graphrt.Session(linear(), threads=1), []

        def work():
            with pytest.raises(graphrt.InvalidArgument, match="the session is closed"):
                while True:
                    assert np.array_equal(session(X), X @ WEIGHTS)
            ended.append(True)

        threads = [threading.Thread(target=work) for _ in range(4)] + [threading.Thread(target=session.close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ended) == 4
