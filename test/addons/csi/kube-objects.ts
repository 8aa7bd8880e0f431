/** A node of a cluster, as objects. */
import { DRIVER_NAME, ZONE_KEY } from '../../../addons/csi/identity.ts'
import type { KubeClient } from '../../hosting/processes/hosted.ts'

export const STORAGE = '/apis/storage.k8s.io/v1'
async function create(admin: KubeClient, path: string, body: object): Promise<void> {
  const answer = await admin.send('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

/** A node with the driver, as its kubelet says so; nothing runs on it. */
export async function addNode(admin: KubeClient, name: string, serverId: string, zone: string): Promise<void> {
  await create(admin, '/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { [ZONE_KEY]: zone, 'kubernetes.io/hostname': name },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
  })
  const { body } = await admin.send('GET', `/api/v1/nodes/${name}`)
  const { uid } = body['metadata'] as { uid: string } // every object has one
  await create(admin, `${STORAGE}/csinodes`, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
    spec: {
      drivers: [{ name: DRIVER_NAME, nodeID: serverId, topologyKeys: [ZONE_KEY], allocatable: { count: 8 } }],
    },
  })
  await reportReady(admin, name)
}

/** As kubelets do, again and again. */
export async function reportReady(admin: KubeClient, name: string): Promise<void> {
  const now = new Date().toISOString()
  const room = { cpu: '2', memory: '4Gi', pods: '100' }
  const condition = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastHeartbeatTime: now }
  const status = { capacity: room, allocatable: room, conditions: [{ ...condition, lastTransitionTime: now }] }
  await admin.send('PATCH', `/api/v1/nodes/${name}/status`, { status }, 'application/merge-patch+json')
  const taints = { spec: { taints: null } }
  await admin.send('PATCH', `/api/v1/nodes/${name}`, taints, 'application/merge-patch+json')
}
