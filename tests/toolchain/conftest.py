from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    """One cache for the session, empty at its start, so that compilations are real and yet done once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASIM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
