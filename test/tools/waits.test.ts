/** Tests have as much patience as their tier gives: what is slow on a busy machine is not wrong. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { filesOf } from '../../tools/test/unchanged.ts'
import { TIERS } from '../../tools/tiers.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Behind a test or a hook, and in the options of a test. Options of programs are indented more. */
const TIMES = [/^ *\}, ([\d_]{4,})\)$/gm, /, \{ timeout: ([\d_]+) \}, (?:async|\()/g, /^ {2}timeout: ([\d_]+),$/gm]
/** A condition that is not so in this time may be so in the next minute. */
const WAIT = /\.poll\(.*\btimeout: ([\d_]+)|\bwaitFor\(.*\btimeout: ([\d_]+)/g
const WAIT_MILLISECONDS_MINIMUM = 60_000

const below = (text: string, pattern: RegExp, milliseconds: number): string[] =>
  [...text.matchAll(pattern)]
    .filter(([, first, second]) => Number((first ?? second ?? '').replaceAll('_', '')) < milliseconds)
    .map(([found]) => found)

it('gives no test less time than its tier does, and no condition less than a minute', async () => {
  const found: string[] = []
  for (const tier of TIERS)
    for (const file of await filesOf(tier)) {
      const text = await readFile(join(ROOT, file), 'utf8')
      const short = [
        ...TIMES.flatMap((pattern) => below(text, pattern, tier.testTimeoutMilliseconds)),
        ...below(text, WAIT, WAIT_MILLISECONDS_MINIMUM),
      ]
      found.push(...short.map((words) => `${file}: ${words.trim()}`))
    }
  expect(found).toEqual([])
})
