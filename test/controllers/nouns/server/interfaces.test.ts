import { describe, expect, test } from 'vitest'
import { fingerprintOf, networkPortsOf } from '../../../../controllers/nouns/server/network-ports.ts'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import type { Observed } from '../../../../controllers/nouns/server/observed.ts'
import type { InstanceStatus } from '../../../../resources/instance/index.ts'
import { actionLines, after, instance, newborn, NOW, started, working, type World } from './worlds.ts'

const lines = ({ server, observed }: World, now = NOW) => actionLines(plan(server, observed, now))

const joined = {
  id: 'port-1',
  networkId: 'back',
  networkUid: 'uid-back',
  slot: 1,
  macAddress: '52:54:00:00:00:02',
  ipv4Address: '10.1.0.2',
  ipv6Address: 'fd00::2',
  ipv4Cidr: '10.1.0.0/24',
  ipv6Prefix: 'fd00::/64',
  isLeaving: false,
  createdAt: NOW.toISOString(),
} as const
const onHost = {
  portName: 'port-1',
  slot: 1,
  macAddress: '52:54:00:00:00:02',
  kind: 'private' as const,
  ipv4: { address: '10.1.0.2', prefix: 24, gateway: '10.1.0.1' },
  ipv6: { address: 'fd00::2', prefix: 64, gateway: 'fd00::1' },
}
const publicOne = { macAddress: '52:54:00:00:00:01', kind: 'public' as const }
const claims = (...interfaces: NonNullable<NonNullable<Observed['claims']>['interfaces']>): Observed['claims'] => {
  const bare = newborn().observed.claims
  if (bare === undefined) throw new Error('it has claims')
  return { ...bare, ...(interfaces.length === 0 ? {} : { interfaces }) }
}
const networks = [{ networkId: 'back' }]
const guest = (interfaces: readonly string[], status: Partial<InstanceStatus> = {}) => ({
  interfaces: [...interfaces],
  ...status,
})
/** On a host that simulates, so that no network has to follow. */
const attaching = (observed: Partial<Observed>, spec: object = { networks }) =>
  working('server.attach_network', { spec, observed })

describe('attaching a network', () => {
  test.each<readonly [string, World, readonly string[]]>([
    [
      'claims what is not claimed yet',
      attaching({ claims: claims() }),
      ['effect join', 'operation op-1 claimed', 'state started', 'wait for addresses in the network'],
    ],
    [
      'then tells the host and the network',
      attaching({ claims: claims(joined) }),
      [
        'ensure Instance running 1',
        'effect program',
        'operation op-1 attached',
        'state started',
        'wait for the host to take over the interfaces',
      ],
    ],
    [
      'waits until the guest has the interface',
      attaching({ claims: claims(joined), instance: instance({ interfaces: [publicOne, onHost] }, guest(['uid-1'])) }),
      ['effect program', 'operation op-1 attached', 'state started', 'wait for the guest to take the interface'],
    ],
    [
      'waits until the hosts follow the network',
      attaching({
        claims: claims(joined),
        instance: instance({ interfaces: [publicOne, onHost] }, guest(['uid-1', 'port-1'])),
      }),
      ['effect program', 'operation op-1 applied', 'state started', 'wait for the host to follow the network'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('leaves the guest alone when it is not done in time', () =>
    expect(lines(attaching({ claims: claims() }), after(600))).toContain(
      'operation op-1 claimed failed: It was not done in time: still waiting for addresses in the network.',
    ))
})

/** The network has what it must have of the server. */
function programmed({ server, observed }: World): World {
  const ports = networkPortsOf({ server, observed, now: NOW })
  if (ports === undefined) throw new Error('the network has something of it')
  const fingerprint = fingerprintOf(ports)
  const networkPorts = { zone: ports.zone, fingerprint, sequence: 1, isInstalled: true }
  return {
    server: { ...server, status: { ...server.status, networkPorts } as NonNullable<World['server']['status']> },
    observed: { ...observed, programmedAs: fingerprint },
  }
}

describe('detaching a network', () => {
  const known = { interfaces: [{ id: 'port-1', networkId: 'back', macAddress: '', ipv4Address: '', ipv6Address: '' }] }
  const leaving = { ...joined, isLeaving: true }
  const detaching = (observed: Partial<Observed>) =>
    working('server.detach_network', { spec: { networks: [] }, status: known, observed })
  test.each<readonly [string, World, readonly string[]]>([
    [
      'marks what is not wanted any more',
      detaching({ claims: claims(joined), instance: instance({ interfaces: [publicOne, onHost] }, guest(['port-1'])) }),
      ['effect join', 'effect program', 'operation op-1 claimed', 'state started', 'wait for addresses in the network'],
    ],
    [
      'then takes it from the guest',
      detaching({
        claims: claims(leaving),
        instance: instance({ interfaces: [publicOne, onHost] }, guest(['port-1'])),
      }),
      [
        'ensure Instance running 1',
        'effect program',
        'operation op-1 detached',
        'state started',
        'wait for the host to take over the interfaces',
      ],
    ],
    [
      'waits for the word of the host',
      detaching({ claims: claims(leaving), instance: instance({}, guest(['uid-1', 'port-1'])) }),
      ['effect program', 'operation op-1 detached', 'state started', 'wait for the guest to release the interface'],
    ],
    [
      'keeps the addresses while the port may be in the network',
      detaching({ claims: claims(leaving), instance: instance({}, guest(['uid-1'])) }),
      ['effect program', 'operation op-1 detached', 'state started', 'wait for the guest to release the interface'],
    ],
    [
      'gives the addresses back when the guest and the network have let go',
      programmed(detaching({ claims: claims(leaving), instance: instance({}, guest(['uid-1'])) })),
      ['effect leave', 'operation op-1 detached', 'state started', 'wait for the guest to release the interface'],
    ],
    [
      'ends when nothing is left',
      detaching({ claims: claims(), instance: instance({}, guest(['uid-1'])) }),
      ['operation op-1 applied succeeded', 'state started'],
    ],
  ])('%s', (_why, world, expected) => expect(lines(world)).toEqual(expected))

  test('gives nothing back while a host has the guest that has not acted', () => {
    const old = instance({}, { ...guest(['uid-1']), observedGeneration: 1 }, 'op-0', 2)
    expect(lines(programmed(detaching({ claims: claims(leaving), instance: old })))).not.toContain('effect leave')
  })
})

describe('an edit with kubectl', () => {
  test('of networks begins the operation that it amounts to', () => {
    const kinds = (world: World) => lines(world).filter((line) => line.startsWith('change'))
    expect(kinds(started({ spec: { networks }, observed: { claims: claims() } }))).toEqual([
      'change {"operation":{"kind":"server.attach_network","actor":"user:kubectl-edit"}}',
    ])
    const interfaces = [{ id: 'port-1', networkId: 'back', macAddress: '', ipv4Address: '', ipv6Address: '' }]
    expect(kinds(started({ status: { interfaces }, observed: { claims: claims(joined) } }))).toEqual([
      'change {"operation":{"kind":"server.detach_network","actor":"user:kubectl-edit"}}',
    ])
  })

  test('that was refused is not tried again before it is another', () => {
    const condition = {
      type: 'Joined',
      status: 'False',
      reason: 'InUse',
      message: 'No.',
      lastTransitionTime: '',
    } as const
    const refused = (observedGeneration: number) =>
      started({
        spec: { networks },
        status: { conditions: [{ ...condition, observedGeneration }] },
        observed: { claims: claims() },
      })
    expect(lines(refused(1)).join()).not.toContain('attach_network')
    expect(lines(refused(0)).join()).toContain('attach_network')
  })

  test('does not take what a request has claimed before it has written it', () => {
    expect(lines(started({ observed: { claims: claims(joined) } }))).toEqual(['state started'])
  })
})

test('a new server waits for its networks, and is claimed with them', () => {
  const waiting = newborn({ observed: { claims: undefined, networks: { known: [], missing: ['back'] } } })
  expect(lines(waiting)).toContain('wait for the network back')
  const known = [{ networkId: 'back', networkUid: 'uid-back' }]
  const ready = newborn({ observed: { claims: undefined, networks: { known, missing: [] } } })
  const claim = plan(ready.server, ready.observed, NOW).find((action) => action.do === 'effect')
  expect(claim).toMatchObject({ name: 'claim', input: { networks: known } })
})
