/** `node test/sim/choose.ts [--copies N] [--steps N] FILE...`: chooses seeds by what they reached and writes them to
 *  `chosen.json`. The files are those of `npm run sim -- --record FILE`. Seeds are taken one after the other, the one
 *  that adds most for its steps first, until everything that was ever reached is reached by as many of them as
 *  `--copies` says (or by all that reach it), or `--steps` are spent. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { answerHelp } from '../../kit/sys/help.ts'
import { printLine, processArguments } from '../../kit/sys/process.ts'
import type { ChosenSeed } from './chosen.ts'

interface RecordedRun {
  readonly seed: number
  readonly hasLosses: boolean
  readonly steps: number
  readonly reached: readonly string[]
}

answerHelp(import.meta.filename)
const { values, positionals } = parseArgs({
  args: [...processArguments()],
  allowPositionals: true,
  options: { copies: { type: 'string', default: '3' }, steps: { type: 'string', default: '1000000' } },
})

const lines = (await Promise.all(positionals.map((file) => readFile(file, 'utf8')))).flatMap((text) =>
  text.trim().split('\n'),
)
const runs = lines.map((line) => JSON.parse(line) as RecordedRun) // written by main.ts
const chosen = choose(runs, Number(values.copies), Number(values.steps))
await writeFile(join(import.meta.dirname, 'chosen.json'), `${JSON.stringify(chosen, undefined, 2)}\n`)
const all = new Set(runs.flatMap(({ reached }) => reached))
const kept = new Set(chosen.flatMap(({ adds }) => adds))
printLine(
  `${chosen.length} of ${runs.length} seeds, ${chosen.filter(({ hasLosses }) => hasLosses).length} of them with ` +
    `losses, reach ${kept.size} of ${all.size}`,
)

function choose(candidates: readonly RecordedRun[], copies: number, stepsMaximum: number): readonly ChosenSeed[] {
  const counts = new Map<string, number>()
  const found: ChosenSeed[] = []
  const left = new Set(candidates)
  const gainOf = ({ reached, steps }: RecordedRun): number =>
    reached.reduce((sum, what) => sum + weightOf(counts.get(what) ?? 0, copies), 0) / steps
  for (let steps = 0; left.size > 0; ) {
    const [best] = [...left].toSorted((a, b) => gainOf(b) - gainOf(a))
    if (best === undefined || gainOf(best) === 0 || steps + best.steps > stepsMaximum) return found
    left.delete(best)
    steps += best.steps
    found.push({
      seed: best.seed,
      hasLosses: best.hasLosses,
      adds: best.reached.filter((what) => !counts.has(what)),
    })
    for (const what of best.reached) counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  return found
}

/** What is reached for the first time counts most. */
function weightOf(count: number, copies: number): number {
  return count < copies ? 1 / (count + 1) ** 2 : 0
}
