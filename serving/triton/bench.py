#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput and latency of a model in Triton: this backend beside Triton's Python backend with onnxruntime inside.

    GRAPHRT_BUILD=BUILD BUILD/serving/triton/bin/python serving/triton/bench.py [--seconds 5] [--rounds 3] [--clients 8] [--json FILE] MODEL.onnx...

(serving/triton/test.sh makes that environment.) A model has one float32 input whose first dim is the batch. Both backends have one instance for
each processor with one thread, and the same dynamic batching. They are measured in turn, several rounds: each keeps CLIENTS requests of one row
in flight, over connections that stay, with requests that were serialised before; the clients are on the same machine. The table has the median
of the rounds. Processor time is the server's, with its helpers': on a machine that has other work, it is what can be compared.
"""
import argparse
import json
import os
import pathlib
import selectors
import shutil
import socket
import statistics
import sys
import sysconfig
import tempfile
import threading
import time

import grpc
import numpy as np
import onnx
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2

sys.path.insert(0, str(pathlib.Path(__file__).parent / "tests"))
import server as servers

PYTHON_MODEL = '''
import sys
sys.path.append(SITE_PACKAGES)
import onnxruntime, numpy, json, os
import triton_python_backend_utils as pb
class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.input, self.output = self.session.get_inputs()[0].name, self.session.get_outputs()[0].name
    def execute(self, requests):
        rows = [pb.get_input_tensor_by_name(r, self.input).as_numpy() for r in requests]
        out = self.session.run([self.output], {self.input: rows[0] if len(rows) == 1 else numpy.concatenate(rows)})[0]
        responses, at = [], 0
        for r in rows:
            responses.append(pb.InferenceResponse([pb.Tensor(self.output, out[at : at + len(r)])]))
            at += len(r)
        return responses
'''


def describe(path):
    """Name and dims of one row of the input, name and rank of the output."""
    graph = onnx.load(path, load_external_data=False).graph
    names = {i.name for i in graph.initializer}
    value = next(i for i in graph.input if i.name not in names)
    dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return value.name, dims[1:], graph.output[0].name, [d.dim_value or -1 for d in graph.output[0].type.tensor_type.shape.dim][1:]


def put_models(repository, stem, path, processors):
    name, dims, output, output_dims = describe(path)
    config = (f"max_batch_size: 8 dynamic_batching {{}} instance_group [ {{ kind: KIND_CPU count: {processors} }} ]\n"
              f'input [ {{ name: "{name}" data_type: TYPE_FP32 dims: {dims} }} ] output [ {{ name: "{output}" data_type: TYPE_FP32 dims: {output_dims} }} ]\n')
    data = path.read_bytes()
    servers.put_model(repository, f"{stem}.graphrt", data, config)
    servers.put_model(repository, f"{stem}.python", data, config)
    (repository / f"{stem}.python" / "1" / "model.py").write_text(PYTHON_MODEL.replace("SITE_PACKAGES", repr(sysconfig.get_path("purelib"))))
    (repository / f"{stem}.python" / "config.pbtxt").write_text('backend: "python"\n' + config)


def http_load(server, name, tensor, clients, seconds):
    """Milliseconds of each request. One thread serves all connections."""
    data = tritonclient.http.InferInput(name[1], list(tensor.shape), "FP32")
    data.set_data_from_numpy(tensor)
    body, json_size = tritonclient.http.InferenceServerClient.generate_request_body([data], outputs=[tritonclient.http.InferRequestedOutput(name[2])])
    header = (f"POST /v2/models/{name[0]}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
              f"Inference-Header-Content-Length: {json_size}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    message, times, chooser = header + body, [], selectors.DefaultSelector()
    for _ in range(clients):
        s = socket.create_connection(("127.0.0.1", server.ports[0]))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chooser.register(s, selectors.EVENT_READ, [time.perf_counter(), b""])
        s.sendall(message)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for key, _ in chooser.select(1):
            state = key.data
            state[1] += key.fileobj.recv(1 << 20)
            head, found, rest = state[1].partition(b"\r\n\r\n")
            if not found or len(rest) < int(head.lower().split(b"content-length: ")[-1].split(b"\r\n")[0]):
                continue
            assert head.startswith(b"HTTP/1.1 200"), state[1][:500]
            now = time.perf_counter()
            times.append((now - state[0]) * 1e3)
            state[:] = now, b""
            key.fileobj.sendall(message)
    for key in list(chooser.get_map().values()):
        key.fileobj.close()
    return times


def grpc_load(server, name, tensor, clients, seconds):
    request = service_pb2.ModelInferRequest(model_name=name[0])
    request.inputs.add(name=name[1], shape=list(tensor.shape), datatype="FP32")
    request.raw_input_contents.append(tensor.tobytes())
    message, times = request.SerializeToString(), []

    def client(end):
        with grpc.insecure_channel(f"127.0.0.1:{server.ports[1]}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            while time.perf_counter() < end:
                begin = time.perf_counter()
                call(message)
                times.append((time.perf_counter() - begin) * 1e3)

    threads = [threading.Thread(target=client, args=(time.perf_counter() + seconds,)) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return times


def processor_ms(process):
    """Milliseconds of processor time that a process and its descendants have used."""
    parents, used = {}, {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(path.parent.name)
        parents[number], used[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {process}
    for _ in range(3):  # the server, its helpers, and what they start
        family |= {p for p, parent in parents.items() if parent in family}
    return sum(used.get(p, 0) for p in family) * 1e3 / os.sysconf("SC_CLK_TCK")


def check_agreement(server, stem, names, tensor):
    """Both backends give the same answer, or nothing is measured."""
    answers = []
    for kind in ("graphrt", "python"):
        data = tritonclient.grpc.InferInput(names[0], list(tensor.shape), "FP32")
        data.set_data_from_numpy(tensor)
        answers.append(server.grpc.infer(f"{stem}.{kind}", [data]).as_numpy(names[1]))
    np.testing.assert_allclose(*answers, rtol=1e-3, atol=1e-3)


def measure(server, stem, path, options):
    name, dims, output, _ = describe(path)
    tensor = np.random.default_rng(0).random([1, *dims], np.float32)
    check_agreement(server, stem, (name, output), tensor)
    for protocol, load in (("HTTP", http_load), ("gRPC", grpc_load)):
        rounds = {"graphrt": [], "python": []}
        for _ in range(options.rounds):
            for kind, results in rounds.items():
                load(server, (f"{stem}.{kind}", name, output), tensor, options.clients, options.seconds / 5)
                before = processor_ms(server.process.pid)
                times = load(server, (f"{stem}.{kind}", name, output), tensor, options.clients, options.seconds)
                spent = (processor_ms(server.process.pid) - before) / len(times)
                results.append((len(times) / options.seconds, *np.percentile(times, [50, 99]), spent))
        ours, theirs = ([statistics.median(column) for column in zip(*rounds[kind])] for kind in ("graphrt", "python"))
        yield {"model": stem, "protocol": protocol, "graphrt": ours, "python": theirs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        backends = servers.make_backends(scratch / "backends")
        # The backend's library looks for its helper and its Python module beside itself.
        shutil.copytree(servers.TRITON / "backends/python", backends / "python")
        stub = servers.TRITON / "python_backend_stubs" / "{}.{}".format(*sys.version_info)
        shutil.copy(stub / "triton_python_backend_stub", backends / "python")
        for path in options.models:
            put_models(scratch / "models", path.stem, path, processors)
        server = servers.Server(scratch / "models", backends, scratch / "log")
        try:
            print(f"{processors} processors, load {os.getloadavg()[0]:.1f}, {options.clients} clients, median of {options.rounds} rounds of {options.seconds} s")
            print("model protocol | graphrt: requests/s p50 p99 ms, processor ms of the server a request | python + onnxruntime | ratio of throughput, p99, processor time")
            for path in options.models:
                for row in measure(server, path.stem, path, options):
                    (a, a50, a99, a_ms), (b, b50, b99, b_ms) = row["graphrt"], row["python"]
                    print(f"{row['model']} {row['protocol']} | {a:.0f} {a50:.2f} {a99:.2f}, {a_ms:.3f} | {b:.0f} {b50:.2f} {b99:.2f}, {b_ms:.3f} | "
                          f"{a / b:.2f} {b99 / a99:.2f} {b_ms / a_ms:.2f}", flush=True)
                    rows.append(row)
        except Exception:
            print("\n".join(l for l in server.log().splitlines() if l.startswith("E")), file=sys.stderr)
            raise
        finally:
            server.stop()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
