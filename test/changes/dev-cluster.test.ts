import { expect, test } from 'vitest'
import { devClusterChanges } from '../../changes/dev-cluster.ts'
import { requireUntouched } from '../../changes/kit/judge.ts'
import { Plan, Zone } from '../../resources/catalog/index.ts'
import type { DevClusterSpec } from '../../resources/dev-cluster/index.ts'
import { Network } from '../../resources/network/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'
import { withZones } from './world.ts'

const object = (kind: string, metadata: { readonly name: string; readonly namespace?: string }, spec: object) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind,
  metadata,
  spec,
  status: { hasPrivateNetworks: true, builtTemplates: ['dev-cluster'] },
})
const plan = (name: string, memoryMebibytes: number) =>
  [Plan, object('Plan', { name }, { cores: 1, memoryMebibytes, storageGibibytes: 20 })] as const
const WORLD = withZones(
  [Zone, object('Zone', { name: 'dev' }, { region: 'eu', isClosed: false })],
  [Network, object('Network', { name: 'away', namespace: 'acct-1' }, { zone: 'z1' })],
  plan('enough', 4_096),
  plan('small', 1_024),
)
const SPEC: DevClusterSpec = {
  zone: 'dev',
  name: 'one',
  plan: 'enough',
  version: '1.36',
  publicIpv4: false,
  sshKeys: [PUBLIC_KEY],
  labels: {},
}
const { create, remove, readable } = devClusterChanges
const made = (more: Partial<DevClusterSpec>) => () =>
  create.allow?.({ accountId: '1', id: 'one', facts: undefined, spec: { ...SPEC, ...more } }, WORLD)
const removed = (state: 'running' | 'deleting') => () =>
  remove.allow?.({ accountId: '1', id: 'one', spec: SPEC, facts: { id: 'one', state, isSimulated: false } }, WORLD)

test.each<readonly [string, () => void, string]>([
  ['made in an unknown zone', made({ zone: 'nowhere' }), 'zone: there is no zone nowhere'],
  ['made in a zone without networks', made({ zone: 'bare' }), 'has no private networks'],
  ['made in a zone without their image', made({ zone: 'z1' }), 'npm run image:dev-cluster'],
  ['made with a version that is not offered', made({ version: '1.20' }), 'version: is not offered here; offered are'],
  ['made with an unknown plan', made({ plan: 'none' }), 'plan: there is no plan none'],
  ['made with a plan that is too small', made({ plan: 'small' }), 'plan: has 1024 MiB of memory; a dev cluster needs'],
  ['made in a network of another zone', made({ networkId: 'away' }), 'networkId: is in zone z1, not in dev'],
  ['made with a key that is none', () => readable?.({ ...SPEC, sshKeys: ['nonsense'] }), 'sshKeys.0: '],
  ['made with a label that is none', () => readable?.({ ...SPEC, labels: { '-': 'x' } }), 'labels.-: '],
  [
    'given another plan',
    () => requireUntouched(devClusterChanges, SPEC, { ...SPEC, plan: 'small' }),
    'plan: cannot be changed',
  ],
  ['deleted twice', removed('deleting'), 'The dev cluster is being deleted.'],
])('a dev cluster is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test.each<readonly [string, () => void]>([
  ['made', made({})],
  ['made in a network that comes later', made({ networkId: 'later' })],
  ['deleted', removed('running')],
])('a dev cluster may be %s', (_what, work) => {
  expect(work).not.toThrow()
})
