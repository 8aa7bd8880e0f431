/** The embedded server against a real one, and the recording against what the real one answers today. UPDATE=1 records
 *  anew. */

import type { Agent } from 'undici'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { comparable } from './accepted.ts'
import { definitions } from './definitions.ts'
import { readGolden, writeGolden } from './golden.ts'
import { themes } from './scenarios/index.ts'
import { connect, play, prepare } from './session.ts'
import { type RunningTarget, startTarget, type TargetName } from './targets.ts'

const isRecording = process.env['UPDATE'] === '1'
const START_MILLISECONDS = 600_000 // the first time, the servers are built

interface Side {
  readonly target: RunningTarget
  readonly connections: Agent
}

async function start(name: TargetName): Promise<Side> {
  const target = await startTarget(name)
  const connections = connect(target)
  await prepare(target, definitions, connections)
  return { target, connections }
}

let real: Side
let embedded: Side

beforeAll(async () => {
  real = await start('real')
  embedded = await start('embedded')
}, START_MILLISECONDS)

afterAll(async () => {
  for (const side of [real, embedded]) {
    await side?.connections.destroy() // undefined when it never started
    await side?.target.stop()
  }
})

for (const theme of themes) {
  const golden = await readGolden(theme.name)
  const played = new Map<string, string>()
  describe.concurrent(theme.name, () => {
    for (const scenario of theme.scenarios) {
      it(scenario.name, async ({ expect }) => {
        const title = `${theme.name}/${scenario.name}`
        const expected = await play(real.target, scenario, real.connections)
        played.set(scenario.name, expected)
        expect(expected, 'every step can be done on the real server').not.toMatch(/^FAILED/m)
        if (!isRecording) expect(expected, 'the recording is current').toBe(golden.get(scenario.name))
        expect(comparable(title, await play(embedded.target, scenario, embedded.connections))).toBe(
          comparable(title, expected),
        )
      })
    }
    afterAll(async () => {
      if (isRecording)
        await writeGolden(
          theme.name,
          new Map(theme.scenarios.map(({ name }) => [name, played.get(name) ?? golden.get(name) ?? ''])),
        )
    })
  })
}
