"""Recompiles every dump of some folders unchanged and compares the total to the byte.

usage: truth_compile.py XPEAK COMPILER FOLDER...   (a folder of dumps, each with its info.json)
Writes a Markdown table of what differs, and a summary.
"""

import json
import pathlib
import subprocess
import sys


def main():
    xpeak, compiler, *folders = sys.argv[1:]
    same, other, seconds = 0, [], []
    for folder in folders:
        for dump in sorted(pathlib.Path(folder).iterdir()):
            info = dump / "info.json"
            if not info.exists() or not list(dump.glob("*before_optimizations*")):
                continue
            topology = json.loads(info.read_text()).get("topology")
            if not topology:
                continue
            command = [xpeak, "compile", dump, "--topology", topology, "--compiler", compiler]
            command += ["--format", "json", "--quiet"]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                other.append((dump.name, topology, None, run.stderr.strip().replace("\n", " ")))
                continue
            got = json.loads(run.stdout)
            seconds.append(got["seconds"])
            before, after = got["before"], got["after"]
            if before == after:
                same += 1
            else:
                was = before and before["allocated_bytes"]
                other.append((dump.name, topology, was, after["allocated_bytes"]))
            print(dump.name, got["difference_bytes"], round(got["seconds"], 1), file=sys.stderr)
    print("| dump | topology | its total | compiled again |\n|---|---|---|---|")
    for row in other:
        print("|", " | ".join(str(c) for c in row), "|")
    seconds.sort()
    middle = seconds[len(seconds) // 2] if seconds else 0
    print(f"\n{same} of {same + len(other)} the same in every figure; median {middle:.1f} s")


main()
