/** Logs of the components: one file each, written by the component itself through an inherited descriptor, so that it
 *  can go on logging whatever happens to its supervisor. Bounded: a file that grew too long is kept once as `.1` and
 *  starts again. */
import { copyFile, open, readFile, stat, truncate } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { z } from 'zod'

const LOG_BYTES_MAXIMUM = 16 * 1024 * 1024

/** Opened for appending: every write goes to the end, also after the file was cut. */
export const openLogFile = (file: string): Promise<FileHandle> => open(file, 'a', 0o600)

/** Cuts the file when it is too long. What is written between the copy and the cut is lost; logs are not evidence. */
export async function boundLogFile(file: string): Promise<void> {
  const info = await stat(file).catch(() => undefined)
  if (info === undefined || info.size <= LOG_BYTES_MAXIMUM) return
  await copyFile(file, `${file}.1`)
  await truncate(file, 0)
}

const Line = z.object({ msg: z.string(), error: z.object({ message: z.string() }).optional() })

/** What was logged last, as one line for a person who must see why a component ended: the message of an error, without
 *  its stack. Empty when nothing was. */
export async function lastLogged(file: string): Promise<string> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n')
  // A stack is indented, and below it node says its version.
  const last = lines.findLast((line) => /^\S/.test(line) && !line.startsWith('Node.js v')) ?? ''
  const { msg, error } = parseLine(last) ?? { msg: last }
  return (error?.message ?? msg).split('\n')[0] ?? ''
}

function parseLine(line: string): z.infer<typeof Line> | undefined {
  try {
    return Line.safeParse(JSON.parse(line)).data
  } catch {
    return undefined // a program that is not ours
  }
}
