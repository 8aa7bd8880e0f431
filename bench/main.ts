/** `npm run bench [-- --only NAME] [--seconds N]`: runs the benchmarks one after the other, prints a table and writes
 *  bench/RESULTS.md. */
import { readdir, writeFile } from 'node:fs/promises'
import { arch, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { systemClock } from '../kit/sys/clock.ts'
import { printLine, processArguments, setExitCode } from '../kit/sys/process.ts'
import { type Bench, type BenchResult, measure } from './runner.ts'

const { values } = parseArgs({
  args: [...processArguments()],
  options: { only: { type: 'string' }, seconds: { type: 'string', default: '2' } },
})

const folder = new URL('.', import.meta.url)
const files = (await readdir(folder))
  .filter((file) => /^b\d\d-.*\.ts$/.test(file) && (values.only === undefined || file.includes(values.only)))
  .sort()
const rows: { bench: Bench; result: BenchResult }[] = []
for (const file of files) {
  const { bench } = (await import(new URL(file, folder).href)) as { bench: Bench } // every b*.ts exports its bench
  printLine(`${bench.name}: ${bench.question}`)
  try {
    const result = await measure(bench, Number(values.seconds))
    rows.push({ bench, result })
    printLine(`  ${describe(bench, result)}`)
  } catch (error) {
    setExitCode(1)
    printLine(`  could not run: ${error instanceof Error ? error.message : String(error)}`)
  }
}
if (values.only === undefined) await writeFile(new URL('RESULTS.md', folder), page(rows))

function describe(bench: Bench, result: BenchResult): string {
  const ratio =
    `${bench.subjectName} / ${bench.peerName} = ${result.ratio.toFixed(3)} (${result.low.toFixed(3)} to ` +
    `${result.high.toFixed(3)}, ${result.pairs} pairs${result.isNoisy ? ', noisy' : ''})`
  const facts = Object.entries(result.facts).map(([name, value]) => `${name} ${value}`)
  return [
    ratio,
    `goal ${bench.goal}`,
    `${figure(result.subjectPerSecond)} against ${figure(result.peerPerSecond)} ${bench.unit}/s`,
    ...facts,
  ].join('; ')
}

function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function page(results: readonly { bench: Bench; result: BenchResult }[]): string {
  const lines = results.map(({ bench, result }) => {
    const range = `${result.low.toFixed(2)}-${result.high.toFixed(2)}${result.isNoisy ? ', noisy' : ''}`
    const cells = [
      bench.name,
      bench.question,
      bench.peerName,
      `${result.ratio.toFixed(2)} (${range})`,
      bench.goal,
      `${figure(result.subjectPerSecond)} / ${figure(result.peerPerSecond)} ${bench.unit}/s`,
      Object.entries(result.facts)
        .map(([name, value]) => `${name}: ${value}`)
        .join(', '),
    ]
    return `| ${cells.join(' | ')} |`
  })
  return [
    '# Benchmarks',
    '',
    `Written by \`npm run bench\` on ${systemClock.now().toISOString().slice(0, 10)}, ${cpus().length} cores, ` +
      `${arch()}. Ratios compare two things measured in the same run; absolute figures are only for orientation.`,
    '',
    '| Benchmark | Question | Peer | Ratio | Goal | Subject / peer | Facts |',
    '|---|---|---|---|---|---|---|',
    ...lines,
    '',
  ].join('\n')
}
