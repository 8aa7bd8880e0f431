import { describe, expect, test } from 'vitest'
import { changesBetween } from '../../changes/kit/judge.ts'
import { networkChanges } from '../../changes/network.ts'
import type { NetworkSpec } from '../../resources/network/index.ts'
import { ZONES } from './world.ts'

const SPEC: NetworkSpec = { zone: 'z1', name: 'back', dnsServers: [], dhcpEnabled: true, labels: {} }
const IDLE = { id: 'back', isDeleting: false, activeOperation: undefined }
const busyWith = (action: string) => ({ ...IDLE, activeOperation: { id: 'op', action } })
const subject = <Facts>(facts: Facts, more: Partial<NetworkSpec> = {}) => ({
  accountId: 'acct',
  id: 'back',
  facts,
  spec: { ...SPEC, ...more },
})

describe('the changes between two specs', () => {
  test.each<readonly [string, Partial<NetworkSpec>, readonly string[]]>([
    ['nothing', {}, []],
    ['a name', { name: 'front' }, ['rename']],
    ['labels', { labels: { a: 'b' } }, ['label']],
    ['DNS servers', { dnsServers: ['192.0.2.53'] }, ['configure']],
    ['everything', { name: 'front', labels: { a: 'b' }, dhcpEnabled: false }, ['rename', 'label', 'configure']],
  ])('are, with other %s', (_what, after, names) => {
    expect(changesBetween(networkChanges, SPEC, { ...SPEC, ...after }).map(({ name }) => name)).toEqual(names)
  })
})

test.each<readonly [string, () => void, string]>([
  [
    'made in a zone without networks',
    () => networkChanges.create.allow?.(subject(undefined, { zone: 'bare' }), ZONES),
    'has no private networks',
  ],
  [
    'made with a public range',
    () => networkChanges.readable?.({ ...SPEC, ipv4Cidr: '8.8.8.0/24' }),
    'ipv4Cidr: must be in',
  ],
  ['made with labels of no form', () => networkChanges.readable?.({ ...SPEC, labels: { 'a b': '' } }), 'labels.a b: '],
  [
    'configured while it changes',
    () => networkChanges.changes.find(({ name }) => name === 'configure')?.allow?.(subject(busyWith('update')), ZONES),
    'Another operation runs',
  ],
  [
    'deleted while it changes',
    () => networkChanges.remove.allow?.(subject(busyWith('update')), ZONES),
    'Another operation runs',
  ],
])('a network is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test('a network can be deleted while it is being made', () => {
  expect(() => networkChanges.remove.allow?.(subject(busyWith('create')), ZONES)).not.toThrow()
})
