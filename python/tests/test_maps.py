# SPDX-License-Identifier: Apache-2.0
"""Maps of ai.onnx.ml: dicts, in and out."""
import graphrt.ort
import numpy as np
import onnx
import pytest
from conftest import ML, dictionary, info, model, zip_map
from onnx import TensorProto, helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def vectorizer(key=STRING, value=FLOAT, vocabulary=("a", "b", "c")):
    """Row y of the values that map x has for a vocabulary."""
    names = {"string_vocabulary" if key == STRING else "int64_vocabulary": list(vocabulary)}
    return model([helper.make_node("DictVectorizer", ["x"], ["y"], domain=ML, **names)], [dictionary("x", key, value)],
                 [info("y", value, [1, len(vocabulary)])])


@pytest.mark.parametrize("labels", [[7, -3], ["no", "yes \u00e9"]])
def test_zip_map_gives_dicts_of_pythons_own(labels):
    session = graphrt.Session(zip_map(labels))
    rows = session(np.float32([[0.5, 1], [2, 3]]))
    assert rows == [dict(zip(labels, row)) for row in ([0.5, 1.0], [2.0, 3.0])]
    assert {type(key) for row in rows for key in row} == {type(labels[0])} and type(rows[0][labels[0]]) is float
    assert session(np.zeros((0, 2), np.float32)) == []
    described, = session.outputs
    assert (described.kind, described.element_kind, described.dtype) == ("sequence", "map", "float32")
    assert described.keys == ("int64" if labels[0] == 7 else "string")
    assert session.inputs[0].keys is None


def test_dicts_are_inputs():
    session = graphrt.Session(vectorizer())
    described, = session.inputs
    assert (described.kind, described.element_kind, described.dtype, described.keys) == ("map", "map", "float32", "string")
    for values in ((1, 2), (1.0, 2.0), (np.float32(1), np.float32(2)), (np.float32(1), 2)):
        assert session.run({"x": dict(zip(("c", "a"), values))})["y"].tolist() == [[2, 0, 1]]
    assert session.run({"x": {}})["y"].tolist() == [[0, 0, 0]]
    numbered = graphrt.Session(vectorizer(INT64, FLOAT, (5, 6)))
    assert numbered.run({"x": {6: 1.5, np.int64(9): 4}})["y"].tolist() == [[0, 1.5]]
    texts = graphrt.Session(vectorizer(INT64, STRING, (5, 6)))
    assert texts.run({"x": {6: "six", 5: b"five"}})["y"].tolist() == [["five", "six"]]


def test_what_is_no_such_dict_says_so():
    session, numbered = graphrt.Session(vectorizer()), graphrt.Session(vectorizer(INT64, FLOAT, (5, 6)))
    for wrong in ([1, 2], "ab", np.zeros(2, np.float32), {1: 2.0}):
        with pytest.raises(TypeError):
            session.run({"x": wrong})
    for wrong in ({"5": 1.0}, {5.5: 1.0}):
        with pytest.raises(TypeError):
            numbered.run({"x": wrong})
    with pytest.raises(graphrt.InvalidArgument):
        session.run({"x": {"a": np.float64(1)}})  # as with arrays, what has another dtype is not converted
    with pytest.raises(ValueError):
        session.run({"x": {"a": [1.0, 2.0], "b": [1.0]}})
    assert session.run({"x": {"a": 1.0}})["y"].tolist() == [[1, 0, 0]]


def test_sequences_of_dicts_go_in():
    """An output that is an input."""
    rows = helper.make_value_info("x", helper.make_sequence_type_proto(dictionary("x", INT64, FLOAT).type))
    session = graphrt.Session(model([], [rows], [rows]))
    assert session.run({"x": [{1: 2.0}, {}, {3: 4, 5: 6}]}) == {"x": [{1: 2.0}, {}, {3: 4.0, 5: 6.0}]}
    with pytest.raises(TypeError):
        session.run({"x": [[1.0]]})


def test_maps_of_files(tmp_path):
    path = tmp_path / "map.pb"
    values = helper.make_sequence("values", onnx.SequenceProto.TENSOR, [helper.make_tensor("v", FLOAT, [], [v]) for v in (1.5, 2)])
    path.write_bytes(helper.make_map("map", STRING, [b"a", b"b"], values).SerializeToString())
    assert graphrt.read_pb(path, "map") == {"a": 1.5, "b": 2.0}


def test_a_pool_takes_and_gives_dicts():
    with graphrt.Pool(graphrt.Session(vectorizer(), threads=1)) as pool:
        assert pool.run({"x": {"b": 4}})["y"].tolist() == [[0, 4, 0]]
    with graphrt.Pool(graphrt.Session(zip_map([1, 2]), threads=1)) as pool:
        assert pool.run({"x": np.float32([[3, 4]])})["y"] == [{1: 3.0, 2: 4.0}]


def test_ort_spells_types_of_maps():
    values = graphrt.ort.InferenceSession(zip_map([1, 2])).run_with_ort_values(
        None, {"x": graphrt.ort.OrtValue.ortvalue_from_numpy(np.float32([[3, 4]]))})
    assert values[0].data_type() == "seq(map(int64,tensor(float)))" and not values[0].is_tensor_sequence()
    assert graphrt.ort.InferenceSession(vectorizer()).get_inputs()[0].type == "map(string,tensor(float))"
