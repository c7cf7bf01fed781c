# SPDX-License-Identifier: Apache-2.0
"""A real tritonserver, out of the wheel of nvidia-pytriton, with this build's backend."""
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytriton
import tritonclient.grpc
import tritonclient.http

TRITON = pathlib.Path(pytriton.__file__).parent / "tritonserver"
BUILD = pathlib.Path(os.environ["GRAPHRT_BUILD"])


def free_ports(n):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def put_model(repository, name, data, config="", version=1, file="model.onnx"):
    """Write a version of a model, whole or not at all: the server may be reading."""
    directory = pathlib.Path(repository) / name / str(version)
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / "partial"
    partial.write_bytes(data)
    os.replace(partial, directory / file)
    (directory.parent / "config.pbtxt").write_text('backend: "graphrt"\n' + config)


def make_backends(directory):
    """A directory of backends as the server wants it: ours, and its own for Python."""
    ours = pathlib.Path(directory) / "graphrt"
    ours.mkdir(parents=True)
    os.symlink(BUILD / ".libs" / "libtriton_graphrt.so", ours / "libtriton_graphrt.so")
    return directory


class Server:
    """The process and its clients. `http` and `grpc` are modules of tritonclient with a client each."""

    def __init__(self, repository, backends, log, *options):
        self.command = [str(TRITON / "bin" / "tritonserver"), "--model-repository", str(repository), "--backend-directory", str(backends),
                        "--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false", "--exit-timeout-secs=10", *options]
        self.log_path = pathlib.Path(log)
        self.process = None
        self.ports = free_ports(3)
        self.start()

    def start(self):
        ports = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), self.ports)]
        address = [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
        libraries = os.pathsep.join([str(BUILD / ".libs"), str(TRITON.parents[1] / "nvidia_pytriton.libs")])
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command + ports + address, stdout=log, stderr=log, env=environment)
        self.http = self.new_http()
        self.grpc = self.new_grpc()
        end = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the server does not start:\n" + self.log())
            time.sleep(0.05)

    def answers(self):
        try:
            return self.http.is_server_live() and self.http.get_model_repository_index() is not None
        except Exception:  # every kind of a refused connection
            return False

    def new_http(self, **options):
        return tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.ports[0]}", network_timeout=60, **options)

    def new_grpc(self):
        return tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.ports[1]}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """The exit status of a server that is asked to end; it waits for clients that are connected."""
        self.http.close()
        self.grpc.close()
        self.process.terminate()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def log(self):
        return self.log_path.read_text(errors="replace")
