# lab: reduce
# summary: Says in the sandbox's words that it could not be built
import sys

sys.exit("bwrap: Creating new namespace failed: Operation not permitted")
