import { expect, test } from 'vitest'
import { builtOnAll, isHost, privateNetworksOf } from '../../../../controllers/nouns/zone/index.ts'
import { plan } from '../../../../controllers/nouns/zone/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { Candidate } from '../../../../domain/node/placement.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import type { NodeSpec, NodeStatus } from '../../../../resources/node/index.ts'
import type { PlanSpec, ZoneSpec, ZoneStatus } from '../../../../resources/catalog/index.ts'

const zone = (isClosed = false): KubeObject<ZoneSpec, ZoneStatus> => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Zone',
  metadata: { name: 'z1' },
  spec: { displayName: 'Z', region: 'r', isClosed, capabilities: [] },
})
const offered = (name: string, cores: number, cpuPool?: string): KubeObject<PlanSpec> => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Plan',
  metadata: { name },
  spec: {
    family: 'starter',
    cores,
    memoryMebibytes: 1,
    storageGibibytes: 1,
    priceMonthlyCents: 1,
    ...defined({ cpuPool }),
  },
})
const node = (cores: number, changes: Partial<Candidate> = {}): Candidate => ({
  node: 'n',
  zone: 'z1',
  rack: 'r',
  cpuPool: null,
  dedicatedAccountId: null,
  isSchedulable: true,
  total: { cores, memoryMebibytes: 10, storageGibibytes: 10 },
  used: { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 },
  ...changes,
})
const PLANS = [offered('small', 1), offered('large', 8), offered('pool', 1, 'amd')]
const judged = (nodes: readonly Candidate[], isClosed = false) =>
  plan(
    zone(isClosed),
    { nodes, plans: PLANS, hosts: [], guests: [], hasBackups: false, builtTemplates: [] },
    new Date(),
  ).find((action) => action.do === 'status')?.status

test.each<readonly [string, readonly Candidate[], object]>([
  ['takes what it has room for', [node(4)], { state: 'available', unavailablePlans: ['large', 'pool'] }],
  ['takes pools that it has', [node(4, { cpuPool: 'amd' })], { state: 'available', unavailablePlans: ['large'] }],
  ['without nodes is full', [], { state: 'full', unavailablePlans: ['large', 'pool', 'small'] }],
  ['whose nodes are silent is full', [node(4, { isSchedulable: false })], { state: 'full' }],
  ['of dedicated nodes is full for everybody', [node(4, { dedicatedAccountId: 'a' })], { state: 'full' }],
])('a zone %s', (_why, nodes, expected) => expect(judged(nodes)).toMatchObject(expected))
test.each([
  ['every host has', [['a', 'b'], ['b']], ['b']],
  ['no host has, where there is none', [], []],
  ['one host has not', [['a'], []], []],
])('an image is built in a zone that %s', (_why, hosts, expected) => expect(builtOnAll(hosts)).toEqual(expected))
const WITHOUT = 'host b has user-mode networking: '
test.each([
  ['nothing, while no host answers', [], true, {}],
  ['networks, where all hosts have one', ['public-network', 'public-network'], true, { hasPrivateNetworks: true }],
  ['networks, where hosts only simulate', [undefined], false, { hasPrivateNetworks: true }],
  [
    'which host is in the way, and why',
    ['public-network', 'user-network-outbound'],
    true,
    { hasPrivateNetworks: false, networkObstacle: `${WITHOUT}there is no /dev/net/tun` },
  ],
  [
    'that the platform does not reach it',
    ['public-network'],
    false,
    { hasPrivateNetworks: false, networkObstacle: expect.stringContaining('SVCCLOUD_OVN_NORTHBOUND') },
  ],
] as const)('the networks of a zone: %s', (_what, hosts, hasOvn, expected) => {
  const reports = hosts.map((feature, index) => ({
    node: 'ab'[index] ?? '',
    features: feature === undefined ? [] : [feature],
    networkObstacle: 'there is no /dev/net/tun',
  }))
  expect(privateNetworksOf(reports, hasOvn)).toEqual(expected)
})
test('why a zone has no networks is kept as long as no host answers', () => {
  const before = { ...zone(), status: { hasPrivateNetworks: false, networkObstacle: 'why' } }
  const seen = { nodes: [], plans: PLANS, hosts: [], guests: [], hasBackups: false, builtTemplates: [] }
  const statusOf = (now: object) =>
    plan(before, { ...seen, ...now }, new Date()).find((action) => action.do === 'status')?.status
  expect(statusOf({})).toMatchObject({ hasPrivateNetworks: false, networkObstacle: 'why' })
  expect(statusOf({ hasPrivateNetworks: true })).toMatchObject({ networkObstacle: undefined })
})
test('says what its pools give and whether its hosts share storage', () => {
  const seen = { nodes: [], plans: PLANS, hosts: [], guests: [], hasBackups: false, builtTemplates: [] }
  const statusOf = (now: object) =>
    plan(zone(), { ...seen, ...now }, new Date()).find((action) => action.do === 'status')?.status
  expect(statusOf({ publicFamilies: ['ipv4'], pools: ['ceph'] })).toMatchObject({
    publicFamilies: ['ipv4'],
    hasSharedStorage: true,
  })
  expect(statusOf({ publicFamilies: [], pools: [] })).toMatchObject({ publicFamilies: [], hasSharedStorage: false })
})
test('a closed zone says so', () => expect(judged([node(4)], true)).toMatchObject({ state: 'closed' }))
test('is judged by the hosts that servers run on, or could', () => {
  const hosts = (roles: NodeSpec['roles'], state?: NodeStatus['state']) =>
    isHost({
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Node',
      metadata: { name: 'n' },
      spec: { zone: 'z1', rack: 'r', roles, isCordoned: false, cpuOvercommit: 4, reservedMemoryMebibytes: 0 },
      ...(state === undefined ? {} : { status: { state } }),
    })
  expect([
    hosts(['compute'], 'ready'),
    hosts(['network', 'compute'], 'unreachable'),
    hosts(['network'], 'ready'),
    hosts(['compute'], 'provisioning'),
    hosts(['compute']),
  ]).toEqual([true, true, false, false, false])
})
