# Completion of `aeon` for zsh; in ~/.zshrc, after compinit: eval "$(aeon completion zsh)"
_aeon_completion() {
    local -a offered
    offered=(${(f)"$("${words[1]}" completion -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)"})
    if (( ${#offered} )); then
        compadd -Q -S '' -- ${(M)offered:#*[=.]}
        compadd -Q -- ${offered:#*[=.]}
    else
        compset -P '*='
        _files
    fi
}
compdef _aeon_completion aeon
