#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/cuda.md from a result of tests/conformance/device.sh --json and the list of ops that stay on the CPU.

usage: bench/cuda_conformance.py bench/results/DATE-cuda-conformance.json > docs/cuda.md
"""
import json
import pathlib
import re
import sys

top = pathlib.Path(__file__).resolve().parent.parent
result = json.loads(pathlib.Path(sys.argv[1]).read_text())

print("# What runs on CUDA devices\n")
print(f"Made by `bench/cuda_conformance.py` from `bench/results/{pathlib.Path(sys.argv[1]).name}`; `make check-cuda` measures it again.\n")
print(f"Machine: {result['machine']}, {result.get('versions', '')}, {result['date']}. \"Alone\" is without `--fallback cpu`: every node has a CUDA kernel. \"With the CPU\"")
print("are further cases that pass when the ops listed below run on the CPU. \"Not expected\" are those that the CPU backend does not")
print("pass either, with reasons in `tests/conformance/expected_failures.txt` and `not_run.txt`.\n")
print("| suite | cases | alone | with the CPU | not expected | failed |\n|---|---|---|---|---|---|")
for s in result["suites"]:
    print(f"| {s['suite']} | {s['cases']} | {s['alone']} | {s['with_cpu']} | {s['not_expected']} | {s['failed']} |")
if "note" in result:
    print(f"\n{result['note']}")
if "differential" in result:
    d = result["differential"]
    print(f"\nRandom nodes beside the CPU (`tests/differential`), seeds from {d['first_seed']}: {d['passed']} of {d['cases']} agree"
          f"{': ' + d['what'] if 'what' in d else ''}.")
if "api" in result:
    a = result["api"]
    print(f"\nThe API beside a caller's own use of CUDA, and faults (`{a['what']}`): {a['passed']} of {a['passed'] + a['failed']} tests pass; "
          f"enqueuing a run takes {a['enqueue_us']} us of host time (median, a small model; by machine).")
print("\n## Ops that stay on the CPU\n\n| op | why |\n|---|---|")
for line in (top / "tests/conformance/cuda_cpu_only.txt").read_text().splitlines():
    match = re.match(r"^([^#\s]\S*)\s+(.*)$", line)
    if match:
        print(f"| {match[1]} | {match[2]} |")
sanitizer = result.get("compute_sanitizer")
if sanitizer:
    print(f"\n## compute-sanitizer\n\nWhat ran: {sanitizer['cases']}.\n\n| tool | result |\n|---|---|")
    for tool, text in sanitizer["tools"].items():
        print(f"| {tool} | {text} |")
