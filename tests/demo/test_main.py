"""`python -m jaxvars`: it learns, says so truthfully, draws, and refuses bad arguments early."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import __main__
from jaxvars.demo import train as _demo
from jaxvars.demo.picture import History, draw

RunPython = Callable[..., subprocess.CompletedProcess[str]]

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the timing as short as it can be: no test looks at the times."""
    monkeypatch.setattr(_demo, "_ROUNDS", 2)
    monkeypatch.setattr(_demo, "_STEPS", 2)


@pytest.fixture(scope="module")
def trained() -> tuple[_demo.Run, History]:
    run = _demo.Run(seed=0)
    return run, run.train(40, lambda *_: None)


# ---------------------------------------------------------------- it learns
def test_it_recognises_the_held_out_digits(trained: tuple[_demo.Run, History]) -> None:
    run, history = trained
    assert history.accuracies[-1] == run.accuracy() >= 0.96
    assert len(history.accuracies) == 40
    assert len(history.losses) == 40 * (1437 // 64)
    assert np.mean(history.losses[-22:]) < np.mean(history.losses[:22]) / 20


def test_one_trace_does_it_all(trained: tuple[_demo.Run, History]) -> None:
    assert trained[0].step.trace_count == 1
    assert trained[0].predict.trace_count == 1


def test_the_same_seed_gives_the_same_losses_and_another_one_others(
    trained: tuple[_demo.Run, History],
) -> None:
    losses = [_demo.Run(seed).train(1, lambda *_: None).losses for seed in (0, 1)]
    assert trained[1].losses[: len(losses[0])] == losses[0] != losses[1]


def test_every_epoch_has_each_image_at_most_once() -> None:
    images = np.concatenate([images for images, _ in _demo.Run(seed=0).batches()])
    assert len(np.unique(images.reshape(len(images), -1), axis=0)) > 0.99 * len(images)


def test_all_state_of_the_optimizer_is_found_and_none_of_it_is_trainable() -> None:
    optimizer = _demo.Run(seed=0).optimizer
    assert {"layers/0/kernel", "layers/2/bias"} <= set(optimizer.slots)
    assert len(optimizer.variables) > 2 * len(optimizer.slots)
    assert optimizer.trainable_variables == ()


# ---------------------------------------------------------------- hand-written
def test_the_step_by_hand_is_the_same_step() -> None:
    run = _demo.Run(seed=0)
    by_hand = _demo.make_step_by_hand(run.model)
    batches = list(run.batches())[:5]
    ours = [float(run.step(*batch)) for batch in batches]
    np.testing.assert_allclose(ours, [float(by_hand(*batch)) for batch in batches], rtol=1e-5)


@pytest.mark.usefixtures("small")
def test_comparing_puts_the_variables_back(trained: tuple[_demo.Run, History]) -> None:
    run, _ = trained
    before = {path: v.numpy() for path, v in run.model.named_variables.items()}
    speed = _demo.compare(run)
    for path, variable in run.model.named_variables.items():
        np.testing.assert_array_equal(variable.numpy(), before[path])
    assert speed.difference < 1e-5
    assert min(speed.ours, speed.by_hand, speed.ratio) > 0


@pytest.mark.usefixtures("small")
def test_a_step_that_differs_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _demo.Run(seed=0)
    wrong = jv.compile(lambda images, _: images.mean() * 0)
    monkeypatch.setattr(_demo, "make_step_by_hand", lambda *_: wrong)
    assert _demo.compare(run).difference > 0.1


# ---------------------------------------------------------------- what is printed
@drawing
@pytest.mark.usefixtures("small")
def test_the_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "digits.png"
    assert __main__.main(["--epochs", "2", "--seed", "3", "--save", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for words in (
        "1437 handwritten digits to learn from, 360 held out", "epoch   2/2  loss ",
        "layers/1/kernel", "17,226 elements in 6", "in plain JAX",
        "notebooks/01_variables.ipynb", f"Picture:       {path}",
    ):  # fmt: skip
        assert words in out
    percent, right = re.search(r"Test accuracy: ([\d.]+)% \((\d+) of 360 images\)", out).groups()
    assert float(percent) == pytest.approx(100 * int(right) / 360, abs=0.06)
    assert png_size(path) == (1650, 840)


FAINT = {"30", "33", "36", "37", "90", "93", "96", "97"}
"""Black, yellow, cyan and white, and their bright ones: unreadable on some terminals."""


@pytest.mark.usefixtures("small")
def test_in_a_terminal_there_is_a_bar_with_the_loss(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    assert __main__.main(["--epochs", "2"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"2/2.*loss=\d\.\d+ accuracy=\d+\.\d%", out)
    assert "epoch   2/2" not in out  # the line for programs
    colours = set(";".join(re.findall(r"\x1b\[([\d;]+)m", out)).split(";"))
    assert "1" in colours  # the title is bold
    assert colours.isdisjoint(FAINT)


def test_as_a_program_without_a_terminal(run_python: RunPython) -> None:
    done = run_python("-m", "jaxvars", "--quick", PYTHONWARNINGS="error")
    assert (done.returncode, done.stderr) == (0, "")
    assert "epoch   8/8" in done.stdout
    assert "\x1b" not in done.stdout
    done.stdout.encode("ascii")  # whatever the terminal's encoding is


def test_files_that_are_named_as_next_exist(capsys: pytest.CaptureFixture[str]) -> None:
    _demo._print_next(None)
    assert "python -m jaxvars --save digits.png" in capsys.readouterr().out
    root = Path(__file__).resolve().parents[2]
    named = [line.split()[0] for line in _demo._NEXT.splitlines()]
    assert len(named) == 4
    assert [name for name in named if not (root / name).exists()] == []


# ---------------------------------------------------------------- arguments
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "argument --epochs: '0' is not a whole number from 1 to 10000"),
        (["--epochs", "many"], "argument --epochs: 'many' is not a whole number"),
        (["--epochs", "2.5"], "argument --epochs: '2.5' is not a whole number"),
        (["--seed", "-1"], "argument --seed: '-1' is not a whole number from 0"),
        (["--seed", str(2**32)], "argument --seed:"),
        (["--epochs", "3", "--quick"], "not allowed with argument"),
        (["--save"], "argument --save: expected one argument"),
        (["--save", "digits.jpeg"], "argument --save: 'digits.jpeg' does not end in .png"),
        (["--save", "no/such/folder/x.png"], "cannot write 'no/such/folder/x.png': No such file"),
        (["--bogus"], "unrecognized arguments: --bogus"),
        (["more"], "invalid choice: 'more' (choose from"),
        (["doctor", "more"], "unrecognized arguments: more"),
    ],
)
def test_bad_arguments_get_a_usage_line_before_anything_runs(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_demo, "run", lambda **_: pytest.fail("it started"))
    with pytest.raises(SystemExit) as stopped:
        __main__.main(arguments)
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: python -m jaxvars")
    assert message in err


def test_a_folder_is_not_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SystemExit):
        __main__.main(["--save", str(tmp_path / "folder.png")])
    assert "Is a directory" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_without_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SystemExit):
        __main__.main(["--save", str(tmp_path / "x.png")])
    assert "Permission denied" in capsys.readouterr().err


def test_looking_whether_a_path_can_be_written_leaves_no_trace(tmp_path: Path) -> None:
    there, new = tmp_path / "there.png", tmp_path / "new.png"
    there.write_bytes(b"as it was")
    assert __main__._picture(str(there)) == there
    assert __main__._picture(str(new)) == new
    assert there.read_bytes() == b"as it was"
    assert not new.exists()


@pytest.mark.usefixtures("small")
def test_without_matplotlib_it_says_so_and_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_demo.importlib.util, "find_spec", lambda _: None)
    assert __main__.main(["--epochs", "1", "--save", str(tmp_path / "x.png")]) == 0
    out, err = capsys.readouterr()
    assert "x.png will not be drawn: matplotlib is not installed (pip install matplotlib)" in err
    assert "Test accuracy" in out
    assert "Picture:" not in out
    assert not (tmp_path / "x.png").exists()


def test_ctrl_c_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "run", interrupted)
    assert __main__.main([]) == 130
    assert "Interrupted." in capsys.readouterr().err


def test_a_reader_that_has_gone_causes_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "jaxvars", "--epochs", "1"], cwd=tmp_path, text=True, timeout=120,
        stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


# ---------------------------------------------------------------- the picture
def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])


def random_predictions(correct: int, n: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, labels and probabilities, of which the last n - correct are wrong."""
    labels = np.arange(n) % 10
    found = np.where(np.arange(n) < correct, labels, (labels + 1) % 10)
    probabilities = np.full((n, 10), 0.01) + 0.9 * np.eye(10)[found]
    return np.random.default_rng(0).random((n, 8, 8)), labels, probabilities


@drawing
@pytest.mark.parametrize(("epochs", "correct"), [(1, 0), (3, 50)])
def test_a_picture_is_drawn_whatever_came_out(tmp_path: Path, epochs: int, correct: int) -> None:
    history = History([0.5] * 4 * epochs, [0.9] * epochs)
    draw(tmp_path / "x.png", history, *random_predictions(correct))
    assert png_size(tmp_path / "x.png") == (1650, 840)


@drawing
def test_wrong_predictions_are_marked_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: kept.append(figure))
    images, labels, probabilities = random_predictions(correct=47)
    probabilities[-3:] *= 0.5  # unsure of these, so they are shown
    draw(tmp_path / "x.png", History([0.5, 0.4], [0.9, 0.95]), images, labels, probabilities)
    titles = [axes.get_title() for axes in kept[0].subfigs[1].axes]
    assert len(titles) == 40
    wrong = sorted(title for title in titles if "not" in title)
    assert wrong == ["0, not 9", "8, not 7", "9, not 8"]
    assert "in red: 3 of its 3 errors" in kept[0].subfigs[1].get_suptitle()
    assert "95.0%" in kept[0].subfigs[0].axes[1].get_title(loc="left")


def test_the_step_is_one_program_with_the_optimizer_in_it(
    trained: tuple[_demo.Run, History],
) -> None:
    run, _ = trained
    batch = next(run.batches())
    concrete = run.step.trace(*batch)
    assert len(concrete.captured) == len(run.model.variables) + len(run.optimizer.variables)
    assert jax.tree.leaves(concrete.structured_outputs)[0].shape == ()


def test_an_output_that_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout", None)
    assert __main__.main(["doctor"]) == 0
