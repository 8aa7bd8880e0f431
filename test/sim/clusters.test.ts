/** When worlds of clusters are at rest; the worlds are in `clusters.seeds.test.ts`. */
import { expect, it } from 'vitest'
import { nodeNameOf } from '../../domain/node-pool/rules.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { areClustersQuiet } from './cluster-invariants.ts'

const POOL = {
  metadata: { name: 'p', uid: 'uid-of-the-pool', generation: 1 },
  spec: { name: 'workers', count: 2 },
  status: { isMade: true, observedGeneration: 1 },
}
const nameOf = (number: number) => nodeNameOf({ name: 'workers', uid: POOL.metadata.uid }, number)

it.each([
  ['every node reports', POOL, [true, true], true],
  ['one node does not report', POOL, [true, false], false],
  ['one node never joined', POOL, [true], false],
  ['the pool is being made', { ...POOL, status: { ...POOL.status, isMade: false } }, [], true],
])('a pool: %s', async (_what, pool, nodes, isQuiet) => {
  const list = async (type: ResourceType) => ({ items: type === NodePool ? [pool] : [] })
  const known = new Map(nodes.map((isReady, number) => [nameOf(number), { isReady }]))
  const planes = new Map([['plane', { nodes: known }]])
  // the lists and the nodes are all that is looked at
  expect(await areClustersQuiet({ admin: { list } as never, clusters: { planes } as never })).toBe(isQuiet)
})
