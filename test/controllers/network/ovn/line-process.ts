/** A process that takes orders as lines of JSON and answers each with a line of JSON. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface LineProcess {
  readonly pid: number
  /** The next line, of a process that speaks first. */
  next(): Promise<unknown>
  /** One at a time, in order. Throws what the process refuses (`{error}`). */
  order(line: object): Promise<unknown>
  /** Ends its input, and waits for its end. */
  close(): Promise<void>
}

export function asLineProcess(child: ChildProcess, name: string): LineProcess {
  const { stdout, stdin, pid = 0 } = child
  if (stdout === null || stdin === null) throw new Error(`nobody hears ${name}`)
  const args = createInterface({ input: stdout })[Symbol.asyncIterator]()
  let turn: Promise<unknown> = Promise.resolve()
  const next = async () => {
    const line = await args.next()
    if (line.done === true) throw new Error(`${name} has ended`)
    return JSON.parse(line.value) as unknown
  }
  return {
    pid,
    next,
    async order(line) {
      const answer = turn.then(() => {
        stdin.write(`${JSON.stringify(line)}\n`)
        return next()
      })
      turn = answer.catch(() => {})
      const { error } = ((await answer) ?? {}) as { readonly error?: string }
      if (error !== undefined) throw new Error(error)
      return answer
    },
    async close() {
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      stdin.end()
      if (child.exitCode === null && child.signalCode === null) await ended
    },
  }
}
