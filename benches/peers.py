"""Times whole processes: xpeak beside XProf and xprof-rs, on files you give.

usage: python benches/peers.py FILE.xplane.pb|FILE.hlo.pb ... [--xpeak PATH] [--xprof PATH] [--xprof-rs PATH] [--runs N]

XProf:    pip install xprof        (its CLI: xprof get_peak_allocations)
xprof-rs: cargo install xprof-rs

A HLO file is put into a profile for the peers (they read no dumps). For each tool: the best wall time of N runs with
warm files, and the largest resident memory, of which "own" excludes mapped file pages (read from /proc while running).
A peer that is not installed is left out. Needs only the Python standard library.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time


def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(n, value):
    return varint(n << 3) + varint(value)


def profile_around(hlo, folder):
    """A profile holding one program, as a profiler writes it."""
    name = re.search(rb"[\x20-\x7e]{3,}", hlo[:200]).group().decode().lstrip("\n ")
    stat = field(5, number(1, 1) + field(6, hlo))
    event = number(1, 1) + field(2, number(1, 1) + field(2, name + "(1)") + stat)
    names = number(1, 1) + field(2, number(1, 1) + field(2, "Hlo Proto"))
    plane = field(2, "/host:metadata") + field(4, event) + field(5, names)
    run = os.path.join(folder, "plugins/profile/2026_01_01_00_00_00")
    os.makedirs(run)
    path = os.path.join(run, "host.xplane.pb")
    with open(path, "wb") as f:
        f.write(field(1, plane))
    return path


def watch(pid, peak, done):
    while not done.is_set():
        try:
            status = open(f"/proc/{pid}/status").read()
            for key in ("RssAnon", "VmHWM"):
                kb = int(re.search(key + r":\s+(\d+)", status).group(1))
                peak[key] = max(peak.get(key, 0), kb)
        except (OSError, AttributeError):
            pass
        time.sleep(0.001)


def measure(command, runs, cache):
    best, peak = None, {}
    for _ in range(runs):
        # The peers keep decoded programs beside the profile: each run starts without them.
        for name in os.listdir(cache):
            if not name.endswith(".xplane.pb"):
                os.remove(os.path.join(cache, name))
        start = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        done = threading.Event()
        t = threading.Thread(target=watch, args=(p.pid, peak, done))
        t.start()
        error = p.communicate()[1]
        took = time.perf_counter() - start
        done.set()
        t.join()
        if p.returncode != 0:
            return None, {}, error.decode(errors="replace").strip()[-200:]
        best = took if best is None else min(best, took)
    return best, peak, ""


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("files", nargs="+")
    a.add_argument("--xpeak", default="target/release/xpeak")
    a.add_argument("--xprof", default=shutil.which("xprof"))
    a.add_argument("--xprof-rs", default=shutil.which("xprof-rs"))
    a.add_argument("--runs", type=int, default=3)
    a = a.parse_args()
    print("| input | tool | seconds | own MB | resident MB |\n|---|---|---:|---:|---:|")
    for path in a.files:
        with tempfile.TemporaryDirectory() as folder:
            if ".xplane" not in path:
                peer_input = profile_around(open(path, "rb").read(), folder)
            else:
                run = os.path.join(folder, "plugins/profile/2026_01_01_00_00_00")
                os.makedirs(run)
                peer_input = os.path.join(run, "host.xplane.pb")
                os.symlink(os.path.abspath(path), peer_input)
            tools = [("xpeak", [a.xpeak, "summary", path, "--quiet"])]
            if a.xprof_rs:
                tools.append(("xprof-rs", [a.xprof_rs, "get_peak_allocations", peer_input]))
            if a.xprof:
                tools.append(("XProf", [a.xprof, "get_peak_allocations", peer_input]))
            for name, command in tools:
                seconds, peak, error = measure(command, a.runs, os.path.dirname(peer_input))
                cells = [f"{seconds:.3f}", f"{peak.get('RssAnon', 0) / 1e3:.0f}", f"{peak.get('VmHWM', 0) / 1e3:.0f}"]
                print("|", " | ".join([os.path.basename(path), name] + (cells if seconds else ["failed: " + error, "", ""])), "|")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
