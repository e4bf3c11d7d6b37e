"""The tool that runs the commands of README.md and the tutorials and puts in what they print."""

from __future__ import annotations

from tools import transcripts

DOCUMENT = """\
```cuda title="a/b.cu"
// here
```

```console
$ cat a/b.cu
$ echo 12.5 ms; echo \\
> 7 bytes >&2
12.75 ms
7 bytes
```

<!-- varies -->
```console
$ echo time 5
time 7
```
"""


def test_outputs_are_put_in(tmp_path):
    text, differences = transcripts.rewritten(DOCUMENT, tmp_path)
    assert text == DOCUMENT.replace("b.cu\n$", "b.cu\n// here\n$").replace("12.75", "12.5").replace(
        "time 7", "time 5"
    )
    assert differences == [("cat a/b.cu", "", "// here\n")]


def test_times_may_differ_and_counts_may_not():
    assert transcripts.comparable("total      9.5 ms") == transcripts.comparable("total  10.25 ms")
    assert transcripts.comparable("10 keys") != transcripts.comparable("11 keys")


def test_what_varies_begins_with_the_same_word(tmp_path):
    _, differences = transcripts.rewritten(DOCUMENT.replace("time 7", "Error"), tmp_path)
    assert [difference.command for difference in differences] == ["cat a/b.cu", "echo time 5"]
