/** Completion: shells call `svccloud complete -- WORDS` to get candidates for the next word. */
import { GLOBAL_FLAGS } from './arguments.ts'
import { type Command, nameOf } from './commands.ts'
import { OWN_COMMANDS } from './help.ts'

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_svccloud() {
  local IFS=$'\\n'
  local candidates
  candidates="$(svccloud complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2> /dev/null)"
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _svccloud svccloud
`,
  zsh: `#compdef svccloud
_svccloud() {
  local -a candidates
  candidates=("\${(@f)$(svccloud complete -- "\${(@)words[2,CURRENT-1]}" 2> /dev/null)}")
  compadd -a candidates
}
compdef _svccloud svccloud
`,
  fish: `complete -c svccloud -f -a '(svccloud complete -- (commandline -opc)[2..] 2> /dev/null)'
`,
}

export const SHELLS = Object.keys(SCRIPTS)

/** Undefined for an unknown shell. */
export const completionScript = (shell: string): string | undefined => SCRIPTS[shell]

/** Candidates for the word after these words. */
export function candidates(commands: readonly Command[], words: readonly string[]): readonly string[] {
  const names = [...OWN_COMMANDS.map(({ name }) => name), ...commands.map(nameOf)].map((name) => name.split(' '))
  const plain = words.filter((word) => !word.startsWith('-'))
  const next = names
    .filter((name) => name.length > plain.length && plain.every((word, index) => name[index] === word))
    .flatMap((name) => name[plain.length] ?? [])
  if (next.length > 0) return [...new Set(next)].sort()
  const [noun, verb] = plain
  const own = OWN_COMMANDS.find(({ name }) => name === noun || name === `${noun} ${verb}`)
  const command = commands.find((candidate) => candidate.noun === noun && candidate.verb === verb)
  const last = command?.flags.find(({ flag }) => `--${flag}` === words.at(-1))
  if (last !== undefined && last.choices.length > 0) return last.choices
  if (noun === 'completion') return SHELLS
  return [...(command?.flags ?? own?.flags ?? []), ...GLOBAL_FLAGS].map(({ flag }) => `--${flag}`)
}
