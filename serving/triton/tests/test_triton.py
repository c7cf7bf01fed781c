# SPDX-License-Identifier: Apache-2.0
"""The backend in a real server, over HTTP and gRPC."""
import pathlib
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import models
import server as servers

ROOT = pathlib.Path(__file__).parents[3]
PROTOCOLS = [(tritonclient.http, "http"), (tritonclient.grpc, "grpc")]


def infer(protocol, client, name, arrays, outputs=None, types=None, **options):
    """Results by name."""
    inputs = []
    for key, array in arrays.items():
        inputs.append(protocol.InferInput(key, list(array.shape), (types or {}).get(key) or np_to_triton_dtype(array.dtype)))
        inputs[-1].set_data_from_numpy(array)
    wanted = [protocol.InferRequestedOutput(o) for o in outputs] if outputs else None
    result = client.infer(name, inputs, outputs=wanted, **options)
    response = result.get_response()
    named = response["outputs"] if isinstance(response, dict) else response.outputs
    return {o: result.as_numpy(o) for o in (x["name"] if isinstance(x, dict) else x.name for x in named)}


@pytest.fixture(params=PROTOCOLS, ids=["http", "grpc"])
def ask(request, server):
    protocol, name = request.param
    return lambda *args, **options: infer(protocol, getattr(server, name), *args, **options)


def statistics(server, name):
    return server.http.get_inference_statistics(name)["model_stats"][0]


def digits():
    return np.load(ROOT / "models/digits/test_images.npy"), np.load(ROOT / "models/digits/test_labels.npy")


def test_configurations_are_completed(server):
    config = server.http.get_model_config("digits")
    assert config["max_batch_size"] == 4 and "dynamic_batching" in config
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] == [("image", "TYPE_FP32", [1, 8, 8])]
    assert [(o["name"], o["data_type"], o["dims"]) for o in config["output"]] == [("logits", "TYPE_FP32", [10])]
    fixed = server.http.get_model_config("fixed")
    assert fixed["max_batch_size"] == 0 and [i["dims"] for i in fixed["input"]] == [[2, 3], [2, 3]]
    assert fixed["output"][1]["dims"] == [1], "Triton has no scalars"
    optional = {i["name"]: i["optional"] for i in server.http.get_model_config("with_default")["input"]}
    assert optional == {"a": False, "b": True}


@pytest.mark.parametrize("name", ["digits", "plan", "mirrored"])
def test_digits_are_recognised(ask, name):
    images, labels = digits()
    right = sum(int((ask(name, {"image": images[i : i + 3]})["logits"].argmax(1) == labels[i : i + 3]).sum()) for i in range(0, 450, 3))
    assert right == 447


@pytest.mark.parametrize("name, says", [("pinned", "copied to page-locked memory first"), ("unpinned", "left to the driver, as input_pinned_memory is off")])
def test_large_inputs_of_gpus(ask, server, name, says):
    assert f"model '{name}' on mirror:1: large inputs in pageable memory are {says}" in server.log()
    for rows in (1, 3, 4):
        x = np.random.default_rng(rows).random((rows, 40000), np.float32)
        assert np.array_equal(ask(name, {"x": x})["y"], x * np.float32(3))


def test_threads_share_large_copies(server):
    """Several requests at once, of 3 to 11 MB and no multiple of a cache line."""
    assert "3 threads help to copy large inputs" in server.log()

    def one(rows):
        x = np.random.default_rng(rows).random((rows, 700001), np.float32)
        return np.array_equal(infer(tritonclient.grpc, server.new_grpc(), "large", {"x": x})["y"], x * np.float32(3))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(one, [4, 1, 3, 4, 2, 4]))


def test_the_program_of_the_document(server):
    program = re.search(r"```python\n(.*?)```", (ROOT / "docs/triton.md").read_text(), re.S).group(1)
    out = subprocess.run([sys.executable, "-c", program.replace("localhost:8000", f"127.0.0.1:{server.ports[0]}")], cwd=ROOT, capture_output=True,
                         text=True, check=True).stdout
    assert out.strip() == str(digits()[1][:2])


def test_the_configuration_of_the_document(server):
    assert server.http.get_model_config("documented")["max_batch_size"] == 16
    assert "documented/1/model.onnx on cpu, 1 threads an operator" in server.log()
    assert "is not used" not in server.log(), "a parameter that the backend does not know"


def test_instances_share_the_processors(server):
    import os

    cores = len(os.sched_getaffinity(0))
    line = [l for l in server.log().splitlines() if "model 'digits'" in l and "threads an operator" in l]
    assert len(line) == 1, "one session for both instances"
    assert int(line[0].split(",")[-1].split()[0]) <= max(1, cores // 2)


@pytest.mark.parametrize("name", ["digits", "mirrored"])
def test_requests_become_batches(server, name):
    images, labels = digits()
    before = statistics(server, name)
    clients = threading.local()

    def one(i):
        if not hasattr(clients, "grpc"):
            clients.grpc = server.new_grpc()
        return infer(tritonclient.grpc, clients.grpc, name, {"image": images[i : i + 1]})["logits"].argmax(1)[0]

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(one, range(450)))
    assert int((np.array(found) == labels).sum()) == 447
    after = statistics(server, name)
    assert int(after["inference_count"]) - int(before["inference_count"]) == 450
    assert int(after["execution_count"]) - int(before["execution_count"]) < 450
    assert int(after["inference_stats"]["compute_infer"]["ns"]) > 0


@pytest.mark.parametrize("padding, rows", [("none", [1, 3, 5, 7]), ("power_of_two", [1, 4, 7, 7]), ("full", [7, 7, 7, 7]), ("by_device", [1, 4, 7, 7])])
def test_batches_are_padded(ask, padding, rows):
    for n, of in zip([1, 3, 5, 7], rows):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        assert np.array_equal(ask(f"padded_{padding}", {"x": x})["y"], x + of)


def test_batches_of_strings_are_padded(ask):
    a = np.array([["ab", ""], ["grün", "x" * 3000], ["", "last"]], dtype=object)
    c = ask("padded_strings", {"a": a, "b": a}, types={"a": "BYTES", "b": "BYTES"})["c"]
    assert [[s.decode() for s in row] for row in c] == [[2 * s for s in row] for row in a]


def counts_failures(server, model, seconds=5):
    """Whether the server comes to count a failure: it answers before it counts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if int(statistics(server, model)["inference_stats"]["fail"]["count"]) >= 1:
            return True
        time.sleep(0.05)
    return False


def test_a_bad_request_spoils_no_batch(server):
    """One index beyond the table: only its request fails, though all were in one run."""
    barrier = threading.Barrier(4)

    def one(index):
        client = server.new_grpc()
        client.is_server_live()
        barrier.wait()
        try:
            return infer(tritonclient.grpc, client, "picked", {"i": np.array([[index]])})["y"][0, 0]
        except InferenceServerException as e:
            return e.message()

    with ThreadPoolExecutor(4) as threads:
        good1, bad, good2, good3 = threads.map(one, [3, 11, 7, 0])
    assert (good1, good2, good3) == (30, 70, 0)
    assert "11" in bad and "Gather" in bad
    assert counts_failures(server, "picked")


def test_fixed_shapes_and_scalars(ask):
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    out = ask("fixed", {"a": a, "b": a})
    assert (out["sum"] == 2 * a).all() and out["total"].tolist() == [30]
    assert set(ask("fixed", {"a": a, "b": a}, outputs=["total"])) == {"total"}


def test_sizes_that_depend_on_data(ask):
    for n in (0, 3, 8):
        x = np.zeros(8, np.float32)
        x[8 - n :] = 1
        assert (ask("found", {"x": x})["where"] == np.arange(8 - n, 8)).all()


def test_strings(ask):
    a = np.array([["ab", ""], ["grün", "x" * 3000]], dtype=object)
    b = np.array([["c", "d"], ["", "y"]], dtype=object)
    c = ask("joined", {"a": a, "b": b}, types={"a": "BYTES", "b": "BYTES"})["c"]
    assert [[s.decode() for s in row] for row in c] == [["abc", "d"], ["grün", "x" * 3000 + "y"]]


def test_inputs_that_are_left_out(ask):
    a = np.array([[1, 2]], np.float32)
    assert (ask("with_default", {"a": a})["c"] == [[2, 3]]).all()
    assert (ask("with_default", {"a": a, "b": np.array([5, 7], np.float32)})["c"] == [[6, 9]]).all()


def test_inputs_at_any_address(server):
    """HTTP's JSON is in front of the data and has any length, so the data is aligned to nothing."""
    images, labels = digits()
    for n in range(1, 9):
        out = infer(tritonclient.http, server.http, "digits", {"image": images[:4]}, request_id="x" * n)
        assert (out["logits"].argmax(1) == labels[:4]).all()


@pytest.mark.parametrize("name, arrays, text", [
    ("digits", {"image": np.zeros((1, 1, 8, 9), np.float32)}, "shape"),
    ("digits", {"image": np.zeros((1, 1, 8, 8), np.float64)}, "data-type"),
    ("digits", {"pixels": np.zeros((1, 1, 8, 8), np.float32)}, "pixels"),
    ("digits", {"image": np.zeros((5, 1, 8, 8), np.float32)}, "batch"),
    ("digits", {}, "1 input"),
    ("nosuch", {"image": np.zeros((1, 1, 8, 8), np.float32)}, "nosuch"),
])
def test_bad_requests(ask, name, arrays, text):
    with pytest.raises(InferenceServerException, match=text):
        ask(name, arrays)


def test_data_of_another_size_than_its_dims(server):
    image = tritonclient.http.InferInput("image", [1, 1, 8, 8], "FP32")
    image.set_data_from_numpy(np.zeros((1, 1, 8, 8), np.float32))
    image._raw_data = image._raw_data[:100]
    image._parameters["binary_data_size"] = 100
    with pytest.raises(InferenceServerException, match="100"):
        server.http.infer("digits", [image])


@pytest.mark.parametrize("name, text", [
    ("damaged", "ONNX"),
    ("misdescribed", r"'x' has dims \[5\] in the configuration and \[4\] in the model"),
    ("misnamed", "no output 'z'"),
    ("unbatchable", "max_batch_size is 4"),
    ("padded_most", "'most' is none of: none, power_of_two, full"),
])
def test_bad_models_say_what_is_wrong(server, name, text):
    with pytest.raises(InferenceServerException, match=text):
        server.http.load_model(name)
    assert server.http.is_model_ready("digits")


def test_states_of_sequences(server):
    """Two sequences, mixed: each has its own sum."""
    sums = {1: 0.0, 2: 0.0}
    for step in range(1, 6):
        for sequence in (1, 2):
            sums[sequence] += step * sequence
            y = infer(tritonclient.grpc, server.grpc, "counter", {"x": np.array([[step * sequence]], np.float32)}, sequence_id=sequence,
                      sequence_start=step == 1, sequence_end=step == 5)["y"]
            assert y[0, 0] == sums[sequence]


def test_cancelled_requests_are_not_run(server):
    """Many wait behind one another, most are cancelled: these do not reach the model."""
    x = np.ones((4, 384), np.float32)
    data = tritonclient.grpc.InferInput("x", [4, 384], "FP32")
    data.set_data_from_numpy(x)
    before = statistics(server, "slow")
    ends, done = [], threading.Semaphore(0)

    def end(result, error):
        ends.append(error)
        done.release()

    calls = [server.grpc.async_infer("slow", [data], end) for _ in range(200)]
    for call in calls[1:]:
        call.cancel()
    for _ in calls:
        assert done.acquire(timeout=60)
    assert sum(error is not None for error in ends) >= 150
    assert infer(tritonclient.grpc, server.grpc, "slow", {"x": x})["y"].shape == (4, 384)
    runs = int(statistics(server, "slow")["execution_count"]) - int(before["execution_count"])
    assert runs < 150, runs


def test_reloads_under_load(server, repository):
    """The model changes 10 times while 4 clients ask: every answer is that of one version of it, and none is lost."""
    stop = threading.Event()
    factors = [2.0]
    x = np.arange(8, dtype=np.float32).reshape(2, 4) + 1

    def client(_):
        mine, n = server.new_grpc(), 0
        while not stop.is_set():
            y = infer(tritonclient.grpc, mine, "scaled", {"x": x})["y"]
            assert any((y == x * f).all() for f in list(factors)), y
            n += 1
        return n

    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(client, i) for i in range(4)]
        try:
            for factor in range(3, 13):
                factors.append(float(factor))
                servers.put_model(repository, "scaled", models.scaled(factor))
                server.http.load_model("scaled")
                assert (infer(tritonclient.http, server.http, "scaled", {"x": x})["y"] == x * factor).all()
        finally:
            stop.set()
        assert min(a.result() for a in answers) > 5


def test_killed_and_started_again(repository, backends, tmp_path):
    """kill -9 in the middle of 4 clients' work, twice: they try again, and every answer is right."""
    server = servers.Server(repository, backends, tmp_path / "log")
    images, labels = digits()
    expected = infer(tritonclient.http, server.http, "digits", {"image": images[:4]})["logits"]
    stop = threading.Event()

    def client(k):
        mine, answers, failures = server.new_http(), 0, 0
        while not stop.is_set():
            try:
                found = infer(tritonclient.http, mine, "digits", {"image": images[k : k + 1]})["logits"]
            except Exception:  # refused, reset, not ready yet
                failures += 1
                time.sleep(0.02)
                mine.close()
                mine = server.new_http()
                continue
            assert np.allclose(found[0], expected[k], rtol=1e-5, atol=1e-5)
            answers += 1
        mine.close()  # a server that is asked to end waits for its connections
        return answers, failures

    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(client, k) for k in range(4)]
        try:
            for _ in range(2):
                time.sleep(0.3)
                server.kill()
                server.start()
            while not server.http.is_model_ready("digits"):
                time.sleep(0.05)
            time.sleep(0.3)
        finally:
            stop.set()
        assert all(answers > 10 and failures > 0 for answers, failures in (r.result() for r in results))
    assert server.stop() == 0
