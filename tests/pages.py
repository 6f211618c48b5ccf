"""The HTML that notebooks show, as tests look at it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

VOID = {"path", "rect"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects their names and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == [], "tags left open"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
