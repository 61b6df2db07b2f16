"""Properties are tried on the same examples in every run, so that a suite that passed passes."""

import os

from hypothesis import settings

settings.register_profile('same', derandomize=True, deadline=None)
settings.register_profile('explore', print_blob=True, deadline=None)
# `HYPOTHESIS_PROFILE=explore make unit` looks for new counterexamples.
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'same'))
