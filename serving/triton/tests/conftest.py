# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess

import pytest

import models
import server as servers

ROOT = pathlib.Path(__file__).parents[3]
SEQUENCES = """
sequence_batching {
  direct {}
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "state" output_name: "state_out" data_type: TYPE_FP32 dims: [ 1 ]
            initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } ]
}
max_batch_size: 8
"""


@pytest.fixture(scope="session")
def backends(tmp_path_factory):
    return servers.make_backends(tmp_path_factory.mktemp("backends"))


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """Models whose configuration says no more than it must."""
    path = tmp_path_factory.mktemp("models")
    put = servers.put_model
    put(path, "digits", (ROOT / "models/digits/digits.onnx").read_bytes(), "instance_group [ { kind: KIND_CPU count: 2 } ]")
    plan = path / "digits.grt"
    subprocess.run([servers.BUILD / "graphc", "optimize", ROOT / "models/digits/digits.onnx", "-o", plan], check=True, capture_output=True)
    put(path, "plan", plan.read_bytes(), file="model.grt")
    plan.unlink()
    put(path, "picked", models.picked(), "dynamic_batching { max_queue_delay_microseconds: 20000 } instance_group [ { kind: KIND_CPU count: 1 } ]")
    put(path, "fixed", models.fixed())
    put(path, "found", models.found())
    put(path, "joined", models.joined())
    put(path, "with_default", models.with_default())
    put(path, "counter", models.counter(), SEQUENCES)
    put(path, "slow", models.slow(), "instance_group [ { kind: KIND_CPU count: 1 } ]")
    put(path, "scaled", models.scaled(2))
    documented = re.search(r"```pbtxt\n(.*?)```", (ROOT / "docs/triton.md").read_text(), re.S).group(1)
    put(path, "documented", (ROOT / "models/digits/digits.onnx").read_bytes(), documented.replace('backend: "graphrt"', ""))
    # A device with memory of its own, which simulates a GPU.
    mirror = 'instance_group [ { kind: KIND_MODEL count: 2 } ] parameters [ { key: "device" value: { string_value: "mirror:1" } } ]'
    put(path, "mirrored", (ROOT / "models/digits/digits.onnx").read_bytes(), mirror)
    put(path, "unpinned", models.scaled(3, 40000), mirror + " optimization { input_pinned_memory { enable: false } }")
    put(path, "pinned", models.scaled(3, 40000), mirror)
    put(path, "large", models.scaled(3, 700001), mirror)
    for padding in ("none", "power_of_two", "full", "most"):
        parameter = f'parameters [ {{ key: "padding" value: {{ string_value: "{padding}" }} }} ]'
        put(path, f"padded_{padding}", models.counted(), f"max_batch_size: 7 {parameter}")
    put(path, "padded_strings", models.joined(), 'max_batch_size: 7 parameters [ { key: "padding" value: { string_value: "full" } } ]')
    put(path, "padded_by_device", models.counted(), "max_batch_size: 7 " + mirror)
    put(path, "damaged", (ROOT / "models/digits/digits.onnx").read_bytes()[:5000])
    put(path, "misdescribed", models.scaled(2), 'max_batch_size: 4 input [ { name: "x" data_type: TYPE_FP32 dims: [ 5 ] } ]')
    put(path, "misnamed", models.scaled(2), 'output [ { name: "z" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]')
    put(path, "unbatchable", models.fixed(), "max_batch_size: 4")
    return path


@pytest.fixture(scope="session")
def server(repository, backends, tmp_path_factory):
    s = servers.Server(repository, backends, tmp_path_factory.mktemp("log") / "server.log", "--backend-config=graphrt,copy-threads=3")
    yield s
    assert s.stop() == 0, s.log()[-4000:]
