"""Measures what memory flags do, by compiling a transformer training step ahead of time. No TPU is needed.

usage: python tools/measure_flags.py [--topology v6e:2x2] [--accelerator v6e-4] [--only NAME[=VALUE] ...]

Needs `pip install jax libtpu`. Prints a Markdown table for `src/advise/catalogue.rs`: the compiler's peak with
each flag alone, against none; or the compiler's own words when it rejects the flag or runs out of memory.
"""
import argparse
import math
import os
import time

# Name and value, as the E1000 guide suggests them (see src/advise/catalogue.rs).
FLAGS = [
    ("xla_latency_hiding_scheduler_rerun", "5"),
    ("xla_tpu_rwb_fusion", "false"),
    ("xla_memory_scheduler", "kBrkga"),
    ("xla_memory_scheduler", "brkga"),
    ("xla_memory_scheduler", "dfs"),
    ("xla_memory_scheduler", "list"),
    ("xla_memory_scheduler", "post_order"),
    ("xla_tpu_enable_latency_hiding_scheduler", "false"),
    ("xla_jf_spmd_threshold_for_windowed_einsum_mib", "1000"),
    ("xla_tpu_max_hbm_size_mib", "6000"),
    ("xla_tpu_rematerialization_algo", "PEAK_PRIORITY"),
    ("xla_tpu_rematerialization_max_block_size_limit", "32"),
    ("xla_tpu_rematerialization_block_effort_factor", "10.0"),
    ("xla_tpu_pre_fusion_remat", "true"),
]


def training_step(jax, devices):
    """A decoder of four layers with Adam-like state, sharded over a 2 x 2 mesh; and its argument shapes."""
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    layers, width, heads, hidden, vocabulary, batch, length = 4, 2048, 16, 5632, 32000, 8, 2048
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("data", "model"))

    def array(shape, *axes, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))

    weights = {
        "embed": array((vocabulary, width), "model", "data"),
        "qkv": array((layers, width, 3, heads, width // heads), None, "data", None, "model"),
        "out": array((layers, heads, width // heads, width), None, "model", None, "data"),
        "up": array((layers, width, hidden), None, "data", "model"),
        "down": array((layers, hidden, width), None, "model", "data"),
    }
    tokens = array((batch, length), "data", dtype=jnp.int32)

    def layer(x, w):
        half = {k: v.astype(jnp.bfloat16) for k, v in w.items()}
        q, k, v = jnp.moveaxis(jnp.einsum("bsd,dchk->bschk", x, half["qkv"]), 2, 0)
        scores = jnp.einsum("bshk,bthk->bhst", q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhst,bthk->bshk", jax.nn.softmax(scores, -1).astype(jnp.bfloat16), v)
        x = x + jnp.einsum("bshk,hkd->bsd", mixed, half["out"])
        return x + jax.nn.gelu(x @ half["up"]) @ half["down"], None

    def loss(w, tokens):
        x = w["embed"].astype(jnp.bfloat16)[tokens]
        x, _ = jax.lax.scan(layer, x, {k: v for k, v in w.items() if k != "embed"})
        logits = (x @ w["embed"].T.astype(jnp.bfloat16)).astype(jnp.float32)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits, -1)[:, :-1], tokens[:, 1:, None], -1)
        return -jnp.mean(picked)

    def step(state, tokens):
        w, mu, nu = state
        value, g = jax.value_and_grad(loss)(w, tokens)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, g)
        nu = jax.tree.map(lambda n, g: 0.95 * n + 0.05 * g * g, nu, g)
        w = jax.tree.map(lambda p, m, n: p - 1e-3 * m / (jnp.sqrt(n) + 1e-8), w, mu, nu)
        return (w, mu, nu), value

    return jax.jit(step, donate_argnums=(0,)).lower((weights, weights, weights), tokens)


def measure(lowered, options):
    """Peak in bytes, or what the compiler says; and seconds."""
    start = time.time()
    try:
        result = lowered.compile(compiler_options=options).memory_analysis().peak_memory_in_bytes
    except Exception as error:  # the compiler's words are the result
        result = " ".join(str(error).split())[:160].replace("|", "/")
    return result, time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", default="v6e:2x2")
    parser.add_argument("--accelerator", default="v6e-4")
    parser.add_argument("--only", nargs="*", metavar="NAME[=VALUE]")
    args = parser.parse_args()
    os.environ.update(
        TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost", JAX_PLATFORMS="cpu",
        TPU_ACCELERATOR_TYPE=args.accelerator,
    )
    import jax
    import libtpu
    from jax.experimental import topologies

    flags = FLAGS
    if args.only is not None:
        asked = [a.partition("=") for a in args.only]
        flags = [(n, v) for n, _, v in asked if v]
        flags += [f for n, _, v in asked if not v for f in FLAGS if f[0] == n]
    devices = topologies.get_topology_desc(platform="tpu", topology_name=args.topology).devices
    lowered = training_step(jax, devices)
    base, seconds = measure(lowered, {})
    if not isinstance(base, int):
        raise SystemExit(f"the program does not compile without flags: {base}")
    print(f"jax {jax.__version__}, libtpu {libtpu.__version__}, {args.topology}\n")
    print("| flag | value | peak | change | seconds |\n|---|---|---:|---:|---:|")
    print(f"| (none) | | {base / 2**30:.3f} GiB | | {seconds:.0f} |", flush=True)
    for name, value in flags:
        peak, seconds = measure(lowered, {name: value})
        if isinstance(peak, int):
            change = f"{100 * (peak - base) / base:+.1f} %"
            print(f"| {name} | {value} | {peak / 2**30:.3f} GiB | {change} | {seconds:.0f} |", flush=True)
        else:
            print(f"| {name} | {value} | {peak} | | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
