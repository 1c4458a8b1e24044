"""`python -m taskweave` is `taskweave`.  Entry point: `main`, which hears Ctrl-C before anything heavy is loaded."""

from __future__ import annotations

import sys

from taskweave import interrupts


def main() -> None:
    """Run the command line of this process."""
    interrupts.listen()
    try:
        words = sys.argv[2:] if sys.argv[1:2] == ["resume"] else []
        interrupts.name(lambda: interrupts.found(words))
        from taskweave.cli import main as door

        try:
            door()
        finally:
            interrupts.close_ears()
    except SystemExit as ended:
        if ended.code == interrupts.EXIT:
            interrupts.leave()
        raise
    except BaseException:
        if interrupts.heard():
            interrupts.end()
        raise


if __name__ == "__main__":
    main()
