/** The person or pipe at the other end of a command-line program: its input and output. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

export interface Terminal {
  /** Whether a person types; false for pipes and files. */
  readonly isInputTerminal: boolean
  readonly isOutputTerminal: boolean
  readonly isErrorTerminal: boolean
  /** The input, as it arrives. */
  readonly input: AsyncIterable<Uint8Array>
  /** Writes to the output unchanged. */
  write(bytes: string | Uint8Array): void
  writeError(text: string): void
  /** While it is true, keys arrive one by one and are not echoed. Only when a person types. */
  setRaw(isRaw: boolean): void
  /** Asks on the error output, and returns the typed line; `isHidden` does not echo it. */
  ask(question: string, isHidden?: boolean): Promise<string>
  /** The complete input, as text. */
  readAll(): Promise<string>
  /** Runs a program on this terminal to its end; returns its exit code. Rejects with ENOENT when it is not
   *  installed. */
  runProgram(program: string, words: readonly string[]): Promise<number>
}

/** The exit code that shells use for a program that a signal ended. */
const SIGNALLED_CODE = 128

/** Why the output could not be written; undefined while it could. */
let lost: Error | undefined

// The reader of the output may leave before its end, as head does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  lost ??= error
})

/** Resolves when everything is written; with the error if some of it was not, for example because a disk is full. */
export const flushedOutput = (): Promise<Error | undefined> =>
  new Promise((resolve) => {
    process.stdout.write('', (error) => resolve(error ?? lost))
  })

export const processTerminal: Terminal = {
  isInputTerminal: process.stdin.isTTY === true,
  isOutputTerminal: process.stdout.isTTY === true,
  isErrorTerminal: process.stderr.isTTY === true,
  input: process.stdin,
  write: (bytes) => void process.stdout.write(bytes),
  writeError: (text) => void process.stderr.write(text),
  setRaw: (isRaw) => void process.stdin.setRawMode?.(isRaw),
  async ask(question, isHidden = false) {
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const lines = createInterface({
      input: process.stdin,
      output: isHidden ? silent : process.stderr,
      terminal: process.stdin.isTTY === true,
    })
    // Asks after the terminal has stopped echoing: an answer may come at once.
    process.stderr.write(question)
    try {
      // A line that is never finished (Ctrl-C, Ctrl-D) is an empty one.
      return await Promise.race([
        lines.question(''),
        new Promise<string>((resolve) => lines.once('close', () => resolve(''))),
      ])
    } finally {
      lines.close()
      if (isHidden) process.stderr.write('\n')
    }
  },
  async readAll() {
    const chunks: Uint8Array[] = []
    // without an encoding, stdin gives buffers
    for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array)
    return Buffer.concat(chunks).toString()
  },
  runProgram: (program, words) =>
    new Promise((resolve, reject) => {
      const child = spawn(program, [...words], { stdio: 'inherit' })
      child.once('error', reject)
      child.once('exit', (code, signal) => resolve(code ?? SIGNALLED_CODE + (signal ? constants.signals[signal] : 0)))
    }),
}
