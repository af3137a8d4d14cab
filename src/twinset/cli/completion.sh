# zsh runs the functions of bash; names of files are completed where no words are known.
_twinset() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at=twinset one words=
  for one in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    case "$at $one" in
      @COMMANDS@) at="$at $one" ;;
    esac
  done
  case "$at $before" in
@CHOICES@
    *) case "$at" in
@WORDS@
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _twinset twinset
