#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions on 1, 2, 4, 8 GPUs at once, a fresh process for every figure, beside the bare floor: what the CUDA driver and the bus take
with no library of ours (init_scaling/floor.c); and, where asked for, beside libtorch.

For each number of GPUs the sides take turns; figures are medians. `ready` counts from the start of main() to all sessions ready,
which includes opening and checking the plan; `again` is the same on devices that are open, with the weights gone; `second` a second
session of a model that is there. Writes bench/results/init_scaling-DATE.json and a picture beside it (SVG).

Without GPUs, --kind null or mirror goes the same way, to try it out.
"""
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import common

MODELS = {
    "phi3_mini": ["phi3_mini"],
    "deep_ffn": ["deep_ffn"],
    "resnet50": ["resnet50"],
    "tiny": ["deep_ffn", "--divide", "16"],
}
COLOURS = {"floor": "#888888", "ready": "#1f77b4", "again": "#2ca02c", "second": "#9467bd", "libtorch": "#d62728"}


def plan(options, name):
    """The plan of a generated model, made on first use."""
    path = options.dir / f"{name}.grt"
    if path.exists():
        return path
    onnx = options.dir / f"{name}.onnx"
    options.dir.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    if not onnx.exists():
        common.run([common.tool(options.build, "models/generate/grt-models"), *MODELS[name], "-o", onnx])
    made = time.perf_counter()
    common.run([common.tool(options.build, "graphc"), "optimize", onnx, "-o", path, "--target", options.kind])
    print(f"{name}: generated in {made - start:.1f} s, optimised in {time.perf_counter() - made:.1f} s, "
          f"{path.stat().st_size / 1e9:.2f} GB", flush=True)
    for old in options.dir.glob(f"{name}.onnx*"):
        old.unlink()
    return path


def page_cache(path, cold):
    """Into the page cache, or out of it."""
    with open(path, "rb") as f:
        if cold:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return
    subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)


def libtorch(options):
    """Build the peer's program; None without torch."""
    if not options.libtorch:
        return None
    flags = common.run([options.torch_python, "-c", "import torch.utils.cpp_extension as c, torch, os\n"
                        "print(' '.join('-I' + p for p in c.include_paths('cuda') if os.path.isdir(p)),"
                        " '-L' + os.path.join(os.path.dirname(torch.__file__), 'lib'),"
                        " '-Wl,--no-as-needed -ltorch -ltorch_cpu -ltorch_cuda -lc10 -lc10_cuda',"
                        " '-Wl,-rpath,' + os.path.join(os.path.dirname(torch.__file__), 'lib'),"
                        " '-D_GLIBCXX_USE_CXX11_ABI=%d' % torch._C._GLIBCXX_USE_CXX11_ABI)"]).strip()
    out = options.dir / "deep_ffn_libtorch"
    common.run(["g++", "-O1", "-std=c++17", options.libtorch, "-o", out, *shlex.split(flags), "-lpthread"])
    return out


def ready_once(options, path, n, *more):
    devices = ",".join(f"{options.kind}:{i}" for i in range(n))
    start = time.perf_counter()
    report = json.loads(common.run([common.tool(options.build, "bench/init_scaling/ready"), path, devices, *more], env=options.env))
    report["process_ms"] = 1e3 * (time.perf_counter() - start)
    return report


def median(reports, key):
    values = [r[key] for r in reports]
    return statistics.median(min(v) if isinstance(v, list) else v for v in values)


def scale(options, name, peer, rows):
    path = plan(options, name)
    for n in options.devices:
        ours, floors, peers = [], [], []
        for turn in range(options.rounds):
            common.note(f"{name} on {n}, round {turn + 1} of {options.rounds}")
            page_cache(path, options.cold)
            if options.kind == "cuda":
                floors.append(json.loads(common.run([common.tool(options.build, "bench/init_scaling/floor"), n, path, options.readers or 16])))
            ours.append(ready_once(options, path, n, options.upload, options.readers, options.pinned))
            if peer and turn == 0 and name == "deep_ffn":
                start = time.perf_counter()
                said = common.run([peer, n, 5])
                peers.append({"process_ms": 1e3 * (time.perf_counter() - start), "said": said.strip().splitlines()[-1]})
        row = {"model": name, "devices": n, "plan_bytes": path.stat().st_size, "ours": ours, "floor": floors, "libtorch": peers,
               "open_ms": median(ours, "open_ms"), "ready_ms": median(ours, "ready_ms"), "again_ms": median(ours, "again_ms"),
               "again_on_one_ms": median(ours, "again_on_one_ms"), "second_ms": median(ours, "second_ms"),
               "second_on_one_ms": median(ours, "second_on_one_ms"), "first_run_ms": median(ours, "first_run_ms")}
        if floors:
            row.update(floor_ms=median(floors, "ready_ms"), floor_direct_ms=median(floors, "direct_ms"),
                       floor_shared_ms=median(floors, "shared_ms"), floor_peers_ms=median(floors, "peers_ms"))
        if peers:
            row["libtorch_ms"] = statistics.median(p["process_ms"] for p in peers)
        rows.append(row)
        show(row)
        save(options, rows)


def show(row):
    floor = f"floor {row['floor_ms']:7.0f} ms, weights on it {row['floor_shared_ms']:6.0f} ({row['floor_direct_ms']:.0f} direct)" \
        if "floor_ms" in row else "no floor"
    limit = f", target {1.1 * row['floor_ms'] + 250:7.0f}" if "floor_ms" in row else ""
    peer = f"; libtorch {row['libtorch_ms']:.0f} ms" if "libtorch_ms" in row else ""
    print(f"{row['model']:10} x{row['devices']}: ready {row['ready_ms']:7.0f} ms{limit} (open {row['open_ms']:.0f}); {floor}; "
          f"again {row['again_ms']:6.0f} ms, on one {row['again_on_one_ms']:6.0f}; second {row['second_ms']:5.1f} ms, on one "
          f"{row['second_on_one_ms']:4.1f}; first run {row['first_run_ms']:.0f} ms{peer}", flush=True)


def picture(rows):
    """Milliseconds over devices, one panel for each model, as SVG."""
    names = list(dict.fromkeys(r["model"] for r in rows))
    width, height, out = 420, 320, []
    for panel, name in enumerate(names):
        mine = [r for r in rows if r["model"] == name]
        series = {"floor": [(r["devices"], r.get("floor_ms")) for r in mine], "ready": [(r["devices"], r["ready_ms"]) for r in mine],
                  "again": [(r["devices"], r["again_ms"]) for r in mine], "second": [(r["devices"], r["second_ms"]) for r in mine],
                  "libtorch": [(r["devices"], r.get("libtorch_ms")) for r in mine]}
        most = max(v for points in series.values() for _, v in points if v) * 1.05
        last = max(r["devices"] for r in mine)
        left = panel * width

        def place(n, ms):
            return left + 60 + (width - 90) * (n - 1) / max(last - 1, 1), height - 40 - (height - 80) * ms / most

        out.append(f'<text x="{left + 60}" y="20" font-weight="bold">{name}: milliseconds on N devices</text>')
        for tick in range(5):
            _, y = place(1, most * tick / 4)
            out.append(f'<line x1="{left + 60}" x2="{left + width - 30}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                       f'<text x="{left + 54}" y="{y + 4:.1f}" text-anchor="end">{most * tick / 4:.0f}</text>')
        for n in sorted({r["devices"] for r in mine}):
            x, y = place(n, 0)
            out.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{n}</text>')
        for row, (what, points) in enumerate(series.items()):
            points = [place(n, v) for n, v in points if v]
            if not points:
                continue
            out.append(f'<polyline fill="none" stroke-width="2" stroke="{COLOURS[what]}" points="'
                       + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[what]}"/>' for x, y in points]
            out.append(f'<text x="{left + 70}" y="{48 + 16 * row}" fill="{COLOURS[what]}">{what}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(names)}" height="{height}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="white"/>' + "".join(out) + "</svg>\n")


def main():
    p = common.parser(__doc__)
    p.add_argument("--models", nargs="+", choices=MODELS, default=["phi3_mini", "deep_ffn", "resnet50"])
    p.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8], help="numbers of devices")
    p.add_argument("--kind", default="cuda", help="cuda, mirror or null (default: cuda)")
    p.add_argument("--dir", type=Path, help="where models go (default: BUILD/bench)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--cold", action="store_true", help="drop the plan from the page cache before each process")
    p.add_argument("--upload", default="auto", choices=["auto", "direct"])
    p.add_argument("--readers", type=int, default=0)
    p.add_argument("--pinned", type=int, default=0, help="MiB of page-locked memory (default: the library's)")
    p.add_argument("--libtorch", type=Path, help="source of the libtorch program to compare deep_ffn with")
    p.add_argument("--torch-python", default="python3", help="the Python that has torch")
    p.add_argument("--out", type=Path, help="directory for the results (default: bench/results)")
    options = p.parse_args()
    options.build = options.build.resolve()
    options.dir = options.dir or options.build / "bench"
    options.env = dict(os.environ, GRAPHRT_ALGO_CACHE=str(options.dir / "algos.db"))
    options.dir.mkdir(parents=True, exist_ok=True)
    peer = libtorch(options)
    options.machine, options.gpus = common.machine(), common.gpus()
    rows = []
    for name in options.models:
        scale(options, name, peer, rows)


def save(options, rows):
    """After every row, so that what was measured stays if the rest is cut off."""
    if options.no_save:
        return
    report = {"machine": options.machine, "gpus": options.gpus, "kind": options.kind, "cold": options.cold, "rounds": options.rounds,
              "upload": options.upload, "rows": rows}
    out = options.out or common.TOP / "bench/results"
    out.mkdir(parents=True, exist_ok=True)
    name = f"init_scaling{'-cold' if options.cold else ''}-{time.strftime('%Y-%m-%d')}"
    (out / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / f"{name}.svg").write_text(picture(rows))


if __name__ == "__main__":
    sys.exit(main())
