# SPDX-License-Identifier: Apache-2.0
"""Memory and dtypes: what is copied, what is not, and what comes back."""
import graphrt
import ml_dtypes
import numpy as np
import pytest
from conftest import identity, info, linear, model
from onnx import TensorProto, helper

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
PLAIN = ["float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool", "float16", "float64", "uint32", "uint64"]
EXTENDED = {"BFLOAT16": ml_dtypes.bfloat16, "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
            "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "INT4": ml_dtypes.int4,
            "UINT4": ml_dtypes.uint4, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}


class Borrowed:
    """DLPack, and nothing else: what torch, JAX and CuPy hand over."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", PLAIN)
def test_every_dtype_of_numpy(name):
    session = graphrt.Session(identity(helper.np_dtype_to_tensor_dtype(np.dtype(name)), ["N", 3]))
    x = np.array([[0, 1, 2], [3, 4, 100]]).astype(name)
    for _ in range(3):
        y = session(x)
        assert y.dtype == x.dtype and np.array_equal(x, y)
    assert np.array_equal(session(np.asfortranarray(x)), x)
    assert np.array_equal(session(x.astype(x.dtype.newbyteorder(">"))), x)


@pytest.mark.parametrize("name", EXTENDED)
@pytest.mark.parametrize("shape", [(2, 3), (0, 2), (1, 1), (5, 1)])
def test_every_dtype_of_ml_dtypes(name, shape):
    session = graphrt.Session(identity(getattr(TensorProto, name), ["N", "M"]))
    low = 0 if name.startswith("U") else -2
    x = np.resize(np.arange(low, 5).astype(np.float32), shape).astype(EXTENDED[name])
    for _ in range(3):
        y = session(x)
        assert y.dtype == x.dtype and y.shape == shape and np.array_equal(y.astype(float), x.astype(float))
    if y.dtype.itemsize == 2 or name.startswith("FLOAT8"):
        out = np.empty_like(x)
        assert session.run(x, into={"y": out})["y"] is out and out.tobytes() == x.tobytes()


def test_scalars_lists_and_numbers_take_the_models_dtype():
    session = graphrt.Session(identity(TensorProto.FLOAT, []))
    for x in (2.5, np.float32(2.5), np.array(2.5, np.float32)):
        assert session(x).shape == () and session(x) == 2.5
    with pytest.raises(graphrt.InvalidArgument, match="found float64"):
        session(np.array(2.5))
    linear_session = graphrt.Session(linear())
    assert np.array_equal(linear_session.run({"x": [[1, 2, 3, 4]]})["y"], np.array([[1, 2, 3, 4]]) @ WEIGHTS)


def test_views_that_are_not_dense_are_copied():
    session = graphrt.Session(linear())
    base = np.arange(64, dtype=np.float32).reshape(8, 8)
    for x in (base[::2, ::2], base[:, 1:5], base.T[:, :4], base[::-1, :4]):
        assert np.array_equal(session(x), x @ WEIGHTS)
    raw = np.zeros(4 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(1, 4)  # not aligned
    raw[:] = [[1, 2, 3, 4]]
    assert not raw.flags.aligned
    assert np.array_equal(session(raw), raw @ WEIGHTS)


def test_dense_memory_is_not_copied():
    """An output that is bound over the input is refused, which can only be seen where the memory is the same."""
    session = graphrt.Session(linear())
    memory = np.zeros(16, np.float32)
    x, y = memory[:4].reshape(1, 4), memory[2:5].reshape(1, 3)
    for given, into in ((x, y), (Borrowed(x), y), (memoryview(x), y), (x, Borrowed(y))):
        with pytest.raises(graphrt.InvalidArgument, match="overlap"):
            session.run({"x": given}, into={"y": into})


def test_dlpack_in_and_out():
    session = graphrt.Session(linear())
    x, out = np.ones((2, 4), np.float32), np.zeros((2, 3), np.float32)
    holder = Borrowed(out)
    assert session.run(Borrowed(x), into={"y": holder})["y"] is holder
    assert np.array_equal(out, x @ WEIGHTS)
    assert np.array_equal(np.from_dlpack(session(Borrowed(x))), out)
    assert np.array_equal(session(Borrowed(np.asfortranarray(x))), out)  # strides: copied
    with pytest.raises(graphrt.InvalidArgument, match="float64"):
        session(Borrowed(x.astype(np.float64)))


def test_buffers_of_other_kinds():
    import array
    session = graphrt.Session(identity(TensorProto.FLOAT, ["N"]))
    assert session(array.array("f", [1, 2])).tolist() == [1, 2]
    assert graphrt.Session(identity(TensorProto.UINT8, ["N"]))(b"abc").tolist() == [97, 98, 99]


def test_strings():
    session = graphrt.Session(identity(TensorProto.STRING, ["N", 2]))
    want = [["a", "bc"], ["", "\u00e4\u4e2d"]]
    for x in (np.array(want), np.array(want, object), want, np.array([[s.encode() for s in row] for row in want], object)):
        y = session(x)
        assert y.dtype == object and y.tolist() == want
    odd = np.array([[b"\xff\xfe", b"a"]], object)
    assert session(session(odd)).tolist() == session(odd).tolist()
    assert session(np.zeros((0, 2), "U1")).shape == (0, 2)
    with pytest.raises(TypeError, match="str or bytes, not int"):
        session(np.array([[1, 2]], object))


def sequence_info(name):
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def test_sequences_are_lists():
    session = graphrt.Session(model([helper.make_node("SequenceInsert", ["s", "x"], ["t"])],
                                    [sequence_info("s"), info("x", TensorProto.FLOAT, None)], [sequence_info("t")]))
    x = np.array([1, 2], np.float32)
    assert session.inputs[0].kind == "sequence"
    assert [item.tolist() for item in session([], x)] == [[1, 2]]
    assert [item.tolist() for item in session([x, x[:1]], x)] == [[1, 2], [1], [1, 2]]
    assert [item.tolist() for item in session((3.0, x), x)] == [3, [1, 2], [1, 2]]


def test_optionals_are_none_or_a_value():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    session = graphrt.Session(model([helper.make_node("OptionalHasElement", ["o"], ["has"]), helper.make_node("Identity", ["o"], ["same"])],
                                    [helper.make_value_info("o", kind)],
                                    [info("has", TensorProto.BOOL, []), helper.make_value_info("same", kind)]))
    assert session.inputs[0].kind == "optional"
    has, same = session(None)
    assert not has and same is None
    has, same = session(np.array([1, 2], np.float32))
    assert has and same.tolist() == [1, 2]


def test_too_many_dims():
    session = graphrt.Session(identity(TensorProto.FLOAT, None))
    with pytest.raises(graphrt.InvalidArgument, match="rank 17"):
        session(np.zeros([1] * 17, np.float32))


def test_without_ml_dtypes(monkeypatch):
    from graphrt import _arrays
    monkeypatch.setattr(_arrays, "ml_dtypes", None)
    with pytest.raises(ImportError, match="pip install"):
        _arrays.numpy_dtype("bfloat16")
    assert _arrays.element_dtypes()["bfloat16"] == (None, None)
