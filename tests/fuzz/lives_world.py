"""What lives are made of: small modules, a loss, and a step; the beginning of each program."""

from __future__ import annotations

import contextlib as contextlib  # for programs
import copy
import pickle
import subprocess
import sys
import tempfile

import jax
import numpy as np

import jaxvars as jv

folder = tempfile.gettempdir()


class Part(jv.Module):
    def __init__(self, *values, name=None):
        self.w = jv.Variable(np.array(values, np.float32), name=name)


class Lazy(jv.Module):
    """Makes its variable at its first call."""

    w = None

    def __init__(self, array=np.array):
        self.array = array

    def __call__(self):
        if self.w is None:
            self.w = jv.Variable(self.array([8.0, 9.0], np.float32))
        return self.w.value


class Net(jv.Module):
    def __init__(self):
        self.a = jv.Variable(np.array([1.0, 2.0], np.float32))
        self.enc = Part(3.0, 4.0)
        self.head = Part(5.0, 6.0, name="w")


def loss(net, x):
    for part in net.submodules:
        if isinstance(part, Lazy):
            part()
    return sum(((v - x) ** 2).sum() for v in net.variables if v.dtype == np.float32) / 2


def step(net, opt, x):
    return opt.minimize(lambda: loss(net, x), net)


def values(net):
    return [v.value for v in net.variables if v.dtype == np.float32]


def fail():
    raise ValueError("on purpose")


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def copied(thing):
    return copy.deepcopy(thing)


def elsewhere(source):
    """Run a program in another process."""
    program = f"from tests.fuzz.lives_world import *\n{source}"
    subprocess.run([sys.executable, "-c", program], check=True)


def mesh(size):
    return jv.mesh({"data": size}, jax.devices()[:size])


class Boom(Exception):  # noqa: N818 - what ends a block early
    pass
