# SPDX-License-Identifier: Apache-2.0
"""The process of a model at a batch, for bench/gpu_speed.py: it makes the module once, and runs each task that the starter asks for in a child of its own, as exporters keep memory and change modules,
and what opens a GPU cannot fork. All ends with its process group."""
import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
import warnings
from multiprocessing.connection import wait

import gpu_ours
import gpu_peers
import turns
from gpu_words import Family, say
from serving import reason


def make(family):
    """The module, and its inputs as a file."""
    import numpy as np
    import torch

    import exports
    importlib.import_module(exports.CATALOGUE[family.name][0])
    torch.set_num_threads(1)
    module, inputs, family.channels_last = exports.make(family.name, "full", family.batch)
    family.made = module, inputs
    np.savez(family.inputs, **{f"in{k}": x.numpy() for k, x in enumerate(inputs)})


def compile_default(family):
    gpu_peers.compile_peer(family, "compile", "default", family.args.precisions)


def compile_max(family, precision):
    gpu_peers.compile_peer(family, "compile_max", family.args.compile_max, [precision])


TASKS = {"export": gpu_ours.export, "plan": gpu_ours.plan, "compare": gpu_ours.compare, "narrow": gpu_peers.narrow, "torch": gpu_peers.torch_generated, "compile": compile_default,
         "compile_max": compile_max}


def attempt(family, name, function, *given):
    """Runs a task, and tells the starter how it ended."""
    begin, before, found = time.monotonic(), turns.spent(), {}
    try:
        found = {"well": True, **(function(family, *given) or {})}
    except Exception as error:
        found = {"well": False, "problem": reason(error)}
    say(family.args, "ended", name, found | {"seconds": round(time.monotonic() - begin, 2)} | turns.since(before))


def child(family, name):
    """A task; what it has on the GPU is freed beside others' loads."""
    attempt(family, name, TASKS[name[0]], *name[3:])
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        turns.leave(family.args.lock)


def serve(family, asked):
    """Tasks' names, a JSON line each; ["stop", NAME] ends that task's child."""
    children, rest = {}, b""
    while True:
        for thing in wait([asked, *children]):
            if thing == asked:
                more = os.read(asked, 1 << 16)
                if not more:
                    return
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    begin(family, children, json.loads(line))
            else:
                ended(family, *children.pop(thing))


def begin(family, children, name):
    if name[0] == "stop":
        for process, of in children.values():
            if of == name[1]:
                process.kill()
        return
    process = multiprocessing.get_context("fork").Process(target=child, args=(family, name))
    process.start()
    children[process.sentinel] = process, name


def ended(family, process, name):
    process.join()
    if process.exitcode:
        say(family.args, "ended", name, {"well": False, "problem": f"its process ended with {process.exitcode}"})


def run(args, name, batch, exporters, asked):
    """The process: the first task is to make the module."""
    os.setsid()  # what it starts is stopped with it
    log = os.open(args.work / f"{name}.b{batch}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    warnings.filterwarnings("ignore")
    turns.cpus = args.cpus
    turns.keep_to(1)
    family = Family(args, name, batch)
    attempt(family, ["make", name, batch], gpu_ours.generated if exporters == ["generated"] else make)
    serve(family, asked)


class Keeper:
    """The starter's end of such a process."""

    def __init__(self, args, name, batch, exporters, target=run):
        asked, self.pipe = os.pipe()
        self.process = multiprocessing.get_context("fork").Process(target=self.begin, args=(target, args, name, batch, exporters, asked))
        self.process.start()
        os.close(asked)

    def begin(self, target, args, name, batch, exporters, asked):
        os.close(self.pipe)
        target(args, name, batch, exporters, asked)

    def ask(self, words):
        if self.pipe is None:
            return  # it was stopped
        try:
            os.write(self.pipe, f"{json.dumps(words)}\n".encode())
        except BrokenPipeError:
            pass  # it has ended, which the starter sees

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()  # it has no group of its own yet
        self.process.join()
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
