"""Programs that others wrote, on the CPU device and on a GPU: what they print, compared."""
