/** Recorded transcripts of the real server, one file per theme, so that a machine without Go can compare with it too.
 */

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const HEADING = /^=== (.+) ===$/m
const fileOf = (theme: string) => join(import.meta.dirname, 'golden', `${theme}.txt`)

/** Transcripts by scenario name; empty when the theme was never recorded. */
export async function readGolden(theme: string): Promise<Map<string, string>> {
  const text = await readFile(fileOf(theme), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const parts = text.split(HEADING)
  const recorded = new Map<string, string>()
  for (let index = 1; index < parts.length; index += 2)
    recorded.set(parts[index] ?? '', (parts[index + 1] ?? '').trim())
  return recorded
}

export async function writeGolden(theme: string, transcripts: ReadonlyMap<string, string>): Promise<void> {
  await mkdir(join(import.meta.dirname, 'golden'), { recursive: true })
  await writeFile(
    fileOf(theme),
    [...transcripts].map(([name, transcript]) => `=== ${name} ===\n\n${transcript}\n`).join('\n'),
  )
}
