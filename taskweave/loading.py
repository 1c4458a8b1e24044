"""An organization as a person has it: what its file says, resolved, and the very bytes, which a run keeps.

Entry points: `Organization`, `content`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskweave.errors import OrganizationInvalid
from taskweave.org.schema import load, parse
from taskweave.org.yamlfile import Unreadable, read_limited
from taskweave.shipped import find_organization

if TYPE_CHECKING:
    from taskweave.org.schema import Organization as Resolved


class Organization:
    """An organization and the file it came from.  Attributes (`name`, `roles`, `goals`, ...) are those of the resolved one.

    `folder` is where the file lies: there the servers that it names are started.
    """

    def __init__(self, text: str | bytes, file: str = "organization") -> None:
        """From a file's content; raises OrganizationInvalid with every problem in it."""
        self.text, self.folder = text, Path.cwd()
        self.resolved: Resolved = parse(text, file)

    @classmethod
    def load(cls, path: str | Path, *, warn: list[str] | None = None) -> Organization:
        """From a file, or by the name of a built-in one.  `warn` collects what is odd but legal.

        Raises OrganizationInvalid with every problem in it.
        """
        file = find_organization(path)
        loaded = cls.__new__(cls)
        loaded.resolved = load(file, warn=warn)
        loaded.text, loaded.folder = file.read_bytes(), file.absolute().parent
        return loaded

    def __getattr__(self, name: str) -> Any:
        if name in ("resolved", "text", "folder"):  # not set yet, while it is being unpickled
            raise AttributeError(name)
        return getattr(self.resolved, name)

    def __repr__(self) -> str:
        return f"Organization({self.resolved.name!r}, {len(self.resolved.roles)} roles)"


def content(org: Organization | Path | str) -> tuple[str | bytes, str]:
    """What stands in an organization's file, and how messages name it.  Raises OrganizationInvalid where it cannot be read."""
    if isinstance(org, Organization):
        return org.text, "organization"
    file = find_organization(org)
    try:
        return read_limited(file), str(file)
    except Unreadable as why:
        raise OrganizationInvalid([why.problem(str(file))]) from None
