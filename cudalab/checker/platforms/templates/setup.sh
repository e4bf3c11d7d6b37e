#!/usr/bin/env bash
# Prepares the image in which Gradescope runs the autograder.
set -euo pipefail
cd "$(dirname "$0")"
chmod 700 .  # the tests are not for submissions to read

apt-get update
apt-get install -y --no-install-recommends g++ bubblewrap python3 python3-pip
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    apt-get install -y --no-install-recommends python3.11
fi
. ./python.sh

"$PYTHON" -P -m zipfile -e cudalab.zip ../packages
chmod 700 ../packages/cudalab  # nor are the variants and their answers
"$PYTHON" -P -m pip install --target ../packages -r requirements.txt
# A first check: it fails here and now if something is missing, and compiles what all checks need.
cd ..
PYTHONPATH=$PWD/packages "$PYTHON" -P -m cudalab check @LAB@ --variant @VARIANT@ --device cpu --quick --no-time
