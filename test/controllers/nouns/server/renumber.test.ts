import { describe, expect, test } from 'vitest'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import type { HeldAddress } from '../../../../db/public-pool/index.ts'
import { after, type Changes, ended, instance, NOW, started, actionLines, working, type World } from './worlds.ts'

const OLD: HeldAddress = {
  use: 'server_ipv6_prefix',
  address: '2001:db8:0:1::1',
  prefix: 64,
  gateway: 'fe80::1',
  isCurrent: true,
  isDraining: false,
}
const NEW: HeldAddress = { ...OLD, address: '2001:db8:1:1::1' }
const IPV4: HeldAddress = {
  use: 'server_ipv4',
  address: '203.0.113.2',
  prefix: 24,
  gateway: '203.0.113.1',
  isCurrent: true,
  isDraining: false,
}
const DRAINING = { ...OLD, isDraining: true }
const REPLACED = [NEW, { ...DRAINING, isCurrent: false }]
const [OLD_INTERFACE, NEW_INTERFACE] = [
  {
    macAddress: '52:54:00:00:00:01',
    kind: 'public' as const,
    ipv6: { address: OLD.address, prefix: 64, gateway: 'fe80::1' },
    routedPrefixes: ['2001:db8:0:1::/64'],
  },
  {
    macAddress: '52:54:00:00:00:01',
    kind: 'public' as const,
    ipv6: { address: NEW.address, prefix: 64, gateway: 'fe80::1' },
    routedPrefixes: ['2001:db8:1:1::/64', '2001:db8:0:1::/64'],
  },
]

const withAddresses = (world: World, addresses: readonly HeldAddress[]): World => ({
  ...world,
  observed: { ...world.observed, claims: world.observed.claims && { ...world.observed.claims, addresses } },
})
const renumbering = (
  addresses: readonly HeldAddress[],
  observed: Partial<World['observed']> = { instance: instance({ interfaces: [OLD_INTERFACE] }, {}) },
  status: Partial<World['server']['status'] & object> = {},
) => withAddresses(working('server.renumber_ipv6', { observed, status }), addresses)
const lines = ({ server, observed }: World, now = NOW) => actionLines(plan(server, observed, now))
const statusOf = ({ server, observed }: World) =>
  plan(server, observed, NOW).find((action) => action.do === 'status')?.status
const refused = (observedGeneration: number) => ({
  conditions: [
    {
      type: 'Renumbered',
      status: 'False' as const,
      reason: 'NoFreeAddress',
      message: 'Nothing is free.',
      lastTransitionTime: NOW.toISOString(),
      observedGeneration,
    },
  ],
})

describe('renumbering', () => {
  test.each<readonly [why: string, world: World, expected: readonly string[]]>([
    [
      'takes another prefix first',
      renumbering([DRAINING]),
      ['effect renumber', 'operation op-1 routed', 'state started', 'wait for another prefix'],
    ],
    [
      'then tells the host, and the guest runs on',
      renumbering(REPLACED),
      ['ensure Instance running 1', 'operation op-1 announced', 'state started'],
    ],
    [
      'waits until the host has seen it',
      renumbering(REPLACED, { instance: instance({ interfaces: [NEW_INTERFACE] }, { observedGeneration: 0 }) }),
      ['operation op-1 announced', 'state started'],
    ],
    [
      'ends when the host has seen it',
      renumbering(REPLACED, { instance: instance({ interfaces: [NEW_INTERFACE] }, {}) }),
      ['operation op-1 announced succeeded', 'state started'],
    ],
    [
      'ends at once when there is no host to tell',
      renumbering(REPLACED, { instance: undefined }),
      ['operation op-1 announced succeeded', 'state started'],
    ],
    [
      'fails when nothing is free, and changes nothing',
      renumbering([DRAINING], undefined, refused(1)),
      ['operation op-1 routed failed: Nothing is free.', 'state started'],
    ],
    [
      'asks again when that was said of an earlier attempt',
      renumbering([DRAINING], undefined, refused(0)),
      ['effect renumber', 'operation op-1 routed', 'state started', 'wait for another prefix'],
    ],
    [
      'fails without a prefix',
      renumbering([IPV4]),
      ['operation op-1 routed failed: The server has no IPv6 prefix.', 'state started'],
    ],
    [
      'leaves a stopped server stopped',
      renumbering(
        REPLACED,
        { instance: instance({ power: 'stopped', interfaces: [NEW_INTERFACE] }, { state: 'stopped' }) },
        { state: 'stopped' },
      ),
      ['operation op-1 announced succeeded', 'state stopped'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('fails at its deadline and leaves the guest as it is', () =>
    expect(
      lines(
        renumbering(REPLACED, { instance: instance({ interfaces: [NEW_INTERFACE] }, { observedGeneration: 0 }) }),
        after(1_800),
      ).at(-2),
    ).toContain('op-1 announced failed: It was not done in time'))
})

describe('a machine that the platform runs', () => {
  const standing = (addresses: readonly HeldAddress[], changes: Pick<Changes, 'spec' | 'status'>) =>
    withAddresses(
      started({ ...changes, observed: { instance: instance({ interfaces: [OLD_INTERFACE] }, {}) } }),
      addresses,
    )
  const managedBy = 'edge:e'
  const { stanza, progress } = ended('server.renumber_ipv6')
  const refusedBefore = standing([DRAINING], {
    spec: { managedBy, operation: stanza },
    status: { operation: { ...progress, status: 'failed', finishedAt: NOW.toISOString() } },
  })
  const begins = ({ server, observed }: World, now = NOW) =>
    plan(server, observed, now).flatMap((action) => (action.do === 'change' ? [action.patch['spec']] : []))

  test('is given another prefix by the platform once its pool is drained', () => {
    const operation = { kind: 'server.renumber_ipv6', actor: 'system:controllers' }
    expect(begins(standing([DRAINING], { spec: { managedBy } }))).toMatchObject([{ operation }])
    expect(begins(standing([OLD], { spec: { managedBy } }))).toEqual([])
    expect(begins(standing([DRAINING], {}))).toEqual([])
  })

  test('is so again five minutes after nothing was free', () => {
    expect(begins(refusedBefore, after(299))).toEqual([])
    expect(lines(refusedBefore).at(-1)).toBe('wait for another prefix')
    expect(begins(refusedBefore, after(300))).toHaveLength(1)
  })
})

describe('the addresses of a server', () => {
  const running = (addresses: readonly HeldAddress[]) => withAddresses(started(), addresses)

  test('are sent to its host', () => {
    const action = plan(running([IPV4, ...REPLACED]).server, running([IPV4, ...REPLACED]).observed, NOW).find(
      ({ do: what }) => what === 'ensure',
    )
    expect(action).toMatchObject({
      draft: {
        spec: {
          power: 'running',
          incarnation: 1,
          interfaces: [{ ...NEW_INTERFACE, ipv4: { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1' } }],
        },
      },
    })
  })

  test('are in its status, with what it may exchange', () => {
    expect(statusOf(running([IPV4, DRAINING]))).toMatchObject({
      publicIpv4: '203.0.113.2',
      publicIpv6: '2001:db8:0:1::1',
      publicIpv6Prefix: '2001:db8:0:1::/64',
      ipv6RenumberAvailable: true,
    })
    expect(statusOf(running([...REPLACED]))).toMatchObject({
      publicIpv6: '2001:db8:1:1::1',
      publicIpv6Prefix: '2001:db8:1:1::/64',
      publicIpv4: undefined,
      ipv6RenumberAvailable: undefined,
    })
  })

  test('of a draining IPv4 pool stay', () =>
    expect(statusOf(running([{ ...IPV4, isDraining: true }]))).toMatchObject({
      publicIpv4: '203.0.113.2',
      ipv6RenumberAvailable: undefined,
    }))
})
