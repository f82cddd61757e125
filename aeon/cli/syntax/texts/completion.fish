# Completion of `aeon` for fish; in ~/.config/fish/config.fish: aeon completion fish | source
complete -c aeon -a '(aeon completion -- (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)'
