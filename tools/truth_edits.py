"""Asks the compiler about the edits of compiled pairs, and compares with the pair's compiled total.

usage: truth_edits.py XPEAK COMPILER PAIRS2_FOLDER [PAIR...]   (a folder with pairs.json and programs/)
Writes a Markdown table.
"""

import json
import pathlib
import subprocess
import sys


def main():
    xpeak, compiler, folder, *only = sys.argv[1:]
    folder = pathlib.Path(folder)
    rows = []
    for pair in json.loads((folder / "pairs.json").read_text()):
        if only and pair["pair"] not in only:
            continue
        dump = folder / "programs" / pair["base"]
        topology = json.loads((dump / "info.json").read_text())["topology"]
        command = [xpeak, "whatif", dump, *pair["edit"].split(" "), "--compile"]
        command += ["--topology", topology, "--compiler", compiler, "--format", "json", "--quiet"]
        run = subprocess.run(command, capture_output=True, text=True)
        truth = pair["edited_allocated"]
        if run.returncode != 0:
            rows.append((pair["pair"], pair["edit"], "", truth, run.stderr.strip().split("\n")[0]))
        else:
            got = json.loads(run.stdout)
            total = got["after"]["allocated_bytes"]
            rows.append((pair["pair"], pair["edit"], total, truth, f"{(total / truth - 1) * 100:+.2f} %"))
        print(*rows[-1], file=sys.stderr)
    print("| pair | edit | compiled by us | compiled pair | difference |\n|---|---|---|---|---|")
    for row in rows:
        print("|", " | ".join(str(c) for c in row), "|")


main()
