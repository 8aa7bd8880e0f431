/** Which test files were green with which inputs: `test/last-green.txt`, a line for each, which only the runner writes.
 *  When two branches wrote lines of the same file, a merge keeps both: it was green with either. */

import { createHash } from 'node:crypto'

/** When a file was green. */
export interface Green {
  readonly digest: string
  readonly commit: string
  /** How long it took; undefined when that is not known. */
  readonly seconds?: number
}

export type Record = ReadonlyMap<string, readonly Green[]>

export const RECORD_FILE = 'test/last-green.txt'
const HEAD =
  '# Written by tools/test.ts: a test file, the digest of its inputs when it passed, the commit, and its seconds.'

const LINE = /^(\S+) ([0-9a-f]+) ([0-9a-f]+)(?: (\d+))?$/

/** Lines that do not belong to a record are ignored: their files run. */
export function parseRecord(text: string): Record {
  const record = new Map<string, readonly Green[]>()
  for (const line of text.split('\n')) {
    const [, file, digest, commit, seconds] = LINE.exec(line) ?? []
    if (file === undefined || digest === undefined || commit === undefined) continue
    const green = { digest, commit, ...(seconds !== undefined && { seconds: Number(seconds) }) }
    record.set(file, [...(record.get(file) ?? []), green])
  }
  return record
}

const lineOf = (file: string, { digest, commit, seconds }: Green): string =>
  [file, digest, commit, ...(seconds === undefined ? [] : [seconds])].join(' ')

export const formatRecord = (record: Record): string =>
  `${[HEAD, ...[...record].flatMap(([file, greens]) => greens.map((green) => lineOf(file, green))).toSorted()].join(
    '\n',
  )}\n`

/** The result of a run for a file: green with all its tests, or not. */
export interface Shown {
  readonly file: string
  readonly digest: string
  readonly isGreen: boolean
  readonly seconds: number
}

/** The record after a run. A file that was green has only that line; one that was red is no longer recorded as green
 *  with the same inputs; deleted files are left out. */
export function updated(record: Record, shown: readonly Shown[], commit: string, files: ReadonlySet<string>): Record {
  const next = new Map(record)
  for (const { file, digest, isGreen, seconds } of shown) {
    const others = (next.get(file) ?? []).filter((green) => green.digest !== digest)
    next.set(file, isGreen ? [{ digest, commit, seconds }] : others)
  }
  return new Map([...next].filter(([file, greens]) => files.has(file) && greens.length > 0))
}

/** Whether a file runs, and why. */
export interface Choice {
  readonly file: string
  readonly isRun: boolean
  readonly reason: string
  /** How long it took when it was last green; undefined when that is not known. */
  readonly seconds: number | undefined
  /** Files with a lower one run first when the time is limited: changed ones, in the order of the commit. */
  readonly turn: string
}

/** One in this many unchanged files runs with each commit, selected by the commit's hash. */
export const PARTS = 3

/** Enough digits of a hash to select a part, which also fit into a number. */
const PART_DIGITS = 8
const partOf = (hash: string): number => Number.parseInt(hash.slice(0, PART_DIGITS), 16) % PARTS

/** The files to run, each given with the digest of its inputs and a hash of its name. */
export function choose(
  files: readonly { readonly file: string; readonly digest: string; readonly nameHash: string }[],
  record: Record,
  commit: string,
): readonly Choice[] {
  return files.map(({ file, digest, nameHash }) => {
    const greens = record.get(file) ?? []
    const green = greens.find((given) => given.digest === digest)
    const last = greens.at(-1)
    const seconds = (green ?? last)?.seconds
    const place = createHash('sha256').update(commit).update(nameHash).digest('hex')
    if (green !== undefined) {
      const isRun = partOf(nameHash) === partOf(commit)
      const reason = `its inputs (${digest}) are as they were when it was green at ${green.commit}`
      const third = `${reason}, and it is of the third that runs with this commit`
      return { file, isRun, reason: isRun ? third : reason, seconds, turn: `unchanged ${place}` }
    }
    const reason =
      last === undefined
        ? 'it is not known to have been green'
        : `its inputs (${digest}) have changed since it was green at ${last.commit}`
    return { file, isRun: true, reason, seconds, turn: `changed ${place}` }
  })
}
