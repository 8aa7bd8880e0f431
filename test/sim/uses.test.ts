/** The checker of what guests use finds what two of them have at once, whether or not any object still names them. */
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../embedded/kubernetes/core/object.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { Instance, type InstanceSpec, nodeNamespace } from '../../resources/instance/index.ts'
import { instanceSpec } from '../agents/node/instance-spec.ts'
import type { Host } from './hosts.ts'
import { addressUse, hostnameUse, roomUse, type Uses, useOf, watchUses } from './uses.ts'

const CORES = 3
const ADDRESS = { prefix: 28, gateway: '198.51.100.1' }
const specOf = (server: string, changes: Partial<InstanceSpec> = {}): InstanceSpec => ({
  ...instanceSpec({ hostname: server }),
  server: { namespace: 'acct-1', name: server, uid: server },
  cores: 1,
  interfaces: [{ kind: 'public', macAddress: `mac of ${server}` }],
  ...changes,
})
type Guests = Readonly<Record<string, Readonly<Record<string, InstanceSpec>>>>

/** Guests by host and server. The stores go back before the later ones, and know this of the earlier ones. */
function look(guests: Guests, later: Guests = {}, known: readonly string[] = []): readonly string[] {
  const uses = watchUses(memoryStorage(), CORES)
  write(uses, guests)
  if (Object.keys(later).length > 0) uses.goBack(new Set(known))
  write(uses, later)
  const hosts = [guests, later].flatMap((each) =>
    Object.entries(each).map(([host, specs]) => {
      const running = () =>
        Object.entries(specs).map(([name, { interfaces }]) => ({
          name,
          interfaces: interfaces.map(({ portName = name }) => portName),
        }))
      return { name: host, machine: { running } } as unknown as Host // what the watch reads of it
    }),
  )
  return uses.look(hosts)
}

function write(uses: Uses, guests: Guests): void {
  for (const [host, specs] of Object.entries(guests))
    for (const [name, spec] of Object.entries(specs))
      void uses.storage.append({
        revision: 1,
        storageKey: `${Instance.group}/${Instance.plural}`,
        key: `${nodeNamespace(host)}/${name}`,
        // what the watch reads of it
        object: { apiVersion: '', kind: Instance.kind, metadata: { name }, spec } as unknown as KubeObject,
      })
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
const prefixed = (macAddress: string, prefix: string): Partial<InstanceSpec> => ({
  interfaces: [{ kind: 'public', macAddress, routedPrefixes: [prefix] }],
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

describe('of what stores that went back know no more', () => {
  const [one, other] = [
    specOf('one', { ...prefixed('a', '2001:db8::/64'), hostname: 'web' }),
    specOf('other', { ...prefixed('b', '2001:db8::/64'), hostname: 'web' }),
  ]
  const [name, prefix] = [hostnameUse('web', 'acct-1', 'zone-a'), addressUse('2001:db8::1')]
  const both = [
    `${name} is used by the guests one and other at once`,
    `${prefix} is used by the guests one and other at once`,
  ]
  const ofOne = (use: string) => useOf(one.server, use)

  it.each<readonly [string, readonly string[], readonly string[]]>([
    ['what neither knows may be given again', [], []],
    ['what one of them knows may not', [ofOne(name), ofOne(prefix)], both],
    ['each value by itself', [ofOne(prefix)], both.slice(1)],
    ['that others have it too does not count', [useOf(other.server, name), useOf(other.server, prefix)], []],
  ])('%s', (_what, known, expected) => {
    expect(look({ a1: { one } }, { a2: { other } }, known)).toEqual(expected)
  })

  it('but not what was given before', () => {
    expect(look({ a1: { one }, a2: { other } }, { a3: { third: specOf('third') } })).toEqual(both)
  })

  it('nor a MAC address or a port, which nobody gives in turn', () => {
    const mine: Partial<InstanceSpec> = { interfaces: [{ kind: 'private', macAddress: 'one', portName: 'p' }] }
    expect(look({ a1: { one: specOf('one', mine) } }, { a2: { other: specOf('other', mine) } })).toEqual([
      'port p is used by the guests one and other at once',
      'MAC address one is used by the guests one and other at once',
    ])
  })

  it.each<readonly [string, Guests, readonly string[], readonly string[]]>([
    ['room where a guest was forgotten', { a1: { other: specOf('other') } }, [], []],
    [
      'and not where it is known',
      { a1: { other: specOf('other') } },
      [useOf(one.server, roomUse('a1'))],
      [`the guests on a1 use ${CORES + 1} of ${CORES} cores`],
    ],
  ])('%s', (_what, later, known, expected) => {
    expect(look({ a1: { one: specOf('one', { cores: CORES }) } }, later, known)).toEqual(expected)
  })
})
