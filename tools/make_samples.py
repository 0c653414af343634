"""Makes `samples/`: compiles the programs of train.py for accelerators that need not be there, and keeps XLA's dumps.

usage: python make_samples.py OUT [NAME ...]
needs: pip install jax==0.10.2 libtpu==0.0.52 xprof==2.24.2, and for the GPU sample: pip install --no-deps jax-cuda12-pjrt==0.10.2 jax-cuda12-plugin==0.10.2

Each OUT/NAME holds the dump (HLO before and after optimization, the flags), info.json (how it was made, and the
compiler's own totals), oom.txt where the compiler ran out of memory, and xprof.json (XProf's Memory Viewer figures).
OUT/logdir_two_hosts is a profile log directory: two hosts, two programs each.
"""
import glob
import gzip
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile

# name: (what to look at, platform, topology, accelerator type, function of train.py, its arguments)
SAMPLES = {
    "lm_v6e": ("training step of a transformer; nothing is donated", "tpu", "v6e:2x2", "v6e-4", "language_model", {}),
    "lm_v6e_donated": ("lm_v6e, state donated", "tpu", "v6e:2x2", "v6e-4", "language_model", {"donate": True}),
    "lm_v6e_checkpoint": ("lm_v6e_donated, blocks under jax.checkpoint", "tpu", "v6e:2x2", "v6e-4", "language_model", {"donate": True, "remat": True}),
    "lm_v5e_whole_embedding": ("embedding and readout with no sharding, next to sharded weights", "tpu", "v5e:2x2", "v5litepod-4", "language_model", {"donate": True, "remat": True, "whole_embedding": True, "vocab": 65536}),
    "lm_v5p_whole_logits": ("logits forced whole on every device", "tpu", "v5p:2x2x1", "v5p-8", "language_model", {"donate": True, "remat": True, "whole_logits": True, "vocab": 32768}),
    "lm_v5e_oom": ("too large for a v5e: no profile exists, only the dump and the error", "tpu", "v5e:2x2", "v5litepod-4", "language_model", {"batch": 64, "length": 2048}),
    "serve_v6e": ("decoding step; its cache is not donated", "tpu", "v6e:2x2", "v6e-4", "serve", {}),
    "serve_v6e_donated": ("serve_v6e, cache donated", "tpu", "v6e:2x2", "v6e-4", "serve", {"donate": True}),
    "attention_v6e": ("attention alone", "tpu", "v6e:2x2", "v6e-4", "attend", {}),
    "lm_v5e_debug_print": ("a jax.debug.print of the attention left in", "tpu", "v5e:2x2", "v5litepod-4", "language_model", {"donate": True, "remat": True, "debug": True}),
    "mlp_scan_v4": ("whole weights, layers in a scan", "tpu", "v4:2x2x1", "v4-8", "multilayer", {}),
    "padded_v5e": ("dimensions that tile badly", "tpu", "v5e:2x2", "v5litepod-4", "point_cloud", {}),
    "mlp_h100": ("GPU", "cuda", "1x1x4", "", "multilayer", {"scan": False, "layers": 4}),
    "mlp_cpu": ("CPU", "cpu", "", "", "multilayer", {"data": 1}),
}
H100 = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
  platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 } device_description_str: "NVIDIA H100 80GB HBM3" """
ZIP_OVER = 100_000  # bytes: larger files are stored gzipped


def compile_here(name, dump):
    """Compiles one sample into the folder `dump` (a process compiles for one kind of chip only)."""
    _, platform, topology, accelerator, program, options = SAMPLES[name]
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE=accelerator)
    import jax
    from jax.experimental import topologies
    import train
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # the file's name alone
    if platform == "tpu":
        devices = topologies.get_topology_desc(platform=platform, topology_name=topology).devices
    elif platform == "cuda":
        devices = topologies.get_topology_desc(platform=platform, topology=topology, topology_name=topology, target_config=H100).devices
    else:
        devices = jax.devices()
    function, arguments, jit_options = getattr(train, program)(devices, **options)
    flags = {"xla_dump_to": dump, "xla_dump_hlo_as_proto": True, **({"xla_gpu_autotune_level": 0} if platform == "cuda" else {})}
    info = {"program": program, "options": options, "platform": platform, "topology": topology, "jax": jax.__version__}
    if platform == "tpu":
        info["libtpu"] = importlib.metadata.version("libtpu")
    try:
        stats = jax.jit(function, **jit_options).lower(*arguments).compile(compiler_options=flags).memory_analysis()
        info["memory_analysis"] = {k: getattr(stats, k) for k in dir(stats) if k.endswith("_in_bytes")}
    except Exception as error:
        if "RESOURCE_EXHAUSTED" in str(error):  # the result wanted
            info["error"] = str(error)
        elif platform == "cuda" and glob.glob(os.path.join(dump, "*after_optimizations.hlo.pb")):
            info["note"] = "compiled without a GPU: code generation stops after buffer assignment, so the compiler reports no totals"
        else:
            raise
    with open(os.path.join(dump, "info.json"), "w") as out:
        json.dump(info, out, indent=1)


def varint(number):
    """Protocol-buffer varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """A protocol-buffer message from (number, int | str | bytes) pairs."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def xspace(programs, host, device=""):
    """An XSpace as a profiler writes it: programs = [(module name, program id, HloProto)]."""
    plane = [(1, 1), (2, "/host:metadata")]
    for module, program, proto in programs:
        stat = message((1, 1), (6, proto))
        plane.append((4, message((1, program), (2, message((1, program), (2, f"{module}({program})"), (5, stat))))))
    plane.append((5, message((1, 1), (2, message((1, 1), (2, "Hlo Proto"))))))
    space = [(1, message(*plane))]
    if device:
        names = message((1, 1), (2, message((1, 1), (2, "device_type_string"))))
        space.append((1, message((1, 2), (2, "/device:TPU:0"), (5, names), (6, message((1, 1), (5, device))))))
    return message(*space, (4, host))


def module_name(proto):
    """HloProto.hlo_module.name: the first field of the first field."""
    def read(at):
        value = shift = 0
        while True:
            byte = proto[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value, at
    tag, at = read(0)
    _, at = read(at)
    inner, at = read(at)
    size, at = read(at)
    assert tag == inner == 10, "not an HloProto"
    return proto[at:at + size].decode()


def viewer(xplane, module, space):
    """XProf's Memory Viewer figures for one program and memory space, or None when it has none."""
    from xprof.convert import raw_to_tool_data
    options = {"module_name": module, "memory_space": str(space)}
    try:
        raw, _ = raw_to_tool_data.xspace_to_tool_data([xplane], "memory_viewer", options)
        seen = json.loads(raw)
    except Exception:
        return None
    totals = ("peakHeapMib", "peakUnpaddedHeapMib", "peakHeapSizePosition", "entryComputationParametersMib", "nonReusableMib",
              "maybeLiveOutMib", "totalBufferAllocationMib", "indefiniteBufferAllocationMib")
    figures = {k: seen[k] for k in totals if k in seen}
    figures["buffers"] = [buffer(b) for b in seen.get("maxHeap", [])]
    figures["heap_points"] = len(seen.get("heapSizes", []))
    figures["max_heap_size_mib"] = max(seen.get("heapSizes", [0]))
    return figures if figures["buffers"] else None


def buffer(b):
    """One row of XProf's buffer list at the peak. Id -1 stands for the small ones together."""
    source = b.get("sourceInfo") or {}
    return {"id": b.get("logicalBufferId", 0), "mib": b.get("logicalBufferSizeMib", 0), "unpadded_mib": b.get("unpaddedShapeMib", 0),
            "instruction": b.get("instructionName", ""), "group": b.get("groupName", ""), "shape": b.get("shapeString", ""),
            "op_name": b.get("tfOpName", ""), "opcode": b.get("opCode", ""),
            "source": [source.get("fileName", ""), source.get("lineNumber", 0)]}


def figures(programs):
    """{module(id): {memory space: figures}} for the programs of one XSpace."""
    from xprof.convert import raw_to_tool_data
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "plugins", "profile", "run")
        os.makedirs(run)
        xplane = os.path.join(run, "host.xplane.pb")
        with open(xplane, "wb") as out:
            out.write(xspace(programs, "host"))
        raw_to_tool_data.xspace_to_tool_names([xplane])
        for module, program, _ in programs:
            spaces = {str(s): viewer(xplane, f"{module}({program})", s) for s in range(16)}
            found[f"{module}({program})"] = {s: f for s, f in spaces.items() if f}
    return found


def load(path):
    """A file's bytes, gunzipped when its name says so."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read()


def make(name, out):
    """Compiles one sample in a neutral folder and keeps what is worth keeping."""
    target = os.path.join(out, name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    with tempfile.TemporaryDirectory() as folder:
        here = os.path.dirname(os.path.abspath(__file__))
        for script in ("make_samples.py", "train.py"):
            shutil.copy(os.path.join(here, script), folder)
        os.mkdir(os.path.join(folder, "dump"))
        subprocess.run([sys.executable, "make_samples.py", "--compile", name, "dump"], cwd=folder, check=True)
        for path in sorted(glob.glob(os.path.join(folder, "dump", "*"))):
            base = os.path.basename(path)
            if base.endswith(("after_optimizations.hlo.pb", ".before_optimizations.hlo.pb", ".flagfile", "info.json")):
                data = load(path)
                if base.endswith(".pb") and len(data) > ZIP_OVER:
                    base, data = base + ".gz", gzip.compress(data, 9, mtime=0)
                with open(os.path.join(target, base), "wb") as kept:
                    kept.write(data)
    info = json.loads(load(os.path.join(target, "info.json")))
    if info["platform"] == "tpu" and "error" in info:
        with open(os.path.join(target, "oom.txt"), "w") as text:
            text.write(info["error"].rstrip() + "\n")
    proto = optimized(target)
    with open(os.path.join(target, "xprof.json"), "w") as text:
        json.dump(list(figures([(module_name(proto), 1, proto)]).values())[0], text, indent=1)


def optimized(folder):
    """The HloProto with buffer assignment of a sample."""
    return load(glob.glob(os.path.join(folder, "*after_optimizations.hlo.pb*"))[0])


def log_directory(out):
    """Two hosts of one run; the second runs the same programs."""
    programs = []
    for program, sample in ((41, "lm_v6e_donated"), (42, "serve_v6e")):
        proto = optimized(os.path.join(out, sample))
        programs.append((module_name(proto), program, proto))
    root = os.path.join(out, "logdir_two_hosts")
    shutil.rmtree(root, ignore_errors=True)
    run = os.path.join("plugins", "profile", "2026_11_01_10_00_00")
    os.makedirs(os.path.join(root, run))
    for host in ("host-0", "host-1"):
        with open(os.path.join(root, run, f"{host}.xplane.pb"), "wb") as file:
            file.write(xspace(programs, host, "TPU v6 lite"))
    seen = figures(programs)
    for spaces in seen.values():
        for space in spaces.values():
            space["buffers"] = len(space["buffers"])
    with open(os.path.join(root, "xprof.json"), "w") as text:
        json.dump({f"{run}/{host}.xplane.pb": {"modules": seen, "allocators": {}} for host in ("host-0", "host-1")}, text, indent=1)


def main(arguments):
    if arguments[:1] == ["--compile"]:
        return compile_here(*arguments[1:])
    out, *names = arguments
    for name in names or SAMPLES:
        make(name, out)
        print(name)
    if not names:
        log_directory(out)


if __name__ == "__main__":
    main(sys.argv[1:])
