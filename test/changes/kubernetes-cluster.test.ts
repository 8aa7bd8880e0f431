import { describe, expect, test } from 'vitest'
import { changesBetween, requireUntouched } from '../../changes/kit/judge.ts'
import { kubernetesClusterChanges } from '../../changes/kubernetes-cluster.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { KubernetesCluster, type KubernetesClusterSpec } from '../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../resources/node-pool/index.ts'
import { withZones } from './world.ts'

const object = (kind: string, metadata: { readonly name: string; readonly namespace?: string }, spec: object) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind,
  metadata,
  spec,
  status: { hasPrivateNetworks: true, kubernetesReleases: ['1.34.1', '1.35.4', '1.36.3'] },
})
const WORLD = withZones(
  [Zone, object('Zone', { name: 'kube' }, { region: 'eu', isClosed: false })],
  [
    NodePool,
    object('NodePool', { name: 'old', namespace: 'acct-1' }, { clusterId: 'aged', name: 'web', version: '1.32' }),
  ],
)
const SPEC = KubernetesCluster.spec.parse({ zone: 'kube', name: 'shop', networkId: 'back', version: '1.35' })
type Facts = ReturnType<typeof kubernetesClusterChanges.factsOf>
const FACTS: Facts = {
  id: 'shop',
  isProtected: false,
  isDeleting: false,
  activeOperation: undefined,
  release: '1.35.4',
  state: 'running',
}
const { create, changes, remove } = kubernetesClusterChanges
const made = (more: Partial<KubernetesClusterSpec>) => () =>
  create.allow?.({ accountId: '1', id: 'shop', facts: undefined, spec: { ...SPEC, ...more } }, WORLD)
const changed =
  (name: string, more: Partial<KubernetesClusterSpec> = {}, facts: Partial<Facts> = {}, id = 'shop') =>
  () => {
    const subject = { accountId: '1', id, before: SPEC, spec: { ...SPEC, ...more }, facts: { ...FACTS, ...facts } }
    changes.find((change) => change.name === name)?.allow?.(subject, WORLD)
  }
const removed = (facts: Partial<Facts>) => () =>
  remove.allow?.({ accountId: '1', id: 'shop', spec: SPEC, facts: { ...FACTS, ...facts } }, WORLD)
const busyWith = (kind: string) => ({ activeOperation: { id: 'op', kind } })

describe('the changes between two specs', () => {
  test.each<readonly [string, Partial<KubernetesClusterSpec>, readonly string[]]>([
    ['nothing', {}, []],
    ['labels', { labels: { a: 'b' } }, ['configure']],
    ['a schedule and a version', { version: '1.36', etcdSnapshotSchedule: '0 1 * * *' }, ['upgrade', 'configure']],
    ['no registration', { registersInPlatform: false }, ['register']],
  ])('are, with other %s', (_what, after, names) => {
    const found = changesBetween(kubernetesClusterChanges, SPEC, { ...SPEC, ...after })
    expect(found.map(({ name }) => name)).toEqual(names)
  })
})

test.each<readonly [string, () => void, string]>([
  ['made in an unknown zone', made({ zone: 'nowhere' }), 'zone: there is no zone nowhere'],
  ['made in a zone without networks', made({ zone: 'bare' }), 'has no private networks'],
  ['made in a zone without Kubernetes', made({ zone: 'z1' }), 'Zone z1 has no Kubernetes: nothing is known of it yet'],
  ['made with a version that is not offered', made({ version: '1.20' }), 'version: is not offered here; offered are'],
  [
    'given a schedule that is none',
    () => kubernetesClusterChanges.readable?.({ ...SPEC, etcdSnapshotSchedule: 'often' }),
    'etcdSnapshotSchedule: ',
  ],
  [
    'moved to another network',
    () => requireUntouched(kubernetesClusterChanges, SPEC, { ...SPEC, networkId: 'front' }),
    'networkId: cannot be changed',
  ],
  [
    'hosted elsewhere by people',
    () => requireUntouched(kubernetesClusterChanges, undefined, { ...SPEC, controlPlaneRegion: 'us' }),
    'spec.controlPlaneRegion is written by the platform only',
  ],
  ['changed while it is deleted', changed('configure', {}, { isDeleting: true }), 'The cluster is being deleted.'],
  ['upgraded while it is made', changed('upgrade', { version: '1.36' }, { state: 'creating' }), 'it must be running'],
  [
    'upgraded while it changes',
    changed('upgrade', { version: '1.36' }, busyWith('kubernetes_cluster.snapshot')),
    'Another operation runs',
  ],
  ['made older', changed('upgrade', { version: '1.34' }), 'version: is older than the cluster, which runs 1.35.4'],
  ['upgraded over a version', changed('upgrade', { version: '1.36' }, { release: '1.34.1' }), 'skips a minor version'],
  [
    'upgraded beyond its pools',
    changed('upgrade', { version: '1.36' }, {}, 'aged'),
    'Its node pool web is too old: upgrade that first.',
  ],
  ['deleted while it is protected', removed({ isProtected: true }), 'The cluster is protected.'],
  ['deleted twice', removed(busyWith('kubernetes_cluster.delete')), 'Another operation runs'],
])('a cluster is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test.each<readonly [string, () => void]>([
  ['made', made({})],
  ['upgraded', changed('upgrade', { version: '1.36' })],
  ['configured while it changes', changed('configure', {}, busyWith('kubernetes_cluster.snapshot'))],
  ['deleted while it is made', removed(busyWith('kubernetes_cluster.create'))],
])('a cluster may be %s', (_what, work) => {
  expect(work).not.toThrow()
})
