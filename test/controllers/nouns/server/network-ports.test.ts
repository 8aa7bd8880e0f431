import { describe, expect, test } from 'vitest'
import { openSimulatedOvn } from '../../../../controllers/network/ovn/simulated-ovn.ts'
import { guestPort } from '../../../../controllers/network/ovn/names.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { plan } from '../../../../controllers/nouns/server/plan.ts'
import type { NetworkPorts } from '../../../../controllers/nouns/server/actions.ts'
import {
  unprogram,
  programEffect,
  type ProgrammedServers,
} from '../../../../controllers/nouns/server/network-effect.ts'
import { type Firewall, firewallFingerprint, NO_FIREWALL } from '../../../../domain/server/firewall.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import { storedFirewall, toFirewallView } from '../../../../resources/server/index.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import {
  actionLines,
  after,
  applied,
  instance,
  newborn,
  NOW,
  operation,
  started,
  working,
  type World,
} from './worlds.ts'

const closed: Firewall = { ...NO_FIREWALL, enabled: true }
const hostFeatures = ['public-network', 'metadata-service']

/** A server that is to be filtered, as far as the status says. */
const filtered = (status: Partial<ServerStatus> = {}, spec: Partial<ServerSpec> = {}): World =>
  working('server.firewall', {
    spec: { firewall: storedFirewall(closed), ...spec },
    status,
    observed: { hostFeatures },
  })

const effectOf = ({ server, observed }: World): NetworkPorts | undefined =>
  plan(server, observed, NOW).flatMap((action) =>
    action.do === 'effect' && action.name === 'program' ? [action.input] : [],
  )[0]
const lines = ({ server, observed }: World, now = NOW) => actionLines(plan(server, observed, now))
const statusOf = ({ server, observed }: World): Partial<ServerStatus> =>
  plan(server, observed, NOW).find((action) => action.do === 'status')?.status ?? {}

/** A network that has the server's public port. */
async function openNetwork() {
  const ovn = openSimulatedOvn()
  await ovn.apply({
    zone: 'zone-1',
    owner: 'Zone/zone-1',
    rows: [{ ...guestPort('uid-1'), columns: { name: 'uid-1' } }],
  })
  return ovn
}

/** Plans and carries out until the server rests, in this network. */
async function settle(
  world: World,
  parts: Pick<Parts, 'ovn'>,
  programmed: ProgrammedServers = new Map(),
): Promise<World> {
  const program = programEffect({ log: silentLog, clock: systemClock, ...parts } as Parts, programmed)
  let now = world
  for (let turn = 0; turn < 5; turn++) {
    const { server, observed } = now
    const effect = effectOf(now)
    const next = applied(now, plan(server, observed, NOW), NOW)
    if (next === 'gone') throw new Error('the server went')
    const report = effect && (await program(effect, server))
    const status = { ...next.server.status, ...report?.status } as ServerStatus
    const programmedAs = programmed.get('uid-1')
    now = { server: { ...next.server, status }, observed: { ...next.observed, programmedAs } }
  }
  return now
}

describe('the firewall of a server', () => {
  test('is sent to the network, and the operation ends when the hosts follow', async () => {
    const ovn = await openNetwork()
    expect(lines(filtered())).toEqual([
      'effect program',
      'operation op-1 done',
      'state started',
      'wait for the host to filter by the firewall',
    ])
    const done = await settle(filtered(), { ovn })
    expect(done.server.status?.operation?.status).toBe('succeeded')
    expect(toFirewallView(done.server)).toMatchObject({
      enabled: true,
      generation: 1,
      applied_generation: 1,
      applied_at: NOW.toISOString(),
    })
    expect(effectOf(done)).toBeUndefined()
  })

  test('counts as applied only when every host that the server is on has it', async () => {
    const ovn = await openNetwork()
    const waiting = await settle(filtered(), { ovn })
    expect(waiting.server.status?.networkPorts?.isInstalled).toBe(true)
    ovn.hold('node-1')
    const other = { ...closed, defaultOutbound: 'drop' as const }
    const next = await settle(filtered(waiting.server.status, { firewall: storedFirewall(other) }), { ovn })
    expect(toFirewallView(next.server)).toMatchObject({ generation: 2, applied_generation: 1 })
    expect(next.server.status?.operation?.status).toBe('running')
    ovn.release('node-1')
    expect(toFirewallView((await settle(next, { ovn })).server)).toMatchObject({ generation: 2, applied_generation: 2 })
  })

  test('that was switched off is off once hosts follow, whatever else is written meanwhile', async () => {
    const inner = await openNetwork()
    const on = await settle(filtered(), { ovn: inner })
    inner.hold('node-1')
    let later = 0
    const ovn = {
      ...inner,
      async apply(bundle: Parameters<typeof inner.apply>[0]) {
        const { sequence } = await inner.apply(bundle)
        return { sequence: sequence + later++ }
      },
    }
    const off = filtered(on.server.status, { firewall: storedFirewall(NO_FIREWALL) })
    const programmed: ProgrammedServers = new Map()
    const waiting = await settle(off, { ovn }, programmed)
    expect(waiting.server.status?.operation?.status).toBe('running')
    inner.release('node-1')
    const done = await settle(waiting, { ovn }, programmed)
    expect(done.server.status?.operation?.status).toBe('succeeded')
  })

  test('is not applied while the network does not answer, and everything else goes on', async () => {
    const ovn = await openNetwork()
    ovn.fail('lost', 'lost', 'lost', 'lost', 'lost')
    const waiting = await settle(filtered(), { ovn })
    expect(toFirewallView(waiting.server)).toMatchObject({ generation: 1, applied_generation: 0, applied_at: null })
    expect(waiting.server.status?.state).toBe('started')
    expect(toFirewallView((await settle(waiting, { ovn })).server).applied_generation).toBe(1)
  })

  test('is never applied where no network is, unless the host only simulates', async () => {
    expect(toFirewallView((await settle(filtered(), {})).server).applied_generation).toBe(0)
    const simulated = working('server.firewall', {
      spec: { firewall: storedFirewall(closed) },
      observed: { hostFeatures: [] },
    })
    expect(toFirewallView((await settle(simulated, {})).server).applied_generation).toBe(1)
  })

  test('fails at its deadline without touching the guest, and the server shows that it is not applied', () => {
    expect(lines(filtered(), after(600))).toEqual([
      'effect program',
      'operation op-1 done failed: It was not done in time: still waiting for the host to filter by the firewall.',
      'state started',
      'wait for the host to filter by the firewall',
    ])
    expect(statusOf(filtered()).firewall).toMatchObject({ generation: 1, appliedGeneration: 0 })
  })

  test('of a server that never had one is announced to nobody', () => {
    const { status } = started().server
    expect(effectOf(started())).toBeUndefined()
    expect(statusOf(started())).not.toHaveProperty('firewall')
    expect(toFirewallView({ spec: {}, status })).toMatchObject({ enabled: false, generation: 0, applied_generation: 0 })
  })

  test('is the same again when another form of it is written', () => {
    const rule = { direction: 'in', action: 'accept', family: 'any', protocol: 'tcp', comment: '' } as const
    const one = { ...closed, rules: [{ ...rule, portStart: 22, remoteCidrs: ['2001:db8::/32'] }] }
    const other = { ...closed, rules: [{ ...rule, portStart: 22, portEnd: 22, remoteCidrs: ['2001:DB8:0::/32'] }] }
    expect(firewallFingerprint(one)).toBe(firewallFingerprint(other))
    expect(firewallFingerprint(one)).not.toBe(firewallFingerprint(closed))
  })

  test('that was edited with kubectl gets its operation', () => {
    const edited = started({ spec: { firewall: storedFirewall(closed) }, observed: { hostFeatures } })
    expect(lines(edited)).toEqual(['change {"operation":{"kind":"server.firewall","actor":"user:kubectl-edit"}}'])
    const known = { generation: 1, fingerprint: firewallFingerprint(closed), appliedGeneration: 1 }
    const rest = started({ spec: { firewall: storedFirewall(closed) }, status: { firewall: known } })
    expect(lines(rest)).not.toContain('change {"operation":{"kind":"server.firewall","actor":"user:kubectl-edit"}}')
  })

  test('of a server that has no room yet is not applied', () => {
    const newcomer = newborn({ spec: { firewall: storedFirewall(closed) }, observed: { claims: undefined } })
    expect(statusOf(newcomer).firewall).toMatchObject({ generation: 1, appliedGeneration: 0 })
  })

  test('is announced again by a process that has not announced it yet', async () => {
    const ovn = await openNetwork()
    const done = await settle(filtered(), { ovn })
    expect(effectOf({ ...done, observed: { ...done.observed, programmedAs: undefined } })).toBeDefined()
  })

  test('is followed on both nodes while the server moves', () => {
    const { claims } = filtered().observed
    if (claims === undefined) throw new Error('it has claims')
    const target = { operationId: 'op-1', zone: 'zone-1', node: 'node-2' }
    const moving = started({
      spec: { firewall: storedFirewall(closed), operation: operation('server.migrate') },
      observed: { hostFeatures, claims: { ...claims, target }, instance: instance({}, {}) },
    })
    expect(effectOf(moving)?.nodes).toEqual(['node-1', 'node-2'])
  })

  test('goes from the network with its server', async () => {
    const ovn = await openNetwork()
    const row = { table: 'DNS', key: 'web', columns: {} } as const
    await ovn.apply({ zone: 'zone-1', owner: 'Server/uid-1', rows: [row] })
    await ovn.apply({ zone: 'zone-1', owner: 'PublicPort/uid-1', rows: [row] })
    const networkPorts = { zone: 'zone-1', fingerprint: '', sequence: 1, isInstalled: true }
    await unprogram({ ovn } as unknown as Parts, started({ status: { networkPorts } }).server, 'zone-1')
    expect([...ovn.owners.keys()]).toEqual(['zone-1 Zone/zone-1'])
  })
})

describe('an interface of a server', () => {
  const joined = {
    id: 'port-1',
    networkId: 'back',
    networkUid: 'net-uid',
    slot: 1,
    macAddress: '52:54:00:00:00:02',
    ipv4Address: '10.1.0.2',
    ipv6Address: 'fd00::2',
    ipv4Cidr: '10.1.0.0/24',
    ipv6Prefix: 'fd00::/64',
    isLeaving: false,
    createdAt: NOW.toISOString(),
  }

  test('may use the addresses that routers route to it in its network, and no others', () => {
    const { claims } = started().observed
    if (claims === undefined) throw new Error('it has claims')
    const world = started({
      spec: { networks: [{ networkId: 'back' }] },
      observed: {
        hostFeatures,
        claims: { ...claims, interfaces: [joined] },
        routes: [
          { networkId: 'back', destination: '10.9.0.0/16', nextHop: '10.1.0.2' },
          { networkId: 'back', destination: 'fd09::/64', nextHop: 'fd00::2' },
          { networkId: 'back', destination: '10.8.0.0/16', nextHop: '10.1.0.3' },
          { networkId: 'front', destination: '10.7.0.0/16', nextHop: '10.1.0.2' },
        ],
      },
    })
    expect(effectOf(world)?.interfaces[0]?.routed).toEqual(['10.9.0.0/16', 'fd09::/64'])
    const bare = { ...world, observed: { ...world.observed, routes: [] } }
    expect(effectOf(bare)?.interfaces[0]).not.toHaveProperty('routed')
  })
})
