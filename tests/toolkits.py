"""CUDA toolkits that only answer questions about themselves."""

from __future__ import annotations


def toolkit(root, release="13.0", codes="sm_75 sm_80 sm_90"):
    """A toolkit whose nvcc answers about itself."""
    path = root / "bin" / "nvcc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        f'case $1 in --version) echo "Cuda compilation tools, release {release}, V{release}" ;;\n'
        f"--list-gpu-code) printf '%s\\n' {codes} ;; esac\n"
    )
    path.chmod(0o755)
    return path
