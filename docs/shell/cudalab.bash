# Completes the commands and options of cudalab in bash; bash-completion loads it at the first Tab.
eval "$(_CUDALAB_COMPLETE=bash_source cudalab)"
