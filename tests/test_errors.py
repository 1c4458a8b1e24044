"""What can go wrong stands as one tree at the top of `errors.py`, and is one."""

from __future__ import annotations

import inspect
import re

from taskweave import errors


def test_the_tree_that_is_drawn_is_the_tree_of_the_classes() -> None:
    drawn: list[tuple[int, str]] = [
        (len(line) - len(line.lstrip(" │├└─")), found[1])
        for line in (errors.__doc__ or "").splitlines()
        if (found := re.match(r"[ │├└─]*([A-Z][A-Za-z]+)(?:\s{2,}|$)", line)) and line.startswith("    ")
    ]
    above: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for depth, name in drawn:
        path = [(d, n) for d, n in path if d < depth]
        above[name] = path[-1][1] if path else None
        path.append((depth, name))
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__ and issubclass(c, Exception)]
    assert above == {c.__name__: None if c is errors.TaskWeaveError else c.__bases__[0].__name__ for c in classes}
