"""A pytest plugin: the native core is the one that `make sanitize` built, at the path in DC2_SANITIZED."""

import importlib.util
import os
import sys

_spec = importlib.util.spec_from_file_location("dc2.core._native", os.environ["DC2_SANITIZED"])
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["dc2.core._native"] = _module
_spec.loader.exec_module(_module)
