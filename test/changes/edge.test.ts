import { expect, test } from 'vitest'
import { edgeChanges } from '../../changes/edge.ts'
import { auditChangesOf, changesBetween } from '../../changes/kit/judge.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { Edge, type EdgeSpec } from '../../resources/edge/index.ts'
import { Network } from '../../resources/network/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'
import { worldWith, ZONES } from './world.ts'

const MEMBER = { name: 'web', frontendPort: 80, address: '10.1.0.10', port: 8080, weight: 100, enabled: true }
const SPEC: EdgeSpec = Edge.spec.parse({
  zone: 'z1',
  networkId: 'back',
  name: 'edge',
  roles: ['load_balancer'],
  plan: 'small',
  members: [MEMBER],
})
const IDLE = { id: 'edge', isDeleting: false, activeOperation: undefined, ownAddresses: ['10.1.0.200'] }
const busyWith = (action: string) => ({ ...IDLE, activeOperation: { id: 'op', action } })
const subject = <Facts>(facts: Facts, more: Partial<EdgeSpec> = {}) => ({
  accountId: 'acct',
  id: 'edge',
  facts,
  before: SPEC,
  spec: { ...SPEC, ...more },
})
const change = (name: string) => edgeChanges.changes.find((each) => each.name === name)

/** A zone with an image for machines, and a network with a range in it. */
const object = { apiVersion: 'svccloud.dev/v1alpha1', kind: 'Any' }
const WORLD = worldWith([
  [
    Zone,
    {
      ...object,
      metadata: { name: 'z1' },
      spec: { displayName: 'Z', region: 'eu', isClosed: false },
      status: { hasPrivateNetworks: true, builtTemplates: ['managed-machine'] },
    },
  ],
  [
    Network,
    {
      ...object,
      metadata: { name: 'back', namespace: 'acct-acct' },
      spec: Network.spec.parse({ zone: 'z1', name: 'back' }),
      status: { ipv4Cidr: '10.1.0.0/24', ipv6Prefix: 'fd00::/64' },
    },
  ],
])

test.each<readonly [string, Partial<EdgeSpec>, readonly string[]]>([
  ['nothing', {}, []],
  ['a name', { name: 'other' }, ['rename']],
  ['a role', { roles: ['load_balancer', 'nat_gateway'] }, ['configure']],
  ['no members and a name', { members: [], name: 'other' }, ['rename', 'configure']],
])('the changes between two specs are, with %s', (_what, after, names) => {
  expect(changesBetween(edgeChanges, SPEC, { ...SPEC, ...after }).map(({ name }) => name)).toEqual(names)
})

test('the audit log has names of members and a number of keys, and no keys', () => {
  const after = { ...SPEC, sshKeys: [PUBLIC_KEY], members: [{ ...MEMBER, name: 'api' }] }
  expect(auditChangesOf(edgeChanges, edgeChanges.changes, SPEC, after)).toEqual([
    { field: 'ssh_key_count', before: 0, after: 1 },
    { field: 'members', before: ['web'], after: ['api'] },
  ])
})

test.each<readonly [string, () => unknown, string]>([
  [
    'changed while it changes',
    () => change('configure')?.allow?.(subject(busyWith('update')), WORLD),
    'Another operation',
  ],
  [
    'given an unknown plan',
    () => change('configure')?.allow?.(subject(IDLE, { plan: 'none' }), WORLD),
    'plan: there is no',
  ],
  [
    'given a member elsewhere',
    () => change('configure')?.allow?.(subject(IDLE, { members: [{ ...MEMBER, address: '10.2.0.1' }] }), WORLD),
    'members.0.address: ',
  ],
  [
    'given itself as a member',
    () => change('configure')?.allow?.(subject(IDLE, { members: [{ ...MEMBER, address: '10.1.0.200' }] }), WORLD),
    'is an address of the edge itself',
  ],
  [
    'given the port of its bastion',
    () =>
      change('configure')?.allow?.(
        subject(IDLE, { roles: ['bastion', 'load_balancer'], members: [{ ...MEMBER, frontendPort: 22 }] }),
        WORLD,
      ),
    'members.0.frontendPort: 22 is the port of the role bastion',
  ],
  [
    'left with members and no load balancer',
    () => change('configure')?.allow?.(subject(IDLE, { roles: ['nat_gateway'] }), WORLD),
    'members: are the targets',
  ],
  [
    'changed in a zone without an image',
    () => change('configure')?.allow?.(subject(IDLE), ZONES),
    'The hosts of zone z1 have no image',
  ],
  [
    'made a bastion without keys',
    () => edgeChanges.readable?.({ ...SPEC, roles: ['bastion'] }),
    'nobody could sign in',
  ],
  ['given a key that is none', () => edgeChanges.readable?.({ ...SPEC, sshKeys: ['none'] }), 'sshKeys.0: must start'],
  [
    'deleted while it changes',
    () => edgeChanges.remove.allow?.(subject(busyWith('update')), WORLD),
    'Another operation',
  ],
])('an edge is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})

test('an edge can be configured, and deleted while it is being made', () => {
  expect(() => change('configure')?.allow?.(subject(IDLE, { members: [] }), WORLD)).not.toThrow()
  expect(() => edgeChanges.remove.allow?.(subject(busyWith('create')), WORLD)).not.toThrow()
})
