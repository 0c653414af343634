#!/usr/bin/env python3
"""Compares `xpeak whatif` with what the compiler really did.

    check_whatif.py PAIRS.json --programs DIR... [--binary target/release/xpeak] [--origin new]

PAIRS.json is a list of {"pair", "base", "edited", "edit", "edited_allocated", "base_allocated"};
"base" is a folder under one of the --programs directories that holds the dump of the base program.
Prints the table that stands in docs/whatif.md. Only the standard library is needed.
"""
import argparse, glob, gzip, json, os, shlex, statistics, subprocess, sys, tempfile

GIB = 1 << 30


def dump_of(name, roots):
    for root in roots:
        found = sorted(glob.glob(os.path.join(root, name, "*after_optimizations.hlo.pb*")))
        if found:
            return found[-1]
    return None


def plain(path, folder):
    if not path.endswith(".gz"):
        return path
    out = os.path.join(folder, os.path.basename(path)[:-3])
    with gzip.open(path, "rb") as f, open(out, "wb") as g:
        g.write(f.read())
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pairs")
    p.add_argument("--programs", nargs="+", required=True, help="folders that hold the programs")
    p.add_argument("--binary", nargs="+", default=["target/release/xpeak", "whatif"], help="command that takes PATH EDIT... (default: %(default)s)")
    p.add_argument("--json-flag", nargs="*", default=["--format", "json"])
    p.add_argument("--origin", help="only pairs of this origin")
    p.add_argument("--max-median", type=float, help="fail when the median error exceeds this, in per cent")
    a = p.parse_args()
    rows, errors = [], []
    with open(a.pairs) as f:
        pairs = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs:
            if a.origin and pair.get("origin") != a.origin:
                continue
            path = dump_of(pair["base"], a.programs)
            if path is None:
                print(f"{pair['pair']}: no dump of {pair['base']}", file=sys.stderr)
                continue
            command = [*a.binary, plain(path, folder), *shlex.split(pair["edit"]), *a.json_flag]
            run = subprocess.run(command, capture_output=True, text=True)
            true = pair["edited_allocated"]
            if run.returncode:
                print(f"{pair['pair']}: {run.stderr.strip()}", file=sys.stderr)
                rows.append((pair, None, true, None, ""))
                errors.append(float("inf"))
                continue
            out = json.loads(run.stdout)
            ours = out["after"]["allocated_bytes"]
            error = (ours - true) / true * 100
            errors.append(abs(error))
            rows.append((pair, ours, true, error, out["confidence"]))
    print("| pair | edit | before | predicted | compiled | error | confidence |")
    print("|---|---|---:|---:|---:|---:|---|")
    for pair, ours, true, error, confidence in rows:
        name = pair["pair"].replace("__", " → ")
        size = lambda b: f"{b / GIB:.3f}"
        predicted = "failed" if ours is None else size(ours)
        off = "" if error is None else f"{error:+.1f} %"
        print(f"| {name} | `{pair['edit']}` | {size(pair['base_allocated'])} | {predicted} | {size(true)} | {off} | {confidence} |")
    if errors:
        median = statistics.median(errors)
        print(f"\n{len(errors)} pairs; sizes in GiB of everything allocated; median error {median:.1f} %, largest {max(errors):.1f} %.")
        if a.max_median is not None and median > a.max_median:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
