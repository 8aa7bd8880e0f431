/** Programs that run in network namespaces other than the agent's own. An agent of an ordinary user enters them as root
 *  of the user namespace that they belong to. */
import { isRoot } from '../../../../kit/sys/process.ts'
import { runProgram } from '../../run-program.ts'

/** The command there; as it is when none is named. `namespaces` is the folder with those of a process, as /proc/1/ns.
 *  Nothing stands between the command and who starts it. */
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

/** Before a program that shall not be root of the user namespace, where the agent is not root. */
export const withoutRights: readonly string[] = [
  'setpriv',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--no-new-privs',
  '--',
]

/** Runs programs there as `runProgram` does. */
export const runInside =
  (namespaces: string | undefined) =>
  (program: string, words: readonly string[]): Promise<string> => {
    const [first = program, ...rest] = insideCommand(namespaces, [program, ...words])
    return runProgram(first, rest)
  }
