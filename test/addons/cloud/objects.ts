/** Services and nodes of a cluster for tests. */
import type { NodeObject, ServiceObject, ServiceSpec } from '../../../addons/cloud/objects.ts'
import type { PoolServer } from '../../../addons/cloud/nodes.ts'
import type { ObjectMeta } from '../../../kit/kube/object.ts'

export const UID = '5f0d6c1e-0000-4000-8000-000000000001'

export const newService = (spec: ServiceSpec = {}, metadata: Partial<ObjectMeta> = {}): ServiceObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'web', uid: UID, resourceVersion: '1', ...metadata },
  spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80, nodePort: 30_080 }], ...spec },
})

export const newNode = (name: string, isReady = true, metadata: Partial<ObjectMeta> = {}): NodeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, uid: `uid-${name}`, resourceVersion: '1', ...metadata },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }] },
})

export const newServer = (number: number): PoolServer => ({
  hostname: `web-${number}`,
  serverId: `machine-node-${number}`,
  zone: 'eu-1a',
  address: `10.1.${Math.floor(number / 200)}.${(number % 200) + 10}`,
})
