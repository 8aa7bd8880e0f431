/** What a cluster is told of the driver, and what the sidecars may do in it. */
import { DRIVER_NAME, ZONE_KEY } from '../../../addons/csi/identity.ts'
import type { KubeClient } from '../../embedded/control-planes/hosted.ts'

export const RBAC = '/apis/rbac.authorization.k8s.io/v1'
export const STORAGE = '/apis/storage.k8s.io/v1'
export const ACCOUNT = 'csi'

const reading = ['get', 'list', 'watch']
const rule = (apiGroup: string, resources: readonly string[], verbs: readonly string[]) => ({
  ...{ apiGroups: [apiGroup], resources, verbs },
})

/** As the sidecars say that they need it. */
const RULES = [
  rule('', ['persistentvolumes'], [...reading, 'create', 'patch', 'delete']),
  rule('', ['persistentvolumeclaims'], [...reading, 'update']),
  rule('', ['persistentvolumeclaims/status'], ['patch']),
  rule('', ['events'], [...reading, 'create', 'update', 'patch']),
  rule('', ['nodes', 'pods'], reading),
  rule('storage.k8s.io', ['storageclasses', 'csinodes', 'volumeattributesclasses'], reading),
  rule('storage.k8s.io', ['volumeattachments'], [...reading, 'patch']),
  rule('storage.k8s.io', ['volumeattachments/status'], ['patch']),
]

async function create(admin: KubeClient, path: string, body: object): Promise<void> {
  const answer = await admin.send('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
}

/** The driver, a class of volumes, and an account for the sidecars with a token; answers the token. */
export async function installDriver(admin: KubeClient): Promise<string> {
  const storage = 'storage.k8s.io/v1'
  await create(admin, `${STORAGE}/csidrivers`, {
    ...{ apiVersion: storage, kind: 'CSIDriver', metadata: { name: DRIVER_NAME } },
    spec: { attachRequired: true, podInfoOnMount: false, fsGroupPolicy: 'File' },
  })
  await create(admin, `${STORAGE}/storageclasses`, {
    ...{ apiVersion: storage, kind: 'StorageClass', metadata: { name: 'standard' }, provisioner: DRIVER_NAME },
    ...{ volumeBindingMode: 'WaitForFirstConsumer', allowVolumeExpansion: true, reclaimPolicy: 'Delete' },
  })
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts'
  await create(admin, accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT } })
  const rbac = 'rbac.authorization.k8s.io/v1'
  await create(admin, `${RBAC}/clusterroles`, {
    ...{ apiVersion: rbac, kind: 'ClusterRole', metadata: { name: ACCOUNT }, rules: RULES },
  })
  await create(admin, `${RBAC}/clusterrolebindings`, {
    ...{ apiVersion: rbac, kind: 'ClusterRoleBinding', metadata: { name: ACCOUNT } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ACCOUNT },
    subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: 'kube-system' }],
  })
  const { body } = await admin.send('POST', `${accounts}/${ACCOUNT}/token`, {
    ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3_600 } },
  })
  const { token } = body['status'] as { token: string } // of a TokenRequest
  return token
}

/** A node with the driver, as its kubelet says so; nothing runs on it. */
export async function addNode(admin: KubeClient, name: string, serverId: string, zone: string): Promise<void> {
  await create(admin, '/api/v1/nodes', {
    ...{ apiVersion: 'v1', kind: 'Node' },
    metadata: {
      name,
      labels: { [ZONE_KEY]: zone, 'kubernetes.io/hostname': name },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
  })
  const { body } = await admin.send('GET', `/api/v1/nodes/${name}`)
  const { uid } = body['metadata'] as { uid: string } // every object has one
  await create(admin, `${STORAGE}/csinodes`, {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode' },
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
