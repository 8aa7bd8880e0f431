/** A log line at `warn` is worth waking somebody: what a product has logged at it, and which of that its test expects.
 *  `Product.stop` looks, so that every test of a product holds it. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Of pino: warn is 40. */
const WARN = 40

/** Of products whose logs nobody has read through yet, beside what their tests kill: any line. `warnings.test.ts` has
 *  the list of them. */
export const UNREAD: readonly RegExp[] = [/./]

interface Line {
  readonly level?: number
}

/** Lines at warn or above of the logs below the data folder, as they were written, none of which matches a pattern.
 *  What programs of others print is not judged: it has no level. Rejects when nothing was logged at all. */
export async function unexpectedWarnings(data: string, expected: readonly RegExp[]): Promise<readonly string[]> {
  const folder = join(data, 'logs')
  const files = (await readdir(folder)).filter((name) => /\.log(\.1)?$/.test(name))
  const texts = await Promise.all(
    files.map(async (name) => ({ name, lines: (await readFile(join(folder, name), 'utf8')).split('\n') })),
  )
  const logged = texts.flatMap(({ name, lines }) =>
    lines.filter((line) => line.startsWith('{')).map((line) => ({ name, line, level: levelOf(line) })),
  )
  if (logged.length === 0) throw new Error(`nothing was logged in ${folder}`)
  return logged
    .filter(({ line, level }) => level >= WARN && !expected.some((pattern) => pattern.test(line)))
    .map(({ name, line }) => `${name}: ${line}`)
}

/** A line that was cut by a kill has no level. */
function levelOf(line: string): number {
  try {
    return (JSON.parse(line) as Line).level ?? 0 // as pino writes it
  } catch {
    return 0
  }
}
