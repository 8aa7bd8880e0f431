import { describe, expect, test } from 'vitest'
import { changesBetween } from '../../changes/kit/judge.ts'
import { routerChanges } from '../../changes/router.ts'
import { Network } from '../../resources/network/index.ts'
import type { RouterSpec } from '../../resources/router/index.ts'
import { worldWith, ZONES } from './world.ts'

const SPEC: RouterSpec = {
  zone: 'z1',
  name: 'out',
  natEnabled: false,
  networkIds: ['a', 'b'],
  staticRoutes: [],
  labels: {},
}
const IDLE = { id: 'out', isDeleting: false, activeOperation: undefined }
const LEAVING = { ...IDLE, isDeleting: true }
const busyWith = (action: string) => ({ ...IDLE, activeOperation: { id: 'op', action } })
const subject = <Facts>(facts: Facts, more: Partial<RouterSpec> = {}) => ({
  accountId: 'acct',
  id: 'out',
  facts,
  spec: { ...SPEC, ...more },
})
const route = (destination: string, nextHop: string) => ({ staticRoutes: [{ destination, nextHop, comment: '' }] })
const change = (name: string) => routerChanges.changes.find((each) => each.name === name)

/** Networks a and b have ranges, and c has claimed none yet. */
const WORLD = worldWith(
  [
    ['a', '10.1.0.0/24', 'fd00:1::/64'],
    ['b', '10.2.0.0/24', 'fd00:2::/64'],
    ['c', undefined, undefined],
  ].map(([name = '', ipv4Cidr, ipv6Prefix]) => [
    Network,
    {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Network',
      metadata: { name, namespace: 'acct-acct' },
      spec: Network.spec.parse({ zone: 'z1', name }),
      status: { ipv4Cidr, ipv6Prefix },
    },
  ]),
)

describe('the changes between two specs', () => {
  test.each<readonly [string, Partial<RouterSpec>, readonly string[]]>([
    ['nothing', {}, []],
    ['the same networks in another order', { networkIds: ['b', 'a'] }, []],
    ['a name', { name: 'in' }, ['rename']],
    ['labels', { labels: { a: 'b' } }, ['label']],
    ['one more network', { networkIds: ['a', 'b', 'c'] }, ['attach_network']],
    ['one network less', { networkIds: ['a'] }, ['detach_network']],
    ['another network instead of one', { networkIds: ['a', 'c'] }, ['attach_network']],
    ['one more network instead of two', { networkIds: ['c'] }, ['attach_network']],
    ['NAT', { natEnabled: true }, ['enable_nat']],
    ['routes', route('10.9.0.0/16', '10.1.0.9'), ['configure']],
    ['everything', { name: 'in', networkIds: [], natEnabled: true }, ['rename', 'detach_network', 'enable_nat']],
  ])('are, with %s', (_what, after, names) => {
    expect(changesBetween(routerChanges, SPEC, { ...SPEC, ...after }).map(({ name }) => name)).toEqual(names)
  })

  test('are none when a route is only written in another form', () => {
    const before = { ...SPEC, ...route('fd09::/64', 'fd00:1::9') }
    expect(changesBetween(routerChanges, before, { ...SPEC, ...route('FD09:0::/64', 'fd00:1:0::9') })).toEqual([])
  })
})

test.each<readonly [string, () => unknown, string]>([
  [
    'made in a zone without networks',
    () => routerChanges.create.allow?.(subject(undefined, { zone: 'bare' }), ZONES),
    'no private',
  ],
  [
    'made with a comment that nobody can read',
    () => routerChanges.readable?.({ ...SPEC, staticRoutes: [{ destination: '', nextHop: '', comment: 'a\u0007' }] }),
    'staticRoutes.0.comment: ',
  ],
  [
    'given a route by nobody',
    () => change('configure')?.allow?.(subject(IDLE, route('10.9.0.0/16', '10.7.0.9')), WORLD),
    "staticRoutes.0.nextHop: is in none of the router's networks",
  ],
  [
    'given a second way outside',
    () => change('configure')?.allow?.(subject(IDLE, { natEnabled: true, ...route('0.0.0.0/0', '10.1.0.9') }), WORLD),
    'staticRoutes.0.destination: is where',
  ],
  [
    'configured while it changes',
    () => change('configure')?.allow?.(subject(busyWith('update')), WORLD),
    'Another operation runs',
  ],
  [
    'given a network while it changes',
    () => change('attach_network')?.allow?.(subject(busyWith('update')), WORLD),
    'Another operation runs',
  ],
  [
    'given a network twice',
    () => change('attach_network')?.allow?.(subject(IDLE, { networkIds: ['a', 'b', 'a'] }), WORLD),
    'at a router already',
  ],
  [
    'given more networks than it may have',
    () =>
      change('attach_network')?.allow?.(
        subject(IDLE, { networkIds: Array.from({ length: 65 }, (_, n) => `n${n}`) }),
        WORLD,
      ),
    'networkIds: a router joins at most 64 networks',
  ],
  [
    'given a network once it is being deleted',
    () =>
      change('attach_network')?.allow?.({ ...subject(LEAVING, { networkIds: ['a', 'b', 'c'] }), before: SPEC }, WORLD),
    'The router is being deleted.',
  ],
  [
    'configured once it is being deleted',
    () => change('configure')?.allow?.(subject(LEAVING), WORLD),
    'The router is being deleted.',
  ],
  [
    'deleted while it changes',
    () => routerChanges.remove.allow?.(subject(busyWith('update')), ZONES),
    'Another operation runs',
  ],
])('a router is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test('a route may use a network without a range yet, and a router that is being made can be deleted', () => {
  const later = subject(IDLE, { networkIds: ['a', 'c'], ...route('10.9.0.0/16', '10.7.0.9') })
  expect(() => change('configure')?.allow?.(later, WORLD)).not.toThrow()
  expect(() => routerChanges.remove.allow?.(subject(busyWith('create')), ZONES)).not.toThrow()
})

test('networks leave a router that is being deleted, which waits for it', () => {
  const parted = { ...subject(LEAVING, { networkIds: ['a'] }), before: SPEC }
  expect(() => change('detach_network')?.allow?.(parted, WORLD)).not.toThrow()
})
