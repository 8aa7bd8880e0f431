/** What the controller of load balancers decides, row by row. */
import { describe, expect, test } from 'vitest'
import {
  loadBalancerDemands,
  loadBalancerDocument,
  reportedOf,
} from '../../../../controllers/nouns/load-balancer/machines.ts'
import type { LoadBalancerObject, Observed } from '../../../../controllers/nouns/load-balancer/observed.ts'
import { plan } from '../../../../controllers/nouns/load-balancer/plan.ts'
import { type Machine, machineName } from '../../../../controllers/nouns/managed-machine/index.ts'
import { factsDigest } from '../../../../controllers/kit/synced.ts'
import { defined } from '../../../../domain/defined.ts'
import { firstNumber, LoadBalancer } from '../../../../resources/load-balancer/index.ts'
import { STARTED } from '../managed-machine/started.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const CLAIM: NonNullable<Observed['claim']> = {
  zone: 'z',
  name: 'web',
  networkId: 'n',
  ipv4Cidr: '10.0.0.0/24',
  ipv6Prefix: 'fd00::/64',
  shared: { ipv4Address: '10.0.0.9', ipv6Address: 'fd00::9' },
  publicIpv4: undefined,
  publicIpv6: undefined,
}
// What else an address has is not looked at.
const PUBLIC: NonNullable<Observed['claim']> = {
  ...CLAIM,
  publicIpv4: { address: '198.18.0.9', prefix: 16, gateway: '198.18.0.1' } as (typeof CLAIM)['publicIpv4'],
  publicIpv6: { address: '2001:db8:0:5::1', prefix: 64, gateway: 'fe80::1' } as (typeof CLAIM)['publicIpv6'],
}
const ROUTED = { routeDigest: factsDigest('2001:db8:0:5::1') }
const SEEN: Observed = {
  accountId: 'a',
  claim: CLAIM,
  hasNetwork: true,
  routeDigest: undefined,
  machines: [],
  lost: [],
  unusedCertificates: [],
  edits: [],
  editor: 'user:x',
}
const stanza = (kind: 'load_balancer.create' | 'load_balancer.delete', deadlineAt = '2026-01-01T00:30:00Z') => ({
  id: 'op',
  kind,
  requestedAt: NOW.toISOString(),
  deadlineAt,
  actor: 'user:x',
  requestId: 'request',
})
const CONFIGURATION = {
  frontends: [{ name: 'web', port: 80, mode: 'http', backend: 'web' }],
  backends: [{ name: 'web', members: [{ name: 'one', address: '10.0.0.20', port: 80 }] }],
}
const balancer = (more: {
  readonly metadata?: object
  readonly spec?: object
  readonly status?: LoadBalancerObject['status']
}): LoadBalancerObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'LoadBalancer',
  metadata: { name: 'lb', namespace: 'acct-a', uid: 'u', generation: 1, ...more.metadata },
  spec: LoadBalancer.spec.parse({ zone: 'z', name: 'web', networkId: 'n', plan: 'p', ...CONFIGURATION, ...more.spec }),
  ...defined({ status: more.status }),
})
const CREATING = balancer({ spec: { operation: stanza('load_balancer.create') } })
const DELETING = balancer({
  metadata: { deletionTimestamp: NOW.toISOString() },
  spec: { operation: stanza('load_balancer.delete') },
})
const RUNNING = balancer({
  spec: { operation: stanza('load_balancer.create') },
  status: { isMade: true, operation: ended('succeeded') },
})

function ended(status: 'succeeded' | 'failed') {
  const { id, kind, actor, deadlineAt, requestedAt: createdAt } = stanza('load_balancer.create')
  return { id, kind, actor, deadlineAt, createdAt, status, step: 'applied', stepIndex: 3, stepCount: 3, error: 'e' }
}

function machine(role: 'a' | 'b', more: Partial<Machine> = {}): Machine {
  const last = role === 'a' ? 2 : 3
  return {
    ...STARTED,
    role,
    serverId: machineName({ uid: 'u' }, role),
    serverUid: `uid-${role}`,
    plan: 'p',
    createdAt: NOW.toISOString(),
    node: `node-${role}`,
    sharedAddresses: [
      { address: '10.0.0.9', networkId: 'n' },
      { address: 'fd00::9', networkId: 'n' },
    ],
    publicMacAddress: '52:54:00:00:00:0f',
    interfaces: [
      {
        id: `i-${role}`,
        networkId: 'n',
        macAddress: `52:54:00:00:00:0${last}`,
        ipv4Address: `10.0.0.${last}`,
        ipv6Address: `fd00::${last}`,
      },
    ] as unknown as Machine['interfaces'], // what else an interface has is not looked at
    ...more,
  }
}
const PAIR = [machine('a'), machine('b')]

/** Both run what they must. */
function settled(of: LoadBalancerObject, claim = CLAIM): readonly Machine[] {
  const demands = loadBalancerDemands(of, 'a', claim, PAIR)
  return PAIR.map((one) => {
    const { configuration, sharedAddresses = [] } = demands.find(({ role }) => role === one.role) ?? {}
    return { ...one, sharedAddresses, delivered: configuration, running: configuration, isHealthy: true }
  })
}

/** Effects, changes and the end of the operation, in words. */
const decided = (object: LoadBalancerObject, seen: Partial<Observed>): string =>
  plan(object, { ...SEEN, ...seen }, NOW)
    .flatMap((action) => {
      if (action.do === 'effect') return [action.name]
      if (action.do === 'operation')
        return [`${action.step}${action.outcome === undefined ? '' : ` ${action.outcome}`}`]
      return ['change', 'ensure', 'remove', 'finalized'].includes(action.do) ? [action.do] : []
    })
    .join(', ')
const statusOf = (object: LoadBalancerObject, seen: Partial<Observed>) =>
  plan(object, { ...SEEN, ...seen }, NOW).flatMap((action) => (action.do === 'status' ? [action.status] : []))[0]

const REFUSED: LoadBalancerObject['status'] = {
  conditions: [
    {
      type: 'Claimed',
      status: 'False',
      reason: 'NameTaken',
      message: 'taken',
      lastTransitionTime: '',
      observedGeneration: 1,
    },
  ],
}

test.each([
  ['made with kubectl: gets its operation', balancer({}), {}, 'change'],
  ['deleted with kubectl: gets its operation', balancer({ metadata: DELETING.metadata }), {}, 'change'],
  ['of no account', CREATING, { accountId: undefined, claim: undefined }, 'claimed failed'],
  ['without its network: waits', CREATING, { claim: undefined, hasNetwork: false }, 'claimed'],
  ['without a claim: claims', CREATING, { claim: undefined }, 'claim, claimed'],
  [
    'whose claim was refused',
    balancer({ spec: { operation: stanza('load_balancer.create') }, status: REFUSED }),
    { claim: undefined },
    'claimed failed',
  ],
  ['without machines: makes both', CREATING, {}, 'ensure, ensure, machines'],
  ['with a public IPv6 address: is led to by it first', CREATING, { claim: PUBLIC }, 'route, machines'],
  ['that is led to by it: makes both', CREATING, { claim: PUBLIC, ...ROUTED }, 'ensure, ensure, machines'],
  ['with one machine: waits for its peer', CREATING, { machines: [machine('a')] }, 'ensure, machines'],
  ['with both: tells them what to run', CREATING, { machines: PAIR }, 'deliver, deliver, machines'],
  ['that runs: is made', CREATING, { machines: settled(CREATING) }, 'applied succeeded'],
  [
    'that is not made in time',
    balancer({ spec: { operation: stanza('load_balancer.create', NOW.toISOString()) } }),
    { machines: PAIR },
    'machines failed',
  ],
  [
    'that was not made: is left as it is',
    balancer({
      spec: { operation: stanza('load_balancer.create') },
      status: { operation: ended('failed') },
    }),
    { machines: PAIR },
    '',
  ],
  ['that runs as it shall: nothing', RUNNING, { machines: settled(RUNNING) }, ''],
  [
    'that was configured: tells both, and begins nothing',
    balancer({ spec: { ...RUNNING.spec, frontends: [] }, status: RUNNING.status }),
    { machines: settled(RUNNING) },
    'deliver, deliver',
  ],
  [
    'with public addresses that runs as it shall: nothing',
    RUNNING,
    { claim: PUBLIC, ...ROUTED, machines: settled(RUNNING, PUBLIC) },
    '',
  ],
  [
    'whose public IPv6 address this process has not led to it: does so',
    RUNNING,
    { claim: PUBLIC, machines: settled(RUNNING, PUBLIC) },
    'route',
  ],
  ['that was renamed', RUNNING, { machines: settled(RUNNING), claim: { ...CLAIM, name: 'old' } }, 'claim'],
  ['with a certificate of nobody', RUNNING, { machines: settled(RUNNING), unusedCertificates: ['c'] }, 'drop'],
  ['whose machine has gone: makes it anew', RUNNING, { machines: settled(RUNNING).slice(1) }, 'ensure'],
  [
    'whose machine is broken for long: exchanges that one',
    RUNNING,
    {
      machines: settled(RUNNING).map((one) =>
        one.role === 'b' ? { ...one, isHealthy: false, judgedSince: '2025-12-31T23:00:00Z' } : one,
      ),
    },
    'remove',
  ],
  [
    'that is deleted through the API: is deleted in Kubernetes first',
    balancer({ spec: { operation: stanza('load_balancer.delete') } }),
    { machines: PAIR },
    'remove',
  ],
  ['that goes: its machines first', DELETING, { machines: PAIR }, 'remove, remove, machines'],
  ['whose machines have gone: gives back what it has', DELETING, {}, 'release, released succeeded, finalized'],
] as const)('one %s', (_what, object, seen, expected) =>
  expect(decided(object, seen as Partial<Observed>)).toBe(expected),
)

describe('its status', () => {
  test('says that a configuration is applied when both run it, and only then', () => {
    const both = settled(RUNNING)
    expect(statusOf(RUNNING, { machines: both })).toMatchObject({ isHealthy: true, applied: firstNumber(RUNNING.spec) })
    const late = both.map((one) => (one.role === 'b' ? { ...one, running: undefined } : one))
    expect(statusOf(RUNNING, { machines: late })).toMatchObject({ isHealthy: false, applied: undefined })
  })

  test('says that nobody has its addresses', () => {
    const says = (a: 'master' | 'backup', b: 'master' | 'backup') => {
      const reports = settled(RUNNING).map((one) => ({
        ...one,
        report: { services: {}, keepalived: { state: one.role === 'a' ? a : b } },
      }))
      return statusOf(RUNNING, { machines: reports })
    }
    expect(says('backup', 'master')).toMatchObject({ isHealthy: true, healthDetail: '' })
    expect(says('backup', 'backup')).toMatchObject({ isHealthy: false, healthDetail: 'No machine has its addresses' })
  })

  test('believes of a report what the spec has, and no more', () => {
    const servers = [
      ['backend.web', 'one', 'up', 0, 0, 0, 0],
      ['backend.web', 'forged', 'up', 0, 0, 0, 0],
      ['backend.other', 'one', 'down', 0, 0, 0, 0],
    ] as const
    const report = { services: {}, keepalived: { state: 'master' }, haproxy: { frontends: [], servers } } as const
    const machines = [machine('a'), machine('b', { report: structuredClone(report) as unknown as Machine['report'] })]
    const { nodes, members } = reportedOf(RUNNING, machines)
    expect(nodes?.map(({ role }) => role)).toEqual(['standby', 'active'])
    expect(members).toEqual([{ backend: 'web', id: 'one', isHealthy: true }])
  })
})

test('each machine knows the other, and the first comes first', () => {
  const [a, b] = (['a', 'b'] as const).map(
    (role) => loadBalancerDocument(RUNNING, 'a', { claim: CLAIM, machines: PAIR, role }, [])?.keepalived?.config ?? '',
  )
  expect(a).toContain('unicast_src_ip 10.0.0.2')
  expect(a).toContain('    10.0.0.3\n')
  expect(b).toContain('unicast_src_ip 10.0.0.3')
  expect([a, b].map((text) => /^ {2}priority (\d+)/m.exec(text ?? '')?.[1])).toEqual(['200', '100'])
  expect(a).toContain('10.0.0.9/24 dev @IF:52:54:00:00:00:02@')
})

describe('public addresses', () => {
  const config =
    loadBalancerDocument(RUNNING, 'a', { claim: PUBLIC, machines: PAIR, role: 'a' }, [])?.keepalived?.config ?? ''

  test('leave by the public interface', () =>
    expect(config).toContain('0.0.0.0/0 via 198.18.0.1 dev @IF:52:54:00:00:00:0f@ table 100'))

  test('of both protocols are at the active machine, and of no separate network', () => {
    expect(config).toContain('    198.18.0.9/16 dev @IF:52:54:00:00:00:0f@\n')
    expect(config).toContain('    2001:db8:0:5::1/128 dev @IF:52:54:00:00:00:0f@ preferred_lft 0\n')
  })

  test('are those that both machines may speak for', () =>
    expect(
      loadBalancerDemands(RUNNING, 'a', PUBLIC, PAIR).map(({ sharedAddresses }) => sharedAddresses.slice(2)),
    ).toEqual(Array.from({ length: 2 }, () => [{ address: '198.18.0.9' }, { address: '2001:db8:0:5::1' }])))

  test('are those to which connections are opened from outside; a balancer without any is not reached there', () => {
    const rulesOf = (claim: typeof CLAIM) =>
      loadBalancerDocument(RUNNING, 'a', { claim, machines: PAIR, role: 'a' }, [])?.nftables ?? ''
    const begun = (claim: typeof CLAIM) => /chain begun \{\n([^}]*)\n {2}\}/.exec(rulesOf(claim))?.[1]?.split(/\n? {4}/)
    expect(begun(PUBLIC)).toEqual(['', 'ip daddr 198.18.0.9 accept', 'ip6 daddr 2001:db8:0:5::1 accept', 'drop'])
    expect(begun(CLAIM)).toEqual(['', 'drop'])
    expect(rulesOf(CLAIM)).toContain('iifname "@IF:52:54:00:00:00:0f@" tcp')
  })

  test('are in its status', () =>
    expect(statusOf(RUNNING, { claim: PUBLIC, machines: settled(RUNNING, PUBLIC) })).toMatchObject({
      publicIpv4: '198.18.0.9',
      publicIpv6: '2001:db8:0:5::1',
    }))
})
