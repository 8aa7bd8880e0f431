/** The checker of what guests use finds what two of them have at once, whether or not any object still names them. */
import { expect, it } from 'vitest'
import type { KubeObject } from '../../embedded/kubernetes/core/object.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { Instance, type InstanceSpec, nodeNamespace } from '../../resources/instance/index.ts'
import { instanceSpec } from '../agents/node/instance-spec.ts'
import type { Host } from './hosts.ts'
import { watchUses } from './uses.ts'

const CORES = 3
const ADDRESS = { prefix: 28, gateway: '198.51.100.1' }
const specOf = (server: string, changes: Partial<InstanceSpec> = {}): InstanceSpec => ({
  ...instanceSpec({ hostname: server }),
  server: { namespace: 'acct-1', name: server, uid: server },
  cores: 1,
  interfaces: [{ kind: 'public', macAddress: `mac of ${server}` }],
  ...changes,
})
/** Guests by host and server. */
function look(guests: Readonly<Record<string, Readonly<Record<string, InstanceSpec>>>>): readonly string[] {
  const uses = watchUses(memoryStorage(), CORES)
  const hosts = Object.entries(guests).map(([host, specs]) => {
    for (const [name, spec] of Object.entries(specs))
      void uses.storage.append({
        revision: 1,
        storageKey: `${Instance.group}/${Instance.plural}`,
        key: `${nodeNamespace(host)}/${name}`,
        // what the watch reads of it
        object: { apiVersion: '', kind: Instance.kind, metadata: { name }, spec } as unknown as KubeObject,
      })
    const running = () =>
      Object.entries(specs).map(([name, { interfaces }]) => ({
        name,
        interfaces: interfaces.map(({ portName = name }) => portName),
      }))
    return { name: host, machine: { running } } as unknown as Host // what the watch reads of it
  })
  return uses.look(hosts)
}

it('nothing of guests that have their own, nor of one that is on two hosts while it moves', () => {
  const web = specOf('web')
  expect(
    look({ a1: { web, db: specOf('db') }, a2: { web }, b1: { other: specOf('other', { hostname: 'web' }) } }),
  ).toEqual([])
})

const address = (value: string): Partial<InstanceSpec> => ({
  interfaces: [{ kind: 'public', macAddress: value, ipv4: { ...ADDRESS, address: value } }],
})
it.each<readonly [string, Partial<InstanceSpec>, Partial<InstanceSpec>, readonly string[]]>([
  ['a host name in one zone', { hostname: 'web' }, { hostname: 'web' }, ['hostname web of acct-1 in zone-a is']],
  [
    'an address, and its MAC address',
    address('198.51.100.2'),
    address('198.51.100.2'),
    ['MAC address 198.51.100.2 is', '198.51.100.2 is'],
  ],
  [
    'a prefix',
    { interfaces: [{ kind: 'public', macAddress: 'one', routedPrefixes: ['2001:db8::/64'] }] },
    { interfaces: [{ kind: 'public', macAddress: 'other', ipv6: { ...ADDRESS, address: '2001:db8::1', prefix: 64 } }] },
    ['2001:db8::/64 is'],
  ],
  [
    'a port',
    { interfaces: [{ kind: 'private', macAddress: 'one', portName: 'p' }] },
    { interfaces: [{ kind: 'private', macAddress: 'other', portName: 'p' }] },
    ['port p is'],
  ],
])('%s that two have', (_what, one, other, expected) => {
  expect(look({ a1: { one: specOf('one', one) }, a2: { other: specOf('other', other) } })).toEqual(
    expected.map((what) => `${what} used by the guests one and other at once`),
  )
})

it('more cores than a host has', () => {
  expect(look({ a1: { one: specOf('one', { cores: CORES }), other: specOf('other') } })).toEqual([
    `the guests on a1 use ${CORES + 1} of ${CORES} cores`,
  ])
})
