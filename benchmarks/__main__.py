"""`python -m benchmarks` measures the engine, and what a year takes in tokens; with words only what they name, or that first.

`python -m benchmarks tokens ...` measures tokens alone (`benchmarks.tokens` has its words); `python -m benchmarks RUN` says how varied
that run's texts are before it measures the engine.
"""

from __future__ import annotations

import sys

from benchmarks import engine, texts, tokens


def main(words: list[str]) -> int:
    """Words, where there are any, are those of `benchmarks.tokens` after its name, else those of `benchmarks.texts`.

    What is wrong with them is said before anything is measured.
    """
    if words[:1] == ["tokens"]:
        return tokens.main(words[1:])
    if words and (code := texts.main(words)):
        return code
    engine.main()
    return 0 if words else tokens.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
