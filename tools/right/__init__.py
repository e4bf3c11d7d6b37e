"""Right kernels in many styles: what the checker says of them."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it once
