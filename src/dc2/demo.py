"""``python -m dc2.demo`` is ``dc2 demo``."""

from dc2.cli import main

if __name__ == "__main__":
    main(["demo"])
