#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of overlap.py: copies in, forward and copies out of ResNet-50, float16, on one GPU with PyTorch.

usage: torch_overlap.py BATCH SECONDS. Prints a line "overlap WAY: IMAGES_PER_SECOND" for each way to write it: forward alone in a CUDA graph,
one after another, threads with a lock around the model, and threads with a stream and page-locked memory each.
"""
import sys
import threading
import time

import torch
import torchvision

BATCH, SECONDS = int(sys.argv[1]), float(sys.argv[2])
MOST_THREADS = 4


def throughput(threads, step):
    done, end = [0] * threads, time.perf_counter() + SECONDS

    def loop(i):
        with torch.inference_mode():
            stream = torch.cuda.Stream()
            while time.perf_counter() < end:
                step(i, stream)
                done[i] += BATCH

    begin = time.perf_counter()
    workers = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.synchronize()
    return sum(done) / (time.perf_counter() - begin)


def main():
    model = torchvision.models.resnet50(weights=None).eval().cuda().half().to(memory_format=torch.channels_last)
    pageable = torch.rand(BATCH, 3, 224, 224).half()
    pinned = [pageable.pin_memory() for _ in range(MOST_THREADS)]
    resident = pageable.cuda().to(memory_format=torch.channels_last)
    lock = threading.Lock()

    def on_gpu(x, wait):
        return x.to("cuda", non_blocking=not wait).to(memory_format=torch.channels_last)

    def serial(_i, _stream):
        model(on_gpu(pageable, True)).cpu()

    def locked(_i, _stream):
        x = on_gpu(pageable, True)
        with lock:
            y = model(x)
            torch.cuda.synchronize()
        y.cpu()

    def streams(i, stream):
        with torch.cuda.stream(stream):
            y = model(on_gpu(pinned[i], False)).to("cpu", non_blocking=True)
            stream.synchronize()
        return y

    with torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(5):
                model(resident)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(resident)

    def replay(_i, _stream):
        graph.replay()
        torch.cuda.synchronize()

    for way, threads, step in (("forward alone, CUDA graph", 1, replay), ("one after another", 1, serial), ("4 threads, one lock", 4, locked),
                               ("2 threads, streams, pinned", 2, streams), ("4 threads, streams, pinned", 4, streams)):
        print(f"overlap {way}: {throughput(threads, step):.0f}", flush=True)


if __name__ == "__main__":
    main()
