"""`python -m benchmarks` measures the engine; `python -m benchmarks RUN` before that how varied that run's texts are."""

from __future__ import annotations

import sys

from benchmarks import engine, texts


def main(words: list[str]) -> int:
    """Words, where there are any, are those of `benchmarks.texts`; what is wrong with them is said before anything is measured."""
    if words and (code := texts.main(words)):
        return code
    engine.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
