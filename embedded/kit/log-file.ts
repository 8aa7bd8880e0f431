/** Logs of the components: one file each, which the component writes through an inherited descriptor, so that it can
 *  continue to log whatever happens to its supervisor. A file that is too long is copied once to `.1` and truncated. */
import { copyFile, open, readFile, stat, truncate } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { z } from 'zod'

const LOG_BYTES_MAXIMUM = 16 * 1024 * 1024

/** Opened for appending: every write goes to the end, even after a truncation. */
export const openLogFile = (file: string): Promise<FileHandle> => open(file, 'a', 0o600)

/** Truncates the file when it is too long. Lines between the copy and the truncation are lost, which is acceptable for
 *  logs. */
export async function boundLogFile(file: string): Promise<void> {
  const info = await stat(file).catch(() => undefined)
  if (info === undefined || info.size <= LOG_BYTES_MAXIMUM) return
  await copyFile(file, `${file}.1`)
  await truncate(file, 0)
}

const Line = z.object({ msg: z.string(), error: z.object({ message: z.string() }).optional() })

/** The last logged message as one line, for a person who needs to know why a component exited: an error without its
 *  stack. Empty when there is none. */
export async function lastLogged(file: string): Promise<string> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n')
  // Lines of a stack are indented; the line after it contains the version of Node.js.
  const last = lines.findLast((line) => /^\S/.test(line) && !line.startsWith('Node.js v')) ?? ''
  const { msg, error } = parseLine(last) ?? { msg: last }
  return (error?.message ?? msg).split('\n')[0] ?? ''
}

function parseLine(line: string): z.infer<typeof Line> | undefined {
  try {
    return Line.safeParse(JSON.parse(line)).data
  } catch {
    return undefined // not one of our programs
  }
}
