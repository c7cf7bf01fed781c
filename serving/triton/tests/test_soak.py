# SPDX-License-Identifier: Apache-2.0
"""Many requests while the model is reloaded again and again and the server is killed twice: each is answered once, rightly. Minutes, so only
where GRAPHRT_TRITON_REQUESTS says how many (100000)."""
import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

import models
import server as servers
from test_triton import infer

CLIENTS = 8


class Load:
    """Tickets 0, 1, ...: each is asked for until it is answered."""

    def __init__(self, server, total):
        self.server, self.total = server, total
        self.tickets, self.factors = itertools.count(), [2.0]
        self.answered, self.failures = [0] * CLIENTS, [0] * CLIENTS
        self.answers = np.zeros(total, np.int32)  # to each ticket

    def connect(self, k):
        return (tritonclient.grpc, self.server.new_grpc()) if k % 2 else (tritonclient.http, self.server.new_http())

    def ask(self, k, ticket, protocol, client):
        x = np.full((1 + ticket % 3, 4), ticket % 1000 + 1, np.float32)
        y = infer(protocol, client, "scaled", {"x": x})["y"]
        assert any(np.array_equal(y, x * np.float32(factor)) for factor in list(self.factors)), (ticket, y)
        self.answers[ticket] += 1
        self.answered[k] += 1

    def work(self, k):
        protocol, client = self.connect(k)
        for ticket in self.tickets:
            if ticket >= self.total:
                break
            while not self.answers[ticket]:
                try:
                    self.ask(k, ticket, protocol, client)
                except AssertionError:
                    raise
                except Exception:  # refused, reset, not ready yet
                    self.failures[k] += 1
                    time.sleep(0.02)
                    protocol, client = self.connect(k)
        client.close()


def test_every_request_is_answered_rightly(repository, backends, tmp_path):
    total = int(os.environ.get("GRAPHRT_TRITON_REQUESTS", 0))
    if not total:
        pytest.skip("takes minutes: GRAPHRT_TRITON_REQUESTS=100000 runs it")
    servers.put_model(repository, "scaled", models.scaled(2))
    server = servers.Server(repository, backends, tmp_path / "log")
    load, reloads, kills, begin = Load(server, total), 0, [total // 3, 2 * total // 3], time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as threads:
        results = [threads.submit(load.work, k) for k in range(CLIENTS)]
        while not all(result.done() for result in results):
            if kills and sum(load.answered) >= kills[0]:
                kills.pop(0)
                server.kill()
                server.start()
            factor = load.factors[-1] % 50 + 1
            load.factors = load.factors[-3:] + [factor]
            servers.put_model(repository, "scaled", models.scaled(factor))
            server.http.load_model("scaled")
            reloads += 1
            time.sleep(0.5)
        for result in results:
            result.result()
    assert not kills and reloads >= 4 and (load.answers == 1).all()
    print(f"{total} requests, {reloads} reloads, 2 kills, {sum(load.failures)} tries that failed, {time.monotonic() - begin:.0f} s")
    assert server.stop() == 0
