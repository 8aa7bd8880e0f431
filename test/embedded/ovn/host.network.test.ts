/** The wires of a node, in separate namespaces. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BRIDGE_LINES } from '../../../embedded/ovn/bridges.ts'
import { wire } from '../../../embedded/ovn/host.ts'
import { openSpace, type Space } from '../../../embedded/ovn/space.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

const spaces: Space[] = []
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-wires-'))
})
afterAll(async () => {
  for (const space of spaces) space.close()
  await Promise.all(spaces.map(({ ended }) => ended))
  await rm(folder, { recursive: true })
})

async function open(...lines: readonly string[]): Promise<Space> {
  const space = await openSpace({ folder }, systemClock)
  spaces.push(space)
  if (lines.length > 0) await space.run(...lines)
  return space
}

test('a node whose guests have kept its namespace is wired to a new cloud before the old one has stopped', async () => {
  const addresses = { host: '192.0.2.1', tunnel: '198.51.100.1', prefix: 24 }
  const [node, before] = [await open(), await open(...BRIDGE_LINES)]
  await wire({ middle: before, number: 0, addresses }, node)
  const middle = await open(...BRIDGE_LINES)
  await wire({ middle, number: 0, addresses }, node)
  expect(await middle.run('ip -o link show t0')).toContain('master tunnels')
  expect(await node.run('ip -o address show host0')).toContain(' 192.0.2.1/24 ')
  expect(await before.run('ip -o link show')).not.toContain(' t0@')
})
