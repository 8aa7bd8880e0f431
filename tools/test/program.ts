/** Runs a program with a deadline, and measures its processor time. */
import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { delimiter, join } from 'node:path'
import { systemClock } from '../../kit/sys/clock.ts'
import { COMPILE_CACHE } from '../../kit/sys/compile-cache.js'
import { environment, isTerminal, printLine } from '../../kit/sys/process.ts'
import { openMeter } from './meter.ts'

export const ROOT = join(import.meta.dirname, '../..')
export const inModules = (path: string): string => join(ROOT, 'node_modules', path)

export interface Run {
  /** For people. */
  readonly name: string
  readonly deadlineMilliseconds: number
  readonly background?: Background | undefined
}

/** For a program that runs in the background. */
export interface Background {
  readonly isIdle: boolean
  /** Where its output goes meanwhile. */
  readonly outputFile: string
  readonly stop: AbortSignal
}

/** The lowest priority: an idle program runs while others wait, also at the end, and takes nothing that they can
 *  use. */
const BACKGROUND_NICENESS = 19

/** Runs a program and returns whether it succeeded in time. */
export async function succeeds(program: string, flags: readonly string[], options: Run): Promise<boolean> {
  const { name, deadlineMilliseconds, background } = options
  const output = background && (await open(background.outputFile, 'a'))
  const stream = output?.fd ?? 'inherit'
  const meter = await openMeter()
  const command = [program, ...flags]
  const [file = program, ...words] = meter.within(command)
  const isGood = await new Promise<boolean>((resolve) => {
    const given = environment()
    const child = spawn(file, words, {
      cwd: ROOT,
      stdio: ['ignore', stream, stream],
      ...(background && { signal: background.stop }),
      env: {
        ...given,
        PATH: [inModules('.bin'), given['PATH'] ?? ''].join(delimiter),
        // Workers, and the programs that they start, load the same modules hundreds of times.
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        ...(isTerminal() ? {} : { NO_COLOR: '1' }),
      },
    })
    // Its child processes inherit that.
    if (background?.isIdle === true && child.pid !== undefined) setPriority(child.pid, BACKGROUND_NICENESS)
    const cancel = systemClock.after(deadlineMilliseconds, () => {
      printLine(`not finished after ${deadlineMilliseconds / 60_000} minutes: ended`)
      child.kill('SIGKILL')
    })
    child.once('error', () => resolve(false))
    child.once('exit', (code) => {
      cancel()
      resolve(code === 0)
    })
  })
  await output?.close()
  const seconds = await meter.close()
  if (seconds !== undefined) printLine(`== ${name}: ${Math.round(seconds)} s of the processor`)
  return isGood
}
