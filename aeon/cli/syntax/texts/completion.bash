# Completion of `aeon` for bash; in ~/.bashrc: eval "$(aeon completion bash)"
_aeon_completion() {
    local IFS=$' \t\n' line="${COMP_LINE:0:COMP_POINT}" words current typed word
    read -ra words <<< "$line"
    case $line in *[[:blank:]]) words+=("") ;; esac
    current="${words[${#words[@]}-1]}"
    # Bash replaces only what follows the last = or : of the word.
    typed="${current%"${current##*[=:]}"}"
    COMPREPLY=()
    while IFS= read -r word; do
        case $word in *[=.]) ;; *) word="$word " ;; esac
        COMPREPLY+=("${word#"$typed"}")
    done < <("${words[0]}" completion -- "${words[@]:1}" 2> /dev/null)
}
complete -o nospace -o default -F _aeon_completion aeon
