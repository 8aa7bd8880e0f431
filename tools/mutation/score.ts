/** The known results of mutants: the committed score, and the additions of a run. */
import { createHash } from 'node:crypto'
import type { Mutant } from './operators.ts'

/** `timeout`: the mutant made a test hang, which counts as detected. `untested`: no test is near enough to be run. */
export type Outcome = 'killed' | 'timeout' | 'survived' | 'untested'

export interface Judged {
  readonly mutant: Mutant
  /** Identifies the mutant, for as long as its file and its tests stay the same. */
  readonly key: string
  readonly outcome: Outcome
}

export interface Survivor {
  readonly line: number
  readonly operator: string
  /** The line of the source, and the replacement of a part of it. */
  readonly source: string
  readonly from: string
  readonly to: string
}

export interface FileScore {
  readonly mutants: number
  readonly judged: number
  readonly killed: number
  readonly survivors: readonly Survivor[]
}

export interface Score {
  readonly seed: number
  /** In percent of those judged, rounded down. */
  readonly percent: number
  readonly mutants: number
  readonly judged: number
  readonly killed: number
  readonly files: Readonly<Record<string, FileScore>>
}

export const isKilled = (outcome: Outcome): boolean => outcome === 'killed' || outcome === 'timeout'

/** Same source, same tests, same change: same key. */
export const mutantKey = ({ file, start, end, replacement }: Mutant, source: string, tests: string): string =>
  createHash('sha256')
    .update(JSON.stringify([file, source, tests, start, end, replacement]))
    .digest('hex')
    .slice(0, 24)

/** The score of one file. Survivors in the order of the source. */
export function scoreOfFile(source: string, mutants: number, judged: readonly Judged[]): FileScore {
  const lines = source.split('\n')
  return {
    mutants,
    judged: judged.length,
    killed: judged.filter(({ outcome }) => isKilled(outcome)).length,
    survivors: judged
      .filter(({ outcome }) => !isKilled(outcome))
      .map(({ mutant }) => mutant)
      .sort((a, b) => a.start - b.start)
      .map(({ line, operator, start, end, replacement }) => ({
        line,
        operator,
        source: (lines[line - 1] ?? '').trim(),
        from: source.slice(start, end),
        to: replacement,
      })),
  }
}

/** Replaces the known results of the judged files; removes files that no longer exist. */
export function mergeScores(
  before: Score | undefined,
  judged: Readonly<Record<string, FileScore>>,
  { seed, exists }: { readonly seed: number; readonly exists: (file: string) => boolean },
): Score {
  const merged = Object.entries({ ...before?.files, ...judged }).filter(([file]) => exists(file))
  const files = Object.fromEntries(merged.sort(([a], [b]) => (a < b ? -1 : 1)))
  const sum = (member: 'mutants' | 'judged' | 'killed') =>
    Object.values(files).reduce((total, file) => total + file[member], 0)
  const [mutants, all, killed] = [sum('mutants'), sum('judged'), sum('killed')]
  return { seed, percent: all === 0 ? 0 : Math.floor((100 * killed) / all), mutants, judged: all, killed, files }
}
