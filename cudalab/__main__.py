"""`python -m cudalab` is the `cudalab` command."""

from cudalab.cli import main

if __name__ == "__main__":
    main()
