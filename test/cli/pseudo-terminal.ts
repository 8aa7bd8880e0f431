/** A terminal without a person: `script` of util-linux, which every Linux has, gives a program a pseudo terminal and
 *  this process both its ends. */
import { spawn } from 'node:child_process'
import { expect } from 'vitest'

export interface PseudoTerminal {
  /** Everything that the terminal has shown, escape sequences included. */
  readonly shown: () => string
  /** Waits until what came after the last thing seen matches; the next look begins behind the match. */
  see(pattern: RegExp | string): Promise<void>
  /** Presses keys. */
  type(keys: string): void
  /** The exit code of the program. */
  readonly ended: Promise<number | null>
  /** Takes the terminal away, which ends the program if it has not ended by itself. */
  close(): void
}

/** Runs a line of shell in a pseudo terminal. */
export function openTerminal(line: string, environment: Readonly<Record<string, string>>): PseudoTerminal {
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], SHELL: '/bin/bash', TERM: 'xterm', LANG: 'C.UTF-8', ...environment },
  })
  let shown = ''
  let seen = 0
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void (shown += text))
  child.stdin.on('error', () => undefined) // it may have ended
  return {
    shown: () => shown,
    async see(pattern) {
      const find = () => {
        const rest = shown.slice(seen)
        if (typeof pattern === 'string') return rest.includes(pattern) ? rest.indexOf(pattern) + pattern.length : -1
        const match = pattern.exec(rest)
        return match === null ? -1 : match.index + match[0].length
      }
      await expect
        .poll(find)
        .toBeGreaterThanOrEqual(0)
        .catch((cause: unknown) => {
          throw new Error(`waited in vain for ${pattern} in ${JSON.stringify(shown.slice(seen))}`, { cause })
        })
      seen += find()
    },
    type: (keys) => void child.stdin.write(keys),
    ended: new Promise((resolve) => child.once('close', resolve)),
    close: () => void child.kill('SIGKILL'),
  }
}
