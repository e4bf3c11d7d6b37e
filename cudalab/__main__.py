"""`python -m cudalab` is the `cudalab` command."""

from cudalab.cli.app import main

if __name__ == "__main__":
    main()
