"""The folder of a run in a sandbox."""

import os
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

BOX_PREFIX = "cudalab-box-"
_PASSED_ON = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"),
    *("CXX", "CUDALAB_CXXFLAGS"),
)


@dataclass
class Box:
    """The folder of a run: its working directory and its home."""

    path: Path
    _: KW_ONLY
    readable: tuple[Path, ...] = ()  # files and folders that it may also read
    hidden: tuple[Path, ...] = ()  # paths below those that it may not read
    gpu: bool = False
    groups: tuple[int, ...] = ()  # of its user, too: they own files that no other run may read
    extra_env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The environment variables: of the grader's, only those that say where programs are, and
        the compiler's flags, which are part of the names in its cache.
        """
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        own = {"HOME": str(self.path), "TMPDIR": str(self.path), "LANG": "C.UTF-8"}
        defaults = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return defaults | passed_on | own | self.extra_env
