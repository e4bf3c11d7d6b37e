"""The features that a kernel may require of an NVIDIA GPU, by compute capability."""

_CAPABILITIES = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
# KiB of shared memory that a block may have, from 8.0 on; 99 for others.
_SHARED_KIB = {80: 163, 87: 163, 90: 227, 100: 227, 103: 227, 110: 227}


def features_of(capability: int) -> frozenset[str]:
    """The features that `requires` may name on a device such as 90 (compute capability 9.0)."""
    features = {"inline_ptx", f"sm_{capability}"}
    features.update(f"sm_{known}" for known in _CAPABILITIES if known <= capability)
    if capability >= 70:
        features.add("tensor_cores")
    if capability >= 80:
        room = _SHARED_KIB.get(capability, 99)
        features.update(f"shared_{kib}kb" for kib in (96, 160, 224) if kib <= room)
    if capability >= 90:
        features.update(("bulk_copy", "clusters", f"sm_{capability}a"))
    return frozenset(features)


POSSIBLE_FEATURES = frozenset[str]().union(*map(features_of, _CAPABILITIES))
