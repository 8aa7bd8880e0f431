import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { asking, makeNetwork, type Row, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const { create, change, remove, edit, request, ofPlatform, creationNeeds } = asking('/kubernetes-clusters', {
  zone,
  name: 'new',
  networkId: ':back',
  version: '1.35',
})
const RUNNING = { isMade: true, version: '1.35', kubernetesVersion: '1.35.4' }
const upgrade = (what: string, of: string, version: string): Row =>
  change(`upgrade ${what}`.trim(), of, { version }, { method: 'POST', suffix: '/upgrade', rest: { version } })

export const TABLE: Table = {
  resource: KubernetesCluster,
  async arrange(scene) {
    const { make, put, patch, request } = scene
    await makeNetwork('back', '10.1.0.0/24', scene)
    for (const name of ['shop', 'spare', 'aged', 'kept', 'leaving', 'busy']) {
      const body = { zone, name, network_id: ':back', version: '1.35' }
      await make(name, '/kubernetes-clusters', body, { status: RUNNING, isBusy: name === 'busy' })
    }
    await patch(KubernetesCluster, 'kept', { spec: { isProtected: true } })
    await put(NodePool, 'old', {
      clusterId: ':aged',
      name: 'old',
      zone,
      plan: 'starter-1c-1g',
      version: '1.32',
      count: 1,
    })
    await request('DELETE', '/kubernetes-clusters/:leaving')
  },
  rows: [
    create('before its network', { networkId: 'later' }, { differs: WHY.pending }),
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a zone without Kubernetes', { zone: 'imageless' }),
    create('in a closed zone', { zone: 'closed' }),
    create('with a version that is not offered', { version: '1.20' }),
    create('with a schedule of no form', { etcdSnapshotSchedule: 'often' }),
    create('with labels of no form', { labels: { '-': 'x' } }),
    create('with capitals in its name', { name: 'A' }),
    create('with a name that is too short', { name: 'x' }),
    create('with a private endpoint', {}, { rest: { private_endpoint: true }, kubectl: false }),
    create('with the name of another', { name: 'spare' }),
    create('in a region of its choice', { controlPlaneRegion: 'eu-2' }, { rest: false }),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('shop', 'kubernetes_cluster.create'),

    upgrade('to a version that is not offered', 'shop', '1.99'),
    upgrade('to an older version', 'shop', '1.34'),
    upgrade('one that is busy', 'busy', '1.36'),
    upgrade('one that is being deleted', 'leaving', '1.36'),
    upgrade('one whose node pool is too old', 'aged', '1.36'),
    change('change nothing', 'shop', {}),
    change('label', 'shop', { labels: { a: 'b' } }),
    change('label so that nobody can read it', 'shop', { labels: { '-': 'x' } }),
    change('schedule in no form', 'shop', { etcdSnapshotSchedule: 'often' }),
    change('label one that is being deleted', 'leaving', { labels: { a: 'b' } }),
    edit('end its registration', 'shop', { spec: { registersInPlatform: false } }),
    edit('end the registration of one that is being deleted', 'leaving', { spec: { registersInPlatform: false } }),
    ...Object.entries({ zone: 'bare', name: 'renamed', networkId: 'other', publicIpv4: true }).map(([field, value]) =>
      edit(`change ${field}`, 'shop', { spec: { [field]: value } }),
    ),
    upgrade('', 'spare', '1.36'),
    request('change one that is not there', 'PATCH', '/nothing', { is_protected: true }),

    remove('one that is protected', 'kept'),
    remove('one that is busy', 'busy'),
    remove('one that is being deleted', 'leaving', { differs: WHY.deletionWaits }),
    remove('', 'shop'),
    create(''),
  ],
}
