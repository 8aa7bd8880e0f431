/** The presentation of results: a line on the terminal, and the page bench/RESULTS.md. */
import { arch, cpus } from 'node:os'
import { type Bench, type BenchResult, isReached } from './runner.ts'

export interface Outcome {
  readonly bench: Bench
  readonly result?: BenchResult
  /** Why there is no result. */
  readonly failure?: string
}

const figure = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))

/** One line. */
export function summary({ bench, result, failure }: Outcome): string {
  if (result === undefined) return `could not run: ${failure}`
  return [
    `${bench.subjectName} / ${bench.peerName} = ${result.ratio.toFixed(3)} (${result.low.toFixed(3)} to ` +
      `${result.high.toFixed(3)}, ${result.pairs} pairs${result.isNoisy ? ', noisy' : ''})`,
    `goal ${bench.goal}`,
    `${figure(result.subjectPerSecond)} against ${figure(result.peerPerSecond)} ${bench.unit}/${bench.per ?? 's'}`,
    ...facts(bench, result),
  ].join('; ')
}

/** The complete page, in Markdown. */
export function page(outcomes: readonly Outcome[], commit: string, now: Date): string {
  const held = outcomes.flatMap(({ bench, result }) =>
    result === undefined || isReached(bench, result) || bench.heldBy === undefined
      ? []
      : [`- **${bench.name}**: ${bench.heldBy}`],
  )
  return [
    '# Benchmarks',
    '',
    `Written by \`npm run bench\` on ${now.toISOString().slice(0, 10)} from commit ${commit}, ` +
      `${cpus().length} cores, ${arch()}. Ratios compare two things measured in the same run; absolute figures are ` +
      'only for orientation.',
    '',
    '| Benchmark | Question | Peer | Ratio | Goal | Subject / peer | Facts |',
    '|---|---|---|---|---|---|---|',
    ...outcomes.map(row),
    '',
    ...(held.length === 0 ? [] : ['## What holds the others', '', ...held, '']),
  ].join('\n')
}

function row({ bench, result, failure }: Outcome): string {
  const { name, question, peerName, goal, unit, per = 's' } = bench
  if (result === undefined) return `| ${name} | ${question} | ${peerName} | could not run: ${oneLine(failure)} | | | |`
  const range = `${result.low.toFixed(2)}-${result.high.toFixed(2)}${result.isNoisy ? ', noisy' : ''}`
  const cells = [
    name,
    question,
    peerName,
    `${result.ratio.toFixed(2)} (${range})`,
    `${goal} ${isReached(bench, result) ? 'reached' : '**not reached**'}`,
    `${figure(result.subjectPerSecond)} / ${figure(result.peerPerSecond)} ${unit}/${per}`,
    facts(bench, result).join(', '),
  ]
  return `| ${cells.join(' | ')} |`
}

const facts = ({ limits = {} }: Bench, result: BenchResult): readonly string[] =>
  Object.entries(result.facts).map(([name, value]) => {
    const limit = limits[name]
    return `${name}: ${value}${limit === undefined ? '' : ` (at most ${limit})`}`
  })

/** In the form of a table cell. */
const oneLine = (text = ''): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '/')
