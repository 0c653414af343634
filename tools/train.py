"""Small programs with known memory faults, compiled by make_samples.py.

Every function takes a list of devices and returns (function, abstract arguments, jit options).
The samples' source locations (`train.py:LINE`) point into this file: keep lines where they are, or make the samples again.
"""
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def grid(devices, **axes):
    """A mesh over the first devices, its axes in the order given."""
    count = math.prod(axes.values())
    return Mesh(np.array(devices[:count]).reshape(tuple(axes.values())), tuple(axes))


def array(mesh, shape, dtype, *axes):
    """An abstract array of the global `shape`, dimension k split over axes[k]."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))


def adam(loss):
    """A training step over state = {params, mu, nu}."""
    def train_step(state, batch):
        value, grads = jax.value_and_grad(loss)(state["params"], batch)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g.astype(m.dtype), state["mu"], grads)
        nu = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * jnp.square(g.astype(v.dtype)), state["nu"], grads)
        params = jax.tree.map(lambda p, m, v: (p - 3e-4 * m * lax.rsqrt(v + 1e-9)).astype(p.dtype), state["params"], mu, nu)
        return {"params": params, "mu": mu, "nu": nu}, value
    return train_step


def language_model(devices, data=2, model=2, layers=4, width=1024, heads=8, hidden=3072, vocab=16384, batch=16, length=1024,
                   donate=False, remat=False, whole_embedding=False, whole_logits=False, debug=False, weights=jnp.float32):
    """A decoder-only transformer: parameters split over data x model, activations over data."""
    mesh = grid(devices, data=data, model=model)
    head = width // heads

    def stack(shape, *axes):
        return array(mesh, (layers, *shape), weights, None, *axes)

    params = {
        "embedding": array(mesh, (vocab, width), weights, *(() if whole_embedding else ("model", "data"))),
        "readout": array(mesh, (width, vocab), weights, *(() if whole_embedding else ("data", "model"))),
        "blocks": {
            "norm": stack((2, width)),
            "qkv": stack((3, width, heads, head), None, "data", "model"),
            "out": stack((heads, head, width), "model", None, "data"),
            "wide": stack((2, width, hidden), None, "data", "model"),
            "narrow": stack((hidden, width), "model", "data"),
        },
    }

    def split(x, *axes):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*axes)))

    def rms(x, scale):
        return x * lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-5).astype(x.dtype) * scale

    def attention(x, w):
        q, k, v = jnp.einsum("btw,jwhd->jbthd", x, w["qkv"])
        scores = jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32) * head ** -0.5
        past = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
        probs = jax.nn.softmax(jnp.where(past, scores, -1e30), axis=-1).astype(x.dtype)
        if debug:
            jax.debug.print("attention {probs}", probs=probs)
        return jnp.einsum("bhts,bshd,hdw->btw", probs, v, w["out"])

    def feed_forward(x, w):
        gate, up = jnp.einsum("btw,jwf->jbtf", x, w["wide"])
        return jnp.einsum("btf,fw->btw", jax.nn.gelu(gate) * up, w["narrow"])

    def block(x, w):
        w = jax.tree.map(lambda a: a.astype(jnp.bfloat16), w)
        x = x + attention(rms(x, w["norm"][0]), w)
        x = x + feed_forward(rms(x, w["norm"][1]), w)
        return split(x, "data"), None

    def loss(params, tokens):
        x = split(params["embedding"].astype(jnp.bfloat16)[tokens], "data")
        x, _ = lax.scan(jax.checkpoint(block) if remat else block, x, params["blocks"])
        logits = (x @ params["readout"].astype(jnp.bfloat16)).astype(jnp.float32)
        logits = split(logits) if whole_logits else split(logits, "data", None, "model")
        gold = jnp.take_along_axis(logits, jnp.roll(tokens, -1, 1)[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - gold)

    state = {"params": params, "mu": params, "nu": params}
    return adam(loss), (state, array(mesh, (batch, length), jnp.int32, "data")), {"donate_argnums": 0} if donate else {}


def serve(devices, model=4, layers=4, width=1024, heads=8, groups=4, hidden=3072, vocab=32768, batch=64, context=8192, donate=False):
    """One decoding step of a transformer with a key-value cache, heads split over model."""
    mesh = grid(devices, model=model)
    head = width // heads

    def weight(shape, *axes):
        return array(mesh, (layers, *shape), jnp.bfloat16, None, *axes)

    params = {
        "embedding": array(mesh, (vocab, width), jnp.bfloat16, "model"),
        "query": weight((width, heads, head), None, "model"),
        "key_value": weight((2, width, groups, head), None, None, "model"),
        "out": weight((heads, head, width), "model"),
        "wide": weight((width, hidden), None, "model"),
        "narrow": weight((hidden, width), "model"),
    }
    cache = array(mesh, (layers, 2, batch, context, groups, head), jnp.bfloat16, None, None, None, None, "model")

    def decode_step(params, cache, token, step):
        def layer(x, inputs):
            w, kv = inputs
            fresh = jnp.einsum("bw,jwgd->jbgd", x, w["key_value"])[:, :, None]
            kv = lax.dynamic_update_slice(kv, fresh, (0, 0, step, 0, 0))
            q = jnp.einsum("bw,whd->bhd", x, w["query"]).reshape(batch, groups, heads // groups, head)
            scores = jnp.einsum("bgqd,btgd->bgqt", q, kv[0]).astype(jnp.float32) * head ** -0.5
            probs = jax.nn.softmax(jnp.where(jnp.arange(context) <= step, scores, -1e30), -1).astype(x.dtype)
            mixed = jnp.einsum("bgqt,btgd->bgqd", probs, kv[1]).reshape(batch, heads, head)
            x = x + jnp.einsum("bhd,hdw->bw", mixed, w["out"])
            return x + jax.nn.relu(x @ w["wide"]) @ w["narrow"], kv
        x, cache = lax.scan(layer, params["embedding"][token], ({k: v for k, v in params.items() if k != "embedding"}, cache))
        return cache, jnp.argmax(x @ params["embedding"].T, -1)

    return decode_step, (params, cache, array(mesh, (batch,), jnp.int32), array(mesh, (), jnp.int32)), {"donate_argnums": 1} if donate else {}


def multilayer(devices, data=4, layers=6, width=512, hidden=2048, batch=64, length=128, donate=False, scan=True):
    """Residual layers, weights whole on every device, batch split; plain gradient descent."""
    mesh = grid(devices, data=data)

    def layer(x, w):
        return x + jnp.tanh(x @ w["up"].astype(x.dtype)) @ w["down"].astype(x.dtype), None

    def loss(params, x):
        if scan:
            x, _ = lax.scan(layer, x, params)
        else:
            for w in params:
                x, _ = layer(x, w)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def train_step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    front = (layers,) if scan else ()
    params = {"up": array(mesh, (*front, width, hidden), jnp.float32), "down": array(mesh, (*front, hidden, width), jnp.float32)}
    params = params if scan else [params] * layers
    return train_step, (params, array(mesh, (batch, length, width), jnp.bfloat16, "data")), {"donate_argnums": 0} if donate else {}


def point_cloud(devices, points=1 << 18, width=64):
    """Shapes the tiles do not like: rows of 3 and of 64 numbers, gathered and scattered one by one."""
    mesh = grid(devices, one=1)

    def pool(cloud, features, neighbour):
        near = features[neighbour].astype(jnp.float32)
        offset = cloud[neighbour] - cloud
        weight = jnp.exp(-jnp.sum(offset ** 2, -1, keepdims=True))
        pooled = jnp.zeros((points, width), jnp.float32).at[neighbour].add(near * weight)
        moved = jnp.zeros((points, 3), jnp.float32).at[neighbour].add(offset * weight)
        return pooled.astype(features.dtype), moved

    return pool, (array(mesh, (points, 3), jnp.float32), array(mesh, (points, width), jnp.bfloat16), array(mesh, (points,), jnp.int32)), {}


def attend(devices, data=4, batch=32, length=1024, heads=8, head=128, debug=False):
    """Attention, the batch split over data; `debug` leaves a jax.debug.print of the weights in."""
    mesh = grid(devices, data=data)

    def attention(q, k, v):
        scores = jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32) * head ** -0.5
        probs = jax.nn.softmax(scores, axis=-1).astype(q.dtype)
        if debug:
            jax.debug.print("attention {probs}", probs=probs)
        return jnp.einsum("bhts,bshd->bthd", probs, v)

    return attention, [array(mesh, (batch, length, heads, head), jnp.bfloat16, "data")] * 3, {}
