"""`planning/hlo.py`: what devices exchange and what loops repeat, read from XLA's programs."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.planning.hlo import (
    Collective,
    collectives_in,
    count_products,
    has_choices,
    nbytes,
    passes_of,
)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[]", 4), ("bf16[3,5]{1,0}", 30), ("pred[8]", 8), ("s4[3]", 2), ("c64[2]", 16),
        ("f8e4m3fn[16]{0:T(8)}", 16), ("(f32[2]{0}, (u8[3], token[]))", 11), ("f32[0,5]", 0),
    ],
)  # fmt: skip
def test_sizes_of_types(shape, size):
    assert nbytes(shape) == size


TEXT = """\
HloModule jit_step, is_scheduled=true

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p = (s32[], f32[4]{0}) parameter(0)
  %x = f32[4]{0} get-tuple-element(%p), index=1
  %r = f32[4]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
}

%yes (q: f32[4]) -> f32[16] {
  %q = f32[4]{0} parameter(0)
  ROOT %g = f32[16]{0} all-gather(%q), replica_groups=[2,4]<=[8], dimensions={0}
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %w = (s32[], f32[4]{0}) while(%t), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"10"}}
  %s = (f32[4]{0}, f32[16]{0}) all-gather-start(%a), replica_groups=mesh['x'=2,'y'=4], device_ids=([8]) {'y'}
  %d = f32[16]{0} all-gather-done(%s)
  %k = f32[16]{0} conditional(%b, %a, %a), branch_computations={%yes, %no}
  %m = f32[1]{0} reduce-scatter(%a), replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %o = f32[4]{0} collective-permute(%a), source_target_pairs={{0,1},{1,0}}
}
"""  # noqa: E501 - as XLA writes it


def test_collectives_in_loops_and_branches():
    assert collectives_in(passes_of(TEXT)) == {
        Collective("all-reduce", 2, 16): 10,
        Collective("all-gather", 4, 64): 2,
        Collective("reduce-scatter", 4, 16): 1,
        Collective("collective-permute", None, 16): 1,
    }


@pytest.mark.skipif(jax.device_count() < 2, reason="needs 2 CPU devices: see conftest.py")
def test_a_loop_of_a_real_program_counts_as_often_as_it_runs():
    mesh = jv.mesh({"x": 2})
    spread = jax.sharding.NamedSharding(mesh, jax.P("x"))
    whole = jax.sharding.NamedSharding(mesh, jax.P())

    def program(x):
        def one(carry, _):
            total = jax.lax.with_sharding_constraint(jnp.sum(x * carry), whole)
            return jnp.sin(carry + total), None

        return jax.lax.scan(one, 1.0, None, length=7)[0]

    x = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=spread)
    text = jax.jit(program, out_shardings=whole).lower(x).compile().as_text()
    assert collectives_in(passes_of(text)) == {Collective("all-reduce", 2, 4): 7}


# ---------------------------------------------------------------- a TPU's programs
# Six layers of two matrix products, recomputed in the backward pass, on v5e:2x2: data and model
# sharded in two. It has no trip counts, and writes a collective in each fusion that it goes on in.
TPU = (Path(__file__).parent / "tpu_v5e_scan.hlo").read_text()
PRODUCT = 2 * 256 * 1024 * 2048
LAYERS = 6


def test_collectives_of_a_program_for_tpus():
    assert collectives_in(passes_of(TPU)) == {
        Collective("all-gather", 2, 2 * 1024 * 2048): 4 * LAYERS,  # two weights, there and back
        Collective("all-reduce", 2, 2 * 256 * 1024): 2 * LAYERS,  # of what the layers make
        Collective("reduce-scatter", 2, 2 * 1024 * 2048): 2 * LAYERS,  # two gradients
        Collective("all-reduce", 2, 4): 1,  # the loss
    }


def test_products_in_loops_of_a_program_for_tpus_count_as_often_as_they_run():
    assert count_products(passes_of(TPU)) == (7 * PRODUCT * LAYERS, 7 * PRODUCT, True, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("constant(6)", "get-tuple-element(%wide.param.1), index=4"),  # the end is not known
        ("direction=LT", "direction=NE"),
        (
            "add(%copy.6, %constant.71.clone.1..sunk)",
            "multiply(%copy.6, %constant.71.clone.1..sunk)",
        ),
    ],
)
def test_what_is_in_a_loop_of_unknown_length_is_said_to_be(old, new):
    assert TPU.count(old) >= 1
    text = TPU.replace(old, new)
    found = collectives_in(passes_of(text))
    assert found[Collective("all-reduce", 2, 2 * 256 * 1024, is_repeated=True)] >= 1
    assert not count_products(passes_of(text)).is_exact


def count(program, *args):
    """Return the operations that XLA counts, and the products that we count."""
    compiled = jax.jit(program).lower(*args).compile()
    return compiled.cost_analysis()["flops"], count_products(passes_of(compiled.as_text()))


def test_products_in_a_loop_here_count_as_often_as_they_run():
    x = jnp.ones((64, 64))
    once, alone = count(lambda x: x @ x, x)
    assert alone == (2 * 64**3, 2 * 64**3, True, True)
    again, looped = count(lambda x: jax.lax.fori_loop(0, 9, lambda _, y: y @ x, x), x)
    assert looped == (9 * 2 * 64**3, 2 * 64**3, True, True)
    assert abs(again - once) < 0.02 * once  # XLA counts the loop once


CONVOLUTION = """\
%body (p: (s32[], f32[2,8,8,3])) -> (s32[], f32[2,8,8,3]) {{
  %p = (s32[], f32[2,8,8,3]) parameter(0)
  %x = {x} get-tuple-element(%p), index=1
  %k = {k} constant({{...}})
  %c = {y} convolution(%x, %k), {rest}
}}

ENTRY %main (a: f32[]) -> f32[] {{
  %w = (s32[]) while(%t), condition=%c, body=%body, {{"known_trip_count":{{"n":"2"}}}}
}}
"""


@pytest.mark.parametrize(
    ("x", "k", "y", "rest", "pairs"),
    [
        # 3x3 with padding: each of the outer rows and columns meets one of the kernel's less
        ("f32[2,8,8,3]", "f32[3,3,3,5]", "f32[2,8,8,5]",
         "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", 2 * 3 * 5 * 22 * 22),
        ("f32[2,8,8,3]", "f32[2,2,3,5]", "f32[2,4,4,5]",
         "window={size=2x2 stride=2x2}, dim_labels=b01f_01io->b01f", 2 * 3 * 5 * 8 * 8),
        ("f32[2,8,8,4]", "f32[1,1,2,4]", "f32[2,8,8,4]",
         "window={size=1x1}, dim_labels=b01f_01io->b01f, feature_group_count=2", 2 * 2 * 4 * 64),
        ("bf16[16,32]", "bf16[32,8]", "bf16[16,8]", "dim_labels=bf_io->bf", 16 * 32 * 8),
        # a product for each of 4, as a TPU writes it: all else that the window meets is padding
        ("f32[4,16,32]", "f32[4,32,8]", "f32[4,16,8]",
         "window={size=4 stride=3 pad=0_0 lhs_dilate=4}, dim_labels=0bf_0io->0bf", 16 * 32 * 8 * 4),
    ],
)  # fmt: skip
def test_convolutions_count_what_is_not_padding(x, k, y, rest, pairs):
    text = CONVOLUTION.format(x=x, k=k, y=y, rest=rest)
    assert count_products(passes_of(text)) == (4 * pairs, 2 * pairs, True, True)


GPU = """\
ENTRY %main (a: bf16[64,128], b: bf16[128,32]) -> bf16[64,32] {
  %a = bf16[64,128]{1,0} parameter(0)
  %b = bf16[128,32]{1,0} parameter(1)
  ROOT %g = (bf16[64,32], s8[4194304]) custom-call(%a, %b), custom_call_target="__cublas$gemm", \
backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}
}
"""


def test_products_of_libraries_for_gpus():
    product = 2 * 64 * 128 * 32
    assert count_products(passes_of(GPU)) == (product, product, True, True)
    assert not count_products(passes_of(GPU.replace("__cublas$gemm", "__cudnn$convForward"))).is_all


# ---------------------------------------------------------------- conditions, and what waits
STARTED = """\
ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %s = (f32[4]{0}, f32[4]{0}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}
  ROOT %d = f32[4]{0} collective-permute-done(%s)
}
"""  # noqa: E501 - as XLA for TPUs writes it


def test_what_devices_wait_with_is_not_exchanged():
    assert collectives_in(passes_of(STARTED)) == {Collective("collective-permute", None, 16): 1}


def test_choices():
    assert has_choices(passes_of(TEXT))  # its branch has a collective
    assert not has_choices(passes_of(STARTED))
