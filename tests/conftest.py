"""Settings of all tests."""

from hypothesis import settings

# a busy machine is no failure
settings.register_profile("fasim", deadline=None)
settings.load_profile("fasim")
