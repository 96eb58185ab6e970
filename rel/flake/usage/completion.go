package usage

import (
	"cmp"
	"fmt"
	"strings"
)

// Shells holds, for each shell, the function that returns its completion script.
var Shells = map[string]func([]Command) string{"bash": bash, "zsh": zsh, "fish": fish}

// bash returns the script for bash. Where the script offers nothing, bash completes file names.
func bash(all []Command) string {
	var b strings.Builder
	fmt.Fprint(&b, `# Completion of flake for bash. To load it: source <(flake completion bash)
_flake() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} words=
  case ${COMP_WORDS[1]} in
`)
	for _, c := range append(all[1:len(all):len(all)], all[0]) {
		pattern := cmp.Or(c.Name, "*")
		fmt.Fprintf(&b, "  %s)\n    case $last in\n", pattern)
		var offered, valued []string
		for _, f := range c.flags() {
			offered = append(offered, f.name)
			switch {
			case len(f.words) > 0:
				fmt.Fprintf(&b, "    %s) words='%s' ;;\n", f.name, strings.Join(f.words, " "))
			case f.value != "":
				valued = append(valued, f.name)
			}
		}
		if len(valued) > 0 {
			fmt.Fprintf(&b, "    %s) ;;\n", strings.Join(valued, "|"))
		}
		fmt.Fprintf(&b, "    *) words='%s' ;;\n    esac ;;\n", strings.Join(append(offered, c.words(all)...), " "))
	}
	fmt.Fprint(&b, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _flake flake
`)
	return b.String()
}

func zsh(all []Command) string {
	var b strings.Builder
	fmt.Fprint(&b, `#compdef flake
# Completion of flake for zsh. To load it: source <(flake completion zsh)
_flake() {
  local -a commands
  commands=(
`)
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "    %s\n", quoted(c.Name+":"+c.Does))
	}
	fmt.Fprint(&b, `  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    return
  fi
  local command=$words[2]
  [[ $command == -* ]] || { shift words; (( CURRENT-- )) }
  case $command in
`)
	for _, c := range append(all[1:len(all):len(all)], all[0]) {
		pattern := cmp.Or(c.Name, "-*")
		fmt.Fprintf(&b, "  %s)\n    _arguments", pattern)
		for _, f := range c.flags() {
			fmt.Fprintf(&b, " \\\n      %s", quoted(f.name+"["+zshText.Replace(f.does)+"]"+f.zshValue()))
		}
		if c.Name != "" && len(c.words(all)) > 0 {
			fmt.Fprintf(&b, " \\\n      %s", quoted("1:argument:("+strings.Join(c.words(all), " ")+")"))
		}
		fmt.Fprint(&b, " ;;\n")
	}
	fmt.Fprint(&b, `  esac
}
if [[ $funcstack[1] == _flake ]]; then _flake "$@"; else compdef _flake flake; fi
`)
	return b.String()
}

var zshText = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`)

// zshValue describes the flag's value to zsh.
func (f *option) zshValue() string {
	switch {
	case f.value == "":
		return ""
	case f.value == "FILE":
		return ":FILE:_files"
	case len(f.words) > 0:
		return ":value:(" + strings.Join(f.words, " ") + ")"
	}
	return ":" + f.value + ": "
}

func fish(all []Command) string {
	var b strings.Builder
	fmt.Fprint(&b, "# Completion of flake for fish. To load it: "+
		"flake completion fish | source\ncomplete -c flake -f\n")
	for _, c := range all {
		when := "__fish_seen_subcommand_from " + c.Name
		if c.Name == "" {
			when = "not __fish_seen_subcommand_from " + strings.Join(c.words(all), " ")
			for _, c := range all[1:] {
				fmt.Fprintf(&b, "complete -c flake -n %s -a %s -d %s\n", quoted(when), c.Name, quoted(c.Does))
			}
		} else if len(c.words(all)) > 0 {
			fmt.Fprintf(&b, "complete -c flake -n %s -a %s\n", quoted(when), quoted(strings.Join(c.words(all), " ")))
		}
		for _, f := range c.flags() {
			value := ""
			switch {
			case len(f.words) > 0:
				value = " -x -a " + quoted(strings.Join(f.words, " "))
			case f.value == "FILE":
				value = " -r -F"
			case f.value != "":
				value = " -x"
			}
			fmt.Fprintf(&b, "complete -c flake -n %s -o %s%s -d %s\n",
				quoted(when), f.name[1:], value, fishQuoted(f.does))
		}
	}
	return b.String()
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fishQuoted quotes text for fish, in which a backslash also escapes inside quotes.
func fishQuoted(text string) string { return quoted(strings.ReplaceAll(text, `\`, `\\`)) }
