# Completes the commands and options of cudalab in fish.
_CUDALAB_COMPLETE=fish_source cudalab | source
