# SPDX-License-Identifier: Apache-2.0
"""Rows of bench/gpu_speed.py: which are wanted, what processes have said of each, its ratio to the better peer, and what was not reached."""
import math
from pathlib import Path

TORCH_MODES = ("graph", "graph_channels_first", "compile", "compile_max")
ORT_MODES = ("graph", "graph_nhwc", "run", "run_nhwc")
PEER_PROBLEMS = (("PyTorch", "peer_problem"), ("torch.compile", "compile_problem"), ("ONNX Runtime", "ort_problem"))  # of all of a model's rows
KEY = ("model", "batch", "exporter", "half", "precision")


def best_of(row, modes):
    """The least of the modes that were measured; None if none was."""
    return min((row[mode] for mode in modes if row.get(mode)), default=None)


def wanted(models, precisions, half):
    """Keys of all rows. Steps of decoding have caches as inputs and results, which a narrowed model would cast in every run: their float16 is the export in half."""
    for name, batches, exporters in models:
        step = name.endswith("_step")
        for batch in batches:
            for exporter in exporters:
                for precision in precisions:
                    if not (step and precision == "fp16"):
                        yield name, batch, exporter, False, precision
                if "fp16" in precisions and (half or step) and exporter != "generated":
                    yield name, batch, exporter, True, "fp16"


def larger(a, b):
    """The larger of two differences; NaN if one is, as max() would leave it out."""
    return b if b > a or b != b else a


class Rows:
    def __init__(self, models, precisions, half):
        self.rows = {key: dict(zip(KEY, key)) for key in wanted(models, precisions, half)}
        self.peers, self.ort = {}, {}

    def take(self, what, key, found):
        """What a process has said: "row" of one of ours, "peer" and "ort" of (model, batch, precision). Later words replace earlier ones."""
        if what == "row":
            for k, row in self.rows.items():
                if all(a is None or a == b for a, b in zip(key, k)):
                    row |= found
            return
        of = {"peer": self.peers, "ort": self.ort}[what]
        row = of.setdefault(key, dict(zip(("name", "batch", "precision"), key)))
        if what == "ort" and best_of(row, ORT_MODES):
            if (best_of(found, ORT_MODES) or math.inf) >= best_of(row, ORT_MODES):
                return  # it ran the other exporter's file, and faster
            row.clear()
            row |= dict(zip(("name", "batch", "precision"), key))
        row |= found if what == "ort" else of_faster_layout(row, found)

    def all(self):
        """All rows, with the peers' and the ratio to the better one."""
        for row in self.rows.values():
            key = row["model"], row["batch"], row["precision"]
            row["peer"], row["ort"] = self.peers.get(key, {}), self.ort.get(key, {})
            best = min((ms for ms in (best_of(row["peer"], TORCH_MODES), best_of(row["ort"], ORT_MODES)) if ms), default=None)
            row["ratio"] = row["device_ms"] / best if best and row.get("device_ms") else None
        return list(self.rows.values())

    def missing(self):
        """What was not reached, and what failed with its reason, a line each."""
        for row in self.rows.values():
            if "device_ms" not in row:
                yield f"{row_name(row)}: {row.get('problem', 'not reached')}"
        for words in sorted({(row["model"], row["batch"], side, row[word]) for row in self.rows.values() for side, word in PEER_PROBLEMS if row.get(word)}):
            yield "{} b{}: {}: {}".format(*words)
        for side, of in (("PyTorch", self.peers), ("ONNX Runtime", self.ort)):
            for row in of.values():
                for word in ("problem", "compile_problem", "compile_max_problem", "error"):
                    if row.get(word) and not (word == "error" and best_of(row, ORT_MODES)):
                        yield f"{row['name']} {row['precision']} b{row['batch']}: {side}: {row[word]}"

    def closest(self, near=0.0):
        """(model, batch, precision), nearest to its better peer first: there, from the ratio `near`, a peer that tries longer could win."""
        found = {}
        for row in self.all():
            if row["ratio"] and row["ratio"] >= near:
                key = row["model"], row["batch"], row["precision"]
                found[key] = max(row["ratio"], found.get(key, 0))
        return sorted(found, key=lambda key: -found[key])

    def shown(self):
        """Key -> row of what README's table shows: of two exporters' files the slower."""
        found = {}
        for row in self.rows.values():
            key = row["model"], row["batch"], row["half"], row["precision"]
            if row.get("device_ms") and row["device_ms"] > found.get(key, {}).get("device_ms", 0):
                found[key] = row
        return found

    def drop_plans(self, name, batch):
        """Removes the files of what is not shown."""
        kept = {row.get("plan") for row in self.shown().values()}
        for row in self.rows.values():
            if (row["model"], row["batch"]) == (name, batch) and row.get("plan") and row["plan"] not in kept:
                Path(row["plan"]).unlink(missing_ok=True)


def of_faster_layout(row, found):
    """What PyTorch's other layout adds: its time host to host only if it is the faster one."""
    other = found.get("graph_channels_first")
    return {k: v for k, v in found.items() if k != "wall_ms"} if other and row.get("graph") and other > row["graph"] else found


def row_name(row):
    return f"{row['model']} {row['precision']}{' half' if row['half'] else ''} b{row['batch']} {row['exporter']}"


def summary(rows):
    """Of the ratios; None without any."""
    ratios = [row["ratio"] for row in rows if row.get("ratio")]
    if not ratios:
        return None
    return {"geomean": math.exp(sum(map(math.log, ratios)) / len(ratios)), "largest": max(ratios), "rows": len(ratios), "above_1": sum(r > 1 for r in ratios)}


def lines(rows):
    """The table of all rows."""
    nan = float("nan")
    yield (f"{'model':26} {'exporter':9} {'':9} {'batch':>5} {'ours ms':>9} {'graph':>9} {'compile':>9} {'max':>9} {'ORT ms':>9} {'ratio':>6} {'wall':>8} {'torch':>8} {'ORT':>8} "
           f"{'load':>6} {'first':>6} {'steps':>5} {'attn':>4} {'moves':>5} {'diff':>8} {'peer':>8}")
    for row in rows:
        if "device_ms" not in row:
            continue
        peer, ort = row.get("peer", {}), row.get("ort", {})
        yield (f"{row['model'][:26]:26} {row['exporter']:9} {row['precision'] + (' half' if row['half'] else ''):9} {row['batch']:5} {row['device_ms']:9.4f} "
               f"{best_of(peer, TORCH_MODES[:2]) or nan:9.4f} {peer.get('compile') or nan:9.4f} {peer.get('compile_max') or nan:9.4f} {best_of(ort, ORT_MODES) or nan:9.4f} "
               f"{row.get('ratio') or nan:6.2f} {row.get('wall_ms') or nan:8.3f} {peer.get('wall_ms') or nan:8.3f} {ort.get('wall_ms') or nan:8.3f} {row.get('ready_ms') or nan:6.0f} "
               f"{row.get('first_ms') or nan:6.1f} {row.get('steps', 0):5} {row.get('Attention', 0):4} {row.get('Transpose', 0):5} {or_nan(row.get('difference')):8.1e} {or_nan(peer.get('difference')):8.1e}")
        for name, (ours_ms, other_ms) in row.get("without", {}).items():
            yield f"    with {name} {ours_ms:.4f}, without {other_ms:.4f}: {ours_ms / other_ms:.3f}"
    total = summary(rows)
    if total:
        yield f"of the better peer's time: geometric mean {total['geomean']:.3f} of {total['rows']} rows, largest {total['largest']:.2f}, above 1: {total['above_1']}"


def or_nan(value):
    return float("nan") if value is None else value
