# The Python to use: 3.11 or later.
for PYTHON in python3 python3.11; do
    if "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi
done
