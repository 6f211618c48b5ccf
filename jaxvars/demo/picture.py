"""What `python -m jaxvars --save` draws: the learning curve, and some predictions.

Rule this file keeps: matplotlib is imported when something is drawn, and without pyplot, so it
opens no window and keeps no global state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

_BLUE, _GREEN, _RED, _GREY = "#2563a8", "#2e7d4f", "#c62828", "#6b7280"
_TITLE: dict[str, Any] = {"fontsize": 10, "loc": "left"}
_DOTS: dict[str, Any] = {"marker": "o", "markersize": 3}  # one epoch alone is a dot
_ROWS, _COLUMNS = 5, 8


@final
@dataclass
class History:
    """What training went through.

    Attributes:
        losses: of each step.
        accuracies: on the test images, after each epoch, from 0 to 1.
    """

    losses: list[float] = field(default_factory=list[float])
    accuracies: list[float] = field(default_factory=list[float])


def draw(path: Path, history: History, images: Any, labels: Any, probabilities: Any) -> None:
    """Draw the learning curve and the predictions that a network is least sure of.

    Args:
        path: the PNG file to write.
        history: what training went through.
        images: float, shape [n, 8, 8], from 0 to 1.
        labels: the digits on them, shape [n].
        probabilities: of each digit, shape [n, 10].
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(11, 5.6), dpi=150, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(4, 6), wspace=0.04)
    _draw_curves(left, history)
    _draw_images(right, images, labels, probabilities)
    figure.savefig(path, format="png")


def _draw_curves(figure: Any, history: History) -> None:
    loss, accuracy = figure.subplots(2, 1, sharex=True)
    _draw_loss(loss, history)
    _draw_accuracy(accuracy, history)
    for axes in (loss, accuracy):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, labelcolor=_GREY, color=_GREY)


def _draw_loss(axes: Any, history: History) -> None:
    epochs = len(history.accuracies)
    steps = np.arange(1, len(history.losses) + 1) * epochs / len(history.losses)
    means = np.asarray(history.losses).reshape(epochs, -1).mean(axis=1)
    axes.semilogy(steps, history.losses, color=_BLUE, alpha=0.3, linewidth=0.7)
    axes.semilogy(np.arange(epochs) + 0.5, means, color=_BLUE, linewidth=2, **_DOTS)
    axes.set_title("Training loss: each step, and the mean of each epoch", **_TITLE)


def _draw_accuracy(axes: Any, history: History) -> None:
    epochs = np.arange(1, len(history.accuracies) + 1)
    axes.plot(epochs, 100 * np.asarray(history.accuracies), color=_GREEN, linewidth=2, **_DOTS)
    axes.set_title(f"Test accuracy: {history.accuracies[-1]:.1%} at the end", **_TITLE)
    axes.set_xlabel("epoch", color=_GREY)
    axes.yaxis.set_major_formatter("{x:g} %")


def _draw_images(figure: Any, images: Any, labels: Any, probabilities: Any) -> None:
    found = probabilities.argmax(axis=1)
    wrong = found != labels
    unsure = np.argsort(probabilities.max(axis=1), kind="stable")[: _ROWS * _COLUMNS]
    figure.suptitle(
        f"The {len(unsure)} test images it is least sure of, and what it takes them for\n"
        f"(in red: {wrong[unsure].sum()} of its {wrong.sum()} errors)",
        fontsize=10,
    )
    for axes, i in zip(figure.subplots(_ROWS, _COLUMNS).flat, unsure, strict=True):
        axes.imshow(images[i], cmap="gray_r", vmin=0, vmax=1)
        _label(axes, found[i], labels[i])


def _label(axes: Any, found: int, label: int) -> None:
    right = found == label
    colour, weight, width = (_GREY, "normal", 0.5) if right else (_RED, "bold", 1.8)
    title = f"{found}" if right else f"{found}, not {label}"
    axes.set_title(title, color=colour, fontsize=9, weight=weight, pad=3)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=colour, linewidth=width)
