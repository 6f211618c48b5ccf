"""`python -m jaxvars doctor`: versions, devices, settings, and what to do about slow ones."""

from __future__ import annotations

import sys

import jax
import pytest

from jaxvars import __main__
from jaxvars.demo import doctor


def found() -> dict[str, tuple[str, str]]:
    return {what: (value, cure) for what, value, cure in doctor.report().rows}


def test_it_says_what_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "which", lambda _: None)
    rows = found()
    assert rows["jax"] == rows["jaxlib"] == (jax.__version__, "")
    assert rows["devices"] == (f"{jax.local_device_count()} x {jax.default_backend()}", "")
    assert rows["64-bit numbers"][0] in ("on", "off")
    assert float(rows["each further call"][0].removesuffix(" us")) > 0


@pytest.mark.parametrize("name", doctor._SLOW)
def test_settings_that_make_all_slow_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name not in found()
    monkeypatch.setattr(doctor, "_speed", lambda: iter(()))  # which such a setting would break
    before = getattr(jax.config, name)
    jax.config.update(name, True)
    try:
        assert found()[name] == ("on", f"slow: {doctor._SLOW[name]}")
    finally:
        jax.config.update(name, before)


def test_a_gpu_that_jax_does_not_see_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "which", lambda _: "/usr/bin/nvidia-smi")
    assert "JAX does not see the GPU" in found()["devices"][1]


def test_devices_that_share_cores_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "count_cores", lambda: jax.local_device_count() - 1)
    assert found()["processor cores"][1] == "devices share cores: look at each result"


def test_versions_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"jax": "0.11.0", "jaxlib": "0.10.2", "optax": "0.2.8", "rich": "14.0.0"}
    monkeypatch.setattr(doctor, "installed", lambda name: versions.get(name, "not installed"))
    rows = found()
    assert rows["jaxlib"] == ("0.10.2", "install jax's version")
    assert rows["keras"] == ("not installed", "")
    assert rows["optax"] == ("0.2.8", "")
    assert rows["tensorstore"] == ("not installed", 'pip install "tensorstore>=0.1.86,<0.2"')
    assert "rich" not in rows


def test_a_debugger_is_named() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        assert found()["a debugger or coverage"][1].startswith("slow")
    finally:
        sys.settrace(before)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    for what in ("jaxvars", "devices", "compilation cache", "each further call"):
        assert what in shown


def test_other_commands_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        __main__.main(["doktor"])
    assert caught.value.code == 2
    assert "doctor" in capsys.readouterr().err
