#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From start to first output, beside ONNX Runtime, from a warm page cache; and loading a plan beside importing and optimising.

Ours is the wall time of the whole process `graphrun MODEL.grt`, from before it is started until it has ended. ONNX Runtime's is the creation
of a session with default options plus the first run, inside a running Python: its imports are left out, which favours it; the wall
time of that whole process stands beside. Claims: at least 4 times less for ResNet-50's size; loading a plan at least 10 times faster than
our own import and optimisation.
"""
import json
import statistics
import sys

import common

MODELS = ["resnet50", "mobilenet_v2", "bert", "vit_b16"]

PEER = """
import sys, time, json, numpy as np, onnxruntime as ort
dtypes = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
settings = ort.SessionOptions()
settings.intra_op_num_threads = int(sys.argv[2])
start = time.perf_counter()
session = ort.InferenceSession(sys.argv[1], settings, providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
feeds = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], dtypes[i.type]) for i in session.get_inputs()}
before = time.perf_counter()
session.run(None, feeds)
end = time.perf_counter()
print(json.dumps({"load_ms": 1e3 * (loaded - start), "first_run_ms": 1e3 * (end - before)}))
"""


def first_output(options, path):
    """Medians over interleaved rounds, milliseconds."""
    plan = common.plan(options.build, path)
    graphrun, env = common.program(options.build, "graphrun")
    common.warm(path)
    common.warm(plan)
    ours, inside, outside = [], [], []
    for turn in range(options.rounds):
        common.note(f"{path.stem}, round {turn + 1} of {options.rounds}")
        ours.append(1e3 * common.seconds([graphrun, plan] + (["--threads", options.threads] if options.threads else []), env))
        start = common.time.perf_counter()
        peer = json.loads(common.run([sys.executable, "-c", PEER, path, options.threads]))
        outside.append(1e3 * (common.time.perf_counter() - start))
        inside.append(peer["load_ms"] + peer["first_run_ms"])
    return statistics.median(ours), statistics.median(inside), statistics.median(outside)


def load_times(options, path):
    """Milliseconds to open a plan, and to open the ONNX file, which imports and optimises it."""
    def load(file):
        runs = [json.loads(common.run([options.build / "graphrun", "bench", file, "--json", "--repeat", 1, "--warmup", 0]))[0]["load_ms"]
                for _ in range(options.rounds)]
        return statistics.median(model_ms(r) for r in runs), runs[-1]

    return load(common.plan(options.build, path)), load(path)


# Phases of a load that belong to the session, and so are the same for a plan and for an ONNX file.
SESSION_PHASES = ("start driver", "open device", "weights", "create kernels", "prepare", "capture", "run")


def model_ms(load):
    return sum(v for k, v in load.get("phases", load).items() if k != "total" and k not in SESSION_PHASES)


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--threads", type=int, default=0, help="0: the default of each side, which is all cores")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rows = []
    for name in MODELS:
        path = common.generated(options.build, name)
        ours, inside, outside = first_output(options, path)
        (plan_ms, plan_phases), (onnx_ms, onnx_phases) = load_times(options, path)
        rows.append({"model": name, "ours_ms": ours, "onnxruntime_ms": inside, "onnxruntime_process_ms": outside,
                     "times_less": inside / ours, "plan_load_ms": plan_ms, "compile_ms": onnx_ms,
                     "plan_times_faster": onnx_ms / plan_ms, "plan_phases": plan_phases, "onnx_phases": onnx_phases})
    resnet = rows[0]
    summary = {"first_output_times_less": resnet["times_less"], "plan_times_faster": resnet["plan_times_faster"], "text": [
        f"resnet50: first output in {resnet['times_less']:.1f} times less than ONNX Runtime's load + first run; "
        f"loading the plan {resnet['plan_times_faster']:.1f} times faster than import + optimise"]}
    common.report(options, "startup", summary, rows, {
        "model": "model", "ours_ms": ("graphrun process ms", ".1f"), "onnxruntime_ms": ("ORT load + run ms", ".1f"),
        "onnxruntime_process_ms": ("ORT process ms", ".1f"), "times_less": ("times less", ".2f"),
        "plan_load_ms": ("load plan ms", ".2f"), "compile_ms": ("import + optimise ms", ".1f"),
        "plan_times_faster": ("times faster", ".1f")}, threads=options.threads)


if __name__ == "__main__":
    main()
