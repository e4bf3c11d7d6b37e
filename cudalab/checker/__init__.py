"""The automated checker: submissions are compiled, judged, sanitized and timed, in a sandbox."""
