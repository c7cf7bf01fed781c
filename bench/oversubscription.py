#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How runs fare beside busy processes: milliseconds a run, for ways to wait and numbers of neighbours.

usage: oversubscription.py GRAPHRUN MODEL [--threads N] [--neighbours N,N...] [--seconds S]
"""
import argparse
import json
import os
import subprocess
import sys

WAYS = {
    "as it is": {},
    "long waits (GOMP_SPINCOUNT=300000)": {"GOMP_SPINCOUNT": "300000"},
    "GOMP_SPINCOUNT=3000": {"GOMP_SPINCOUNT": "3000"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
}


def bench(arguments, threads, environment):
    command = [arguments.graphrun, "bench", "--json", "--threads", str(threads), "--seconds", str(arguments.seconds), arguments.model]
    result = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True)
    return json.loads(result.stdout)[0]["latency_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphrun")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--neighbours", default="0,1,2,8")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    print("| neighbours | waits | threads | least | median | mean |\n|---|---|---|---|---|---|")
    for neighbours in map(int, arguments.neighbours.split(",")):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(neighbours)]
        try:
            for way, environment in WAYS.items():
                ms = bench(arguments, arguments.threads, environment)
                print(f"| {neighbours} | {way} | {arguments.threads} | {ms['min']:.2f} | {ms['p50']:.2f} | {ms['mean']:.2f} |", flush=True)
            ms = bench(arguments, 1, {})
            print(f"| {neighbours} | - | 1 | {ms['min']:.2f} | {ms['p50']:.2f} | {ms['mean']:.2f} |", flush=True)
        finally:
            for process in busy:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
