import { expect, test } from 'vitest'
import { gatewayNodes } from '../../../controllers/network/gateway-nodes.ts'
import { openCaches } from '../../../kit/kube/caches.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'

const node = (name: string, state: NodeStatus['state'], roles: NodeSpec['roles'] = ['compute'], zone = 'z1') => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Node',
  metadata: { name },
  spec: { zone, rack: 'r1', roles, isCordoned: false, cpuOvercommit: 4, reservedMemoryMebibytes: 0 },
  status: { state } as NodeStatus, // the rest of it is of no interest
})

test.each([
  ['any that is alive', [node('b', 'cordoned'), node('a', 'ready'), node('c', 'unreachable')], ['a', 'b']],
  [
    'those for the network that are alive, where there are any',
    [node('a', 'ready'), node('b', 'ready', ['network']), node('c', 'fenced', ['network'])],
    ['b'],
  ],
  ['none of another zone', [node('a', 'ready', ['network'], 'z2')], []],
])('a zone leads outside by %s', (_which, nodes, names) => {
  const store = {} as Store // the cache is filled by hand
  const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  caches.of(Node).takeList({ items: nodes, resourceVersion: '1' })
  expect(gatewayNodes(caches, 'z1')).toEqual(names)
})
