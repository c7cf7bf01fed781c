# SPDX-License-Identifier: Apache-2.0
"""Processes that measure for bench/gpu_speed.py, one request after another (serving.py is the other end). One that fails, or takes too long, is replaced by a fresh one."""
import json
import os
import select
import signal
import subprocess
import time


class Station:
    """`kind`: the tasks that it takes. `task`: what it is at work on."""

    def __init__(self, kind, command, env, log):
        self.kind, self.command, self.env, self.log = kind, [str(part) for part in command], env, log
        self.process = self.task = None
        self.failures = 0
        self.start()

    def start(self):
        asked, self.pipe = os.pipe()
        self.heard, said = os.pipe()
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self.command, stdin=asked, stdout=said, stderr=log, env=self.env, start_new_session=True)
        os.close(asked)
        os.close(said)
        os.set_blocking(self.heard, False)
        self.rest, self.ready, self.task = b"", False, None

    def idle(self):
        return self.ready and self.task is None

    def ask(self, task, request):
        self.task, self.begin = task, time.monotonic()
        try:
            os.write(self.pipe, f"{json.dumps(request, default=str)}\n".encode())
        except BrokenPipeError:
            pass  # it has ended, which answers() tells

    def answers(self):
        """What it has said since; behind its end an answer that says so."""
        said = []
        while True:
            try:
                more = os.read(self.heard, 1 << 16)
            except BlockingIOError:
                break
            if not more:
                said.append({"gone": True})
                break
            *lines, self.rest = (self.rest + more).split(b"\n")
            said += [json.loads(line) for line in lines]
        self.ready = self.ready or any("ready" in answer for answer in said)
        return said

    def answer(self, request, seconds):
        """For who measures one thing at a time: the last that was found; an error with the reason if there is none in time."""
        end, found = time.monotonic() + seconds, None
        self.ask(request, request)
        while time.monotonic() < end:
            select.select([self.heard], [], [], 0.1)
            for said in self.answers():
                found = said.get("found", found)
                if "ended" in said or "gone" in said:
                    self.task = None
                    problem = f"its process ended: {self.last_words()}" if "gone" in said else said["ended"].get("problem")
                    if problem:
                        self.restart()
                        raise RuntimeError(problem)
                    return found
        self.restart()
        raise RuntimeError(f"not measured in {seconds} s")

    def restart(self):
        self.stop()
        self.failures += 1
        self.start()

    def last_words(self):
        with open(self.log, "rb") as log:
            lines = log.read()[-2000:].decode(errors="replace").strip().splitlines()
        return lines[-1][-200:] if lines else "it says nothing"

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for pipe in (self.pipe, self.heard):
            os.close(pipe)
