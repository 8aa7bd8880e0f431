/** Logs of the components: one file each, written by the component itself through an inherited descriptor, so that it
 *  can go on logging whatever happens to its supervisor. Bounded: a file that grew too long is kept once as `.1` and
 *  starts again. */
import { copyFile, open, readFile, stat, truncate } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'

const LOG_BYTES_MAXIMUM = 16 * 1024 * 1024
const TAIL_LINES = 20

/** Opened for appending: every write goes to the end, also after the file was cut. */
export const openLogFile = (file: string): Promise<FileHandle> => open(file, 'a', 0o600)

/** Cuts the file when it is too long. What is written between the copy and the cut is lost; logs are not evidence. */
export async function boundLogFile(file: string): Promise<void> {
  const info = await stat(file).catch(() => undefined)
  if (info === undefined || info.size <= LOG_BYTES_MAXIMUM) return
  await copyFile(file, `${file}.1`)
  await truncate(file, 0)
}

/** The last lines, for a person who must see why a component ended. */
export async function logTail(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n')
}
