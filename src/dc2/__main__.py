"""``python -m dc2`` is ``dc2``."""

from dc2.cli import main

if __name__ == "__main__":
    main()
