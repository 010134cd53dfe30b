"""What a page of HTML holds, read strictly."""

from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "meta"}


class Outline(HTMLParser):
    """Reads a page strictly: every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def count(self, name: str) -> int:
        return sum(element == name for element, _ in self.elements)
