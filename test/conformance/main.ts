/** Plays the conformance scenarios by hand. Transcripts of the real server are recorded, so that any run can be
 *  compared with them:
 *
 *    node test/conformance/main.ts --server real [--only pattern]               plays and compares with the recording
 *    node test/conformance/main.ts --server real [--only pattern] --record      plays and records anew
 *    node test/conformance/main.ts --server embedded [--only pattern]           plays and compares with the recording
 *    node test/conformance/main.ts --server both [--only pattern]               plays on both and compares
 *
 *  `--print` shows the transcripts as well. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Agent } from 'undici'
import { answerHelp } from '../../kit/sys/help.ts'
import { comparable } from './accepted.ts'
import { definitions } from './definitions.ts'
import { readGolden, writeGolden } from './golden.ts'
import type { Scenario, Theme } from './scenario.ts'
import { themes } from './scenarios/index.ts'
import { connect, play, prepare } from './session.ts'
import { type RunningTarget, startTarget, type TargetName } from './targets.ts'

/** kubectl processes at a time; each uses a core for a tenth of a second. */
const CONCURRENCY = 4
const UNFINISHED = /^FAILED/m

interface Case {
  readonly theme: Theme
  readonly scenario: Scenario
}
const title = ({ theme, scenario }: Case) => `${theme.name}/${scenario.name}`

async function playAll(target: RunningTarget, dispatcher: Agent, cases: readonly Case[]): Promise<Map<string, string>> {
  const transcripts = new Map<string, string>()
  const waiting = cases.values()
  const worker = async () => {
    for (const next of waiting) transcripts.set(title(next), await play(target, next.scenario, dispatcher))
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return transcripts
}

async function playOn(name: TargetName, cases: readonly Case[]): Promise<Map<string, string>> {
  const target = await startTarget(name)
  const dispatcher = connect(target)
  try {
    await prepare(target, definitions, dispatcher)
    return await playAll(target, dispatcher, cases)
  } finally {
    await dispatcher.destroy()
    await target.stop()
  }
}

async function recorded(cases: readonly Case[]): Promise<Map<string, string>> {
  const all = new Map<string, string>()
  for (const theme of new Set(cases.map(({ theme }) => theme)))
    for (const [name, transcript] of await readGolden(theme.name)) all.set(`${theme.name}/${name}`, transcript)
  return all
}

async function difference(expected: string, actual: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-difference-'))
  const [a, b] = [join(folder, 'expected'), join(folder, 'actual')]
  await writeFile(a, `${expected}\n`)
  await writeFile(b, `${actual}\n`)
  const text = await new Promise<string>((resolve) =>
    execFile('diff', ['-U', '4', '--label', 'expected', '--label', 'actual', a, b], (_, output) => resolve(output)),
  )
  await rm(folder, { recursive: true })
  return text
}

answerHelp(import.meta.filename)
const { values: options } = parseArgs({
  options: {
    server: { type: 'string', default: 'both' },
    only: { type: 'string', default: '' },
    record: { type: 'boolean', default: false },
    print: { type: 'boolean', default: false },
  },
})
const only = new RegExp(options.only)
const cases = themes
  .flatMap((theme) => theme.scenarios.map((scenario) => ({ theme, scenario })))
  .filter((one) => only.test(title(one)))

async function record(played: ReadonlyMap<string, string>): Promise<void> {
  for (const theme of new Set(cases.map(({ theme }) => theme))) {
    const kept = await readGolden(theme.name)
    await writeGolden(
      theme.name,
      new Map(
        theme.scenarios.map((scenario) => [
          scenario.name,
          played.get(title({ theme, scenario })) ?? kept.get(scenario.name) ?? '',
        ]),
      ),
    )
  }
}

const actual = await playOn(options.server === 'real' ? 'real' : 'embedded', cases)
if (options.print) for (const [name, transcript] of actual) console.log(`=== ${name} ===\n\n${transcript}\n`)
const unfinished = [...actual].filter(([, transcript]) => UNFINISHED.test(transcript))
for (const [name, transcript] of unfinished) console.log(`${name}: ${transcript.slice(transcript.search(UNFINISHED))}`)
if (options.record) await record(actual)
const expected = options.server === 'both' ? await playOn('real', cases) : await recorded(cases)
const shown = options.server === 'real' ? (_: string, transcript: string) => transcript : comparable
const different = [...actual].filter(
  ([name, transcript]) => shown(name, expected.get(name) ?? '') !== shown(name, transcript),
)
for (const [name, transcript] of different)
  console.log(`=== ${name} ===\n${await difference(shown(name, expected.get(name) ?? ''), shown(name, transcript))}`)
console.log(
  `${actual.size - different.length} equal, ${different.length} different, ${unfinished.length} of them not finished`,
)
if (different.length > 0) process.exitCode = 1
