#!/usr/bin/env python3
"""Checks promised savings against programs compiled both ways.

usage: check_savings.py PAIRS.json [--programs DIR]... [--xpeak BINARY]

PAIRS.json is a list of objects with at least
  base, edited   names of program folders, looked up in the DIRs (default: samples)
  edit           what was changed, as `xpeak whatif` spells it: "--donate all", "--shard ..."
For edits that only donate, shard, change a type or checkpoint, runs `xpeak report BASE --format json -o -` and compares what the
findings promise with what compiling saved. A promise that is called exact must equal the difference of the
peaks, and the difference of the totals to within TOLERANCE; an upper bound must not be less than either. What is called
simulated is counted with the bounds.
Exit code: 0 all hold, 1 one does not, 2 nothing could be checked. Needs nothing but Python.
"""
import argparse
import json
import pathlib
import subprocess
import sys

KINDS = {
    "--donate": {"donation"},
    "--shard": {"unsharded", "redundant_copies"},
    "--dtype": {"float32"},
    "--checkpoint": {"saved_activations"},
}
# What alignment and gaps between buffers may change of the total, and of the peak.
TOLERANCE = 1 << 20


def report(xpeak, path):
    """The device-memory part of a program's report."""
    run = subprocess.run([xpeak, "report", str(path), "--format", "json", "-o", "-"], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{path}: {run.stderr.strip()}")
    modules = json.loads(run.stdout)["modules"]
    spaces = [s for m in modules for s in m["memory_spaces"] if s["color"] == 0]
    if not spaces:
        raise RuntimeError(f"{path}: no buffer assignment for device memory")
    return max(spaces, key=lambda s: s["peak_bytes"])


def promised(space, kinds):
    """(exact, upper bound) of the findings of these kinds. Findings about the same buffers are counted once."""
    exact = bound = 0
    seen = set()
    for f in space["findings"]:
        if f["kind"] not in kinds or seen & set(f["buffer_ids"]):
            continue
        seen |= set(f["buffer_ids"])
        if f["saving"] == "exact":
            exact += f["saving_bytes"]
        bound += f["saving_bytes"]
    return exact, bound


def check(name, kind, space, edited):
    """One line of the table, and whether the promise holds."""
    exact, bound = promised(space, KINDS[kind])
    peak = space["peak_bytes"] - edited["peak_bytes"]
    total = space["allocated_bytes"] - edited["allocated_bytes"]
    # Without an exact promise, a bound of zero promises that nothing is saved: a program that saves a
    # little more by accident does not contradict it.
    holds = bound + TOLERANCE >= total or exact > 0
    if exact and kind == "--donate":
        holds = abs(exact - peak) <= TOLERANCE and abs(exact - total) <= TOLERANCE
    line = f"{name:55} {exact:>14,} {bound:>14,} {peak:>14,} {total:>14,}  {'ok' if holds else 'WRONG'}"
    return line, holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pairs")
    parser.add_argument("--programs", action="append", help="folder of program folders; may be repeated")
    parser.add_argument("--xpeak", default="target/release/xpeak")
    args = parser.parse_args()
    roots = [pathlib.Path(p) for p in args.programs or ["samples"]]

    def find(name):
        return next((r / name for r in roots if (r / name).is_dir()), None)

    print(f"{'pair':55} {'exact':>14} {'bound':>14} {'peak saved':>14} {'total saved':>14}")
    checked = wrong = 0
    for pair in json.loads(pathlib.Path(args.pairs).read_text()):
        kinds = [w for w in pair["edit"].split() if w.startswith("--")]
        if len(kinds) != 1 or kinds[0] not in KINDS:
            continue
        base, edited = find(pair["base"]), find(pair["edited"])
        if not base or not edited:
            continue
        try:
            line, holds = check(f"{pair['base']} {kinds[0]}", kinds[0], report(args.xpeak, base), report(args.xpeak, edited))
        except RuntimeError as e:
            line, holds = f"{pair['base']}: {e}", False
        print(line)
        checked += 1
        wrong += not holds
    print(f"{checked} checked, {wrong} wrong")
    return 2 if not checked else 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
