"""Compares xpeak's figures with XProf's and the compiler's over a folder of dumps.

usage: python tools/check_figures.py FOLDER [--xpeak PATH]

Every subfolder with a dump and an xprof.json (XProf's figures per memory space, in MiB) or an info.json (the
compiler's memory_analysis) is checked. Exits with 1 if anything differs. Needs only the Python standard library.
"""
import argparse
import json
import os
import subprocess
import sys

MIB = 1 << 20


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--xpeak", default="target/release/xpeak")
    a = a.parse_args()
    checked, wrong = 0, []
    for root, _, files in sorted(os.walk(a.folder)):
        if "xprof.json" not in files or not any(".hlo.pb" in f for f in files):
            continue
        run = subprocess.run([a.xpeak, "report", root, "--format", "json", "-o", "-", "-q"], capture_output=True)
        if run.returncode != 0:
            wrong.append(f"{root}: {run.stderr.decode().strip()}")
            continue
        spaces = {s["color"]: s for s in json.loads(run.stdout)["modules"][0]["memory_spaces"]}

        def want(what, ours, theirs):
            nonlocal checked
            checked += 1
            if ours != theirs:
                wrong.append(f"{root}: {what}: {ours}, expected {theirs}")

        for color, x in json.load(open(os.path.join(root, "xprof.json"))).items():
            ours = spaces.get(int(color))
            if not ours or not x.get("peakHeapMib") or ours["is_address_union"]:  # XProf adds up overlapping buffers
                continue
            for theirs_key, ours_key in [("peakHeapMib", "peak_bytes"), ("totalBufferAllocationMib", "allocated_bytes"), ("indefiniteBufferAllocationMib", "indefinite_bytes")]:
                want(f"space {color} {ours_key}", ours[ours_key], round(x.get(theirs_key, 0) * MIB))
            theirs = sorted((round(b["mib"] * MIB), round(b["unpadded_mib"] * MIB)) for b in x.get("buffers", []) if isinstance(b, dict) and b["id"] >= 0 and b["mib"] * MIB >= 16384 and not b["shape"].startswith("("))
            mine = sorted((b["size_bytes"], b["unpadded_bytes"]) for b in ours["buffers"] if b["size_bytes"] >= 16384 and len(b["shape_index"]) < 2)
            if theirs:
                want(f"space {color} buffers", mine, theirs)
        info = os.path.join(root, "info.json")
        if os.path.exists(info):
            info = json.load(open(info))
            peak = info.get("memory_analysis", {}).get("peak_memory_in_bytes", 0)
            if info.get("platform") == "tpu" and peak and spaces[0]["peak_bytes"] != peak:
                print(f"note: {root}: the compiler's peak is {peak}, ours {spaces[0]['peak_bytes']} (see docs/accuracy.md)")
    print("\n".join(wrong))
    print(f"{checked} figures checked, {len(wrong)} differ")
    sys.exit(bool(wrong) or not checked)


if __name__ == "__main__":
    main()
