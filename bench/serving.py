# SPDX-License-Identifier: Apache-2.0
"""Programs that measure one request after another in one process, so that a device is opened, and libraries are loaded, once: requests come as JSON lines on standard input, answers go as such
lines to standard output (gpu_stations.py is the other end)."""
import json
import os
import sys
import time

import turns


def reason(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[-280:]}"


def cpus(text):
    """Of an option N,N/N,N: processors for turns, and for the time between them."""
    return tuple({int(number) for number in part.split(",")} for part in text.split("/"))


class Answers:
    """What the process is to say goes where standard output went; what libraries print goes to standard error."""

    def __init__(self):
        self.file = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, **words):
        print(json.dumps(words), file=self.file, flush=True)


def serve(handle, cpus=None):
    """Calls handle(request, answer) for each request; answer(key, found) may be called many times. A request that fails is the last: an error of a device may last.
    `cpus`: as in turns.py. Returns the exit status."""
    answers = Answers()
    turns.cpus = cpus
    turns.keep_to(1)
    answers.say(ready=True)
    for line in sys.stdin:
        request, begin, before, problem = json.loads(line), time.monotonic(), turns.spent(), None
        try:
            handle(request, lambda key, found: answers.say(key=key, found=found))
        except Exception as error:
            problem = reason(error)
        answers.say(ended={"seconds": round(time.monotonic() - begin, 2), **turns.since(before), **({"problem": problem} if problem else {})})
        if problem:
            return 1
    return 0
