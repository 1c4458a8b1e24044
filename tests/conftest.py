"""What holds for every test."""

from __future__ import annotations

import os
import signal
from urllib.parse import urlsplit

import pytest
from hypothesis import settings

# How fast a machine is, or how busy, is no property of what is tested.
settings.register_profile("taskweave", deadline=None)
settings.load_profile("taskweave")

# Whoever starts the tests in the background may have signals ignored; what is tested is how a run hears them.
for _number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@pytest.fixture(autouse=True)
def _only_loopback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test talks to a real model, and none has a key for one; `-m live` lifts this."""
    if request.node.get_closest_marker("live"):
        return
    from taskweave.backbones.openai import OpenAI

    connected = OpenAI._connected

    def guarded(self: OpenAI) -> object:
        host = urlsplit(self.base_url).hostname
        if host not in LOOPBACK:
            pytest.fail(f"a test would have called {host!r}; tests talk to loopback only, or are marked 'live'")
        return connected(self)

    monkeypatch.setattr(OpenAI, "_connected", guarded)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(autouse=True)
def _told_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have telemetry asked for; a test that wants it says so itself."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test finds out of an endpoint is kept for that test alone, also by the processes that it starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs within a test's process start no other one; what does is tested in `test_beside.py`."""
    from taskweave.backbones.scripted import beside

    monkeypatch.setattr(beside, "_cores", lambda: 1)
