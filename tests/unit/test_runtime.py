"""How the parts of the runtime get into the cache."""

from cudalab.program import runtime


def test_processes_of_one_number_make_the_same_part_at_once(tmp_path):
    """Containers that share a cache count their processes from 1, each for itself."""
    both = [runtime.Runtime(tmp_path, [runtime.FIRST]) for _ in range(2)]
    assert [one.finish() for one in both] == [[str(tmp_path / f"{runtime.FIRST}.o")]] * 2
    assert [each.name for each in tmp_path.iterdir()] == [f"{runtime.FIRST}.o"]
