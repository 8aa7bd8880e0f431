/** The embedded server against the recorded transcripts of a real one. */

import type { Agent } from 'undici'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { comparable } from './accepted.ts'
import { definitions } from './definitions.ts'
import { readGolden } from './golden.ts'
import { themes } from './scenarios/index.ts'
import { connect, play, prepare } from './session.ts'
import { type RunningTarget, startTarget } from './targets.ts'

let embedded: RunningTarget
let connections: Agent

beforeAll(async () => {
  embedded = await startTarget('embedded')
  connections = connect(embedded)
  await prepare(embedded, definitions, connections)
})

afterAll(async () => {
  await connections.destroy()
  await embedded.stop()
})

for (const theme of themes) {
  const golden = await readGolden(theme.name)
  describe.concurrent(theme.name, () => {
    for (const scenario of theme.scenarios) {
      it(scenario.name, async ({ expect }) => {
        const title = `${theme.name}/${scenario.name}`
        const recorded = golden.get(scenario.name)
        expect(recorded, 'recorded with UPDATE=1 on the cluster tier').toBeTruthy()
        expect(comparable(title, await play(embedded, scenario, connections))).toBe(comparable(title, recorded ?? ''))
      })
    }
  })
}
