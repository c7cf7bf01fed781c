# SPDX-License-Identifier: Apache-2.0
"""graphrt.ray on a local cluster with worker processes."""
import json
import os
import pathlib
import re
import urllib.error
import urllib.request

import numpy as np
import pytest
import ray
from ray import serve

import graphrt
import graphrt.ray

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=4, num_gpus=0, include_dashboard=False, object_store_memory=150 << 20, log_to_driver=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": 18765})
    yield
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("plan") / "digits.grt")
    graphrt.compile(str(ROOT / "models/digits/digits.onnx"), path)
    return path


@pytest.fixture(scope="module")
def digits():
    return np.load(ROOT / "models/digits/test_images.npy"), np.load(ROOT / "models/digits/test_labels.npy")


@pytest.fixture(scope="module")
def handle(plan):
    return serve.run(graphrt.ray.deployment(plan, num_replicas=2, max_batch_size=8, batch_wait_timeout_s=0.05, ray_actor_options={"num_cpus": 0.5}).bind())


@pytest.mark.parametrize("number", [0, 1])
def test_the_programs_of_the_document(number, tmp_path, monkeypatch, capsys, digits):
    program = re.findall(r"```python\n(.*?)```", (ROOT / "docs/ray.md").read_text(), re.S)[number]
    (tmp_path / "models").symlink_to(ROOT / "models")
    program = program.replace('"digits.grt"', repr(str(tmp_path / "digits.grt")))
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/ray.md", "exec"), {})
    said = capsys.readouterr().out
    assert "447 of 450" in said if number == 0 else str(digits[1][:10]) in said
    serve.delete("default")


def test_batches_of_a_dataset(plan, digits):
    images, labels = digits
    dataset = ray.data.from_items([{"image": i, "label": l, "pid": 0} for i, l in zip(images, labels)], override_num_blocks=8)
    scored = dataset.map_batches(graphrt.ray.Scorer, fn_constructor_kwargs={"model": plan, "keep": ["label"]}, batch_size=32, concurrency=2, num_cpus=1)
    rows = scored.take_all()
    assert len(rows) == 450 and set(rows[0]) == {"label", "logits"}
    assert sum(int(r["logits"].argmax() == r["label"]) for r in rows) == 447


def test_a_column_that_is_missing(plan):
    with pytest.raises(Exception, match="no column image, but picture"):
        ray.data.from_items([{"picture": 1}]).map_batches(graphrt.ray.Scorer, fn_constructor_kwargs={"model": plan}, concurrency=1, num_cpus=1).take_all()


def test_a_session_has_what_ray_assigns(plan):
    @ray.remote(num_cpus=2)
    def threads():
        return graphrt.ray.session(plan).threads

    assert ray.get(threads.remote()) == min(2, len(os.sched_getaffinity(0)))


def test_requests_of_replicas(handle, digits):
    images, labels = digits
    rows = [slice(i, i + 1 + i % 3) for i in range(300)]
    answers = [handle.remote({"image": images[r]}) for r in rows]
    right = [int((a.result()["logits"].argmax(1) == labels[r]).sum()) for a, r in zip(answers, rows)]
    assert sum(right) >= 0.98 * sum(r.stop - r.start for r in rows)


def test_a_bad_request_spoils_no_batch(handle, digits):
    images, _ = digits
    good = [handle.remote({"image": images[i : i + 1]}) for i in range(3)]
    bad = [handle.remote({"image": np.zeros((1, 1, 9, 9), np.float32)}), handle.remote({"picture": images[:1]}), handle.remote({"image": images[:1].astype(np.float64)})]
    good += [handle.remote({"image": images[i : i + 1]}) for i in range(3)]
    assert all(g.result()["logits"].shape == (1, 10) for g in good)
    for b, text in zip(bad, ("image", "picture", "float64")):
        with pytest.raises(Exception, match=text):
            b.result()


def post(data):
    request = urllib.request.Request("http://127.0.0.1:18765/", data)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_http(handle, digits):
    images, labels = digits
    status, answer = post(json.dumps({"image": images[:5].tolist()}).encode())
    assert status == 200 and (np.array(answer["logits"]).argmax(1) == labels[:5]).all()
    for bad in (b"no json", b"[1]", b'{"picture": [1]}', b'{"image": [[1, 2], [3]]}'):
        status, answer = post(bad)
        assert status == 400 and answer["error"]
