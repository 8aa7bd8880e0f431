import { expect, test } from 'vitest'
import { openAlarms } from '../../controllers/alarms.ts'
import type { NodeObject } from '../../controllers/node/seen.ts'
import type { ServerObject } from '../../controllers/server/seen.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { node } from './node/worlds.ts'
import { ended, started } from './server/worlds.ts'

test('nodes are counted by state, and deletions that do not come to their end', async () => {
  const registry = openRegistry({ isProcessWide: false })
  const nodes: NodeObject[] = []
  const servers: ServerObject[] = []
  openAlarms({ nodes: () => nodes, servers: () => servers }, registry)
  const linesOf = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_') && !line.endsWith(' 0'))
  expect(await linesOf()).toEqual([])

  const deleting = (status: 'running' | 'failed') => started({ status: { state: 'deleting', operation: { ...ended('server.delete', 'op-1').progress, status } } }).server
  nodes.push(node(), node({ state: 'ready' }), node({ state: 'unreachable' }), node({ state: 'unreachable' }))
  servers.push(started().server, deleting('running'), deleting('failed'))
  expect(await linesOf()).toEqual(['svccloud_nodes{state="provisioning"} 1', 'svccloud_nodes{state="ready"} 1', 'svccloud_nodes{state="unreachable"} 2', 'svccloud_deletions_overdue 1'])

  nodes.splice(2)
  expect(await linesOf()).not.toContain('svccloud_nodes{state="unreachable"} 2')
})
