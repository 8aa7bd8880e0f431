/** Programs that run in network namespaces other than the agent's. An agent of an ordinary user enters them as root of
 *  their user namespace. */
import { isRoot } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'

/** The command in the namespaces, or unchanged when there are none. `namespaces` is a folder with the namespaces of a
 *  process, such as /proc/1/ns. The command replaces nsenter, so the caller's child is the command itself. */
export const insideCommand = (namespaces: string | undefined, command: readonly string[]): readonly string[] =>
  namespaces === undefined
    ? command
    : [
        'nsenter',
        ...(isRoot() ? [] : [`--user=${namespaces}/user`, '--preserve-credentials']),
        `--net=${namespaces}/net`,
        '--',
        ...command,
      ]

/** Prefix for a program that must not be root of the user namespace, where the agent is not root. */
export const withoutRights: readonly string[] = [
  'setpriv',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--no-new-privs',
  '--',
]

/** Runs programs in the namespaces, as `runProgram` does. */
export const runInside =
  (namespaces: string | undefined) =>
  (program: string, words: readonly string[]): Promise<string> => {
    const [first = program, ...rest] = insideCommand(namespaces, [program, ...words])
    return runProgram(first, rest)
  }
