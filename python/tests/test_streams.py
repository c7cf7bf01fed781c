# SPDX-License-Identifier: Apache-2.0
"""Streams of arrays in a GPU's memory, as DLPack has them. The tests' device "mirror" stands for the GPU: its memory is the host's, so NumPy
arrays can be said to lie there."""
import ctypes

import graphrt
import numpy as np
import pytest
from conftest import linear

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
CUDA = 2


class OnGpu:
    """An array whose DLPack says that it is on cuda:0. `streams` are those that it was asked for."""

    def __init__(self, array, versioned=True, refuses=None):
        self.array, self.versioned, self.refuses, self.streams = array, versioned, refuses, []

    def __dlpack_device__(self):
        return CUDA, 0

    def __dlpack__(self, *, stream=None, **more):
        if self.refuses:
            raise self.refuses
        if not self.versioned and more:
            raise TypeError("unexpected keyword argument")
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)).value = CUDA
        return capsule


def aligned(shape):
    """Memory as GPUs need it."""
    raw = np.zeros(int(np.prod(shape)) * 4 + 64, np.uint8)
    return raw[-raw.ctypes.data % 64:][:int(np.prod(shape)) * 4].view(np.float32).reshape(shape)


@pytest.fixture
def session():
    try:
        return graphrt.Session(linear(), "mirror:0", fallback="cpu")
    except graphrt.DeviceError as error:
        pytest.skip(f"GRAPHRT_BACKEND_PATH has no module of the mirror device: {str(error).splitlines()[0]}")


@pytest.fixture
def x():
    array = aligned((2, 4))
    array[:] = np.arange(8).reshape(2, 4)
    return array


def test_producers_are_asked_for_the_stream_of_the_run(session, x):
    given, into = OnGpu(x), OnGpu(aligned((2, 3)))
    for _ in range(3):
        assert session.run({"x": given}, into={"y": into})["y"] is into
        assert np.array_equal(into.array, x @ WEIGHTS)
        into.array[:] = 0
    assert given.streams == into.streams == given.streams[:1] * 3, "the context's own, each time"
    assert given.streams[0] not in (None, 0, 1, 2, -1)


def test_producers_older_than_dlpack_1(session, x):
    given = OnGpu(x, versioned=False)
    assert np.array_equal(session(given), x @ WEIGHTS) and len(given.streams) == 1


def test_what_a_producer_raises_is_seen(session, x):
    with pytest.raises(BufferError, match="another device"):
        session(OnGpu(x, refuses=BufferError("another device")))


def test_memory_of_a_gpu_has_to_be_dense(session):
    with pytest.raises(graphrt.InvalidArgument, match="dense and row-major"):
        session(OnGpu(aligned((4, 2)).T))


def stream_of(session, x):
    """A stream that exists: the one that the session's first context has."""
    given = OnGpu(x)
    session(given)
    return given.streams[0]


def test_runs_are_enqueued_on_the_stream_that_is_given(session, x):
    class Torch:
        cuda_stream = stream_of(session, x)

    class CuPy:
        ptr = Torch.cuda_stream

    class Protocol:
        def __cuda_stream__(self):
            return 0, Torch.cuda_stream

    for stream in (Torch.cuda_stream, Torch(), CuPy(), Protocol()):
        given, into = OnGpu(x), OnGpu(aligned((2, 3)))
        assert session.run({"x": given}, into={"y": into}, stream=stream) == {"y": into}
        assert given.streams == into.streams == [Torch.cuda_stream]
        session(OnGpu(x))  # waits for that stream, which is its own
        assert np.array_equal(into.array, x @ WEIGHTS)


def test_outputs_that_are_not_bound_are_left_out(session, x):
    assert session.run([OnGpu(x)], stream=stream_of(session, x)) == {}


def test_what_a_stream_cannot_have(session, x):
    into, stream = {"y": OnGpu(aligned((2, 3)))}, stream_of(session, x)
    with pytest.raises(graphrt.InvalidArgument, match="'x' is in pageable host memory"):
        session.run([x], into=into, stream=stream)
    with pytest.raises(graphrt.InvalidArgument, match="not waited for"):
        session.run([OnGpu(x)], ["y"], into, stream=stream)
    with pytest.raises(graphrt.InvalidArgument, match="not waited for"):
        session.run([OnGpu(x)], into=into, stream=stream, timeout=1)
    with pytest.raises(TypeError, match="a stream is an int"):
        session.run([OnGpu(x)], into=into, stream="0")
    with pytest.raises(graphrt.Unsupported, match="no streams"):
        graphrt.Session(linear()).run([x], stream=1)
    assert np.array_equal(session(OnGpu(x)), x @ WEIGHTS), "the session goes on"
