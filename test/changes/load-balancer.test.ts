import { expect, test } from 'vitest'
import type { LoadBalancerFacts } from '../../domain/load-balancer/rules.ts'
import { changesBetween, requireUntouched } from '../../changes/kit/judge.ts'
import { loadBalancerChanges } from '../../changes/load-balancer.ts'
import { LoadBalancer, type LoadBalancerSpec } from '../../resources/load-balancer/index.ts'
import { Network } from '../../resources/network/index.ts'
import { worldWith, ZONES } from './world.ts'

const SPEC: LoadBalancerSpec = LoadBalancer.spec.parse({
  zone: 'z1',
  name: 'web',
  networkId: 'back',
  plan: 'small',
  frontends: [{ name: 'web', port: 80, mode: 'http', backend: 'web' }],
  backends: [{ name: 'web', members: [{ name: 'one', address: '10.9.0.10', port: 8080 }] }],
})
const IDLE: LoadBalancerFacts = {
  id: 'lb',
  isDeleting: false,
  isProtected: false,
  managedBy: undefined,
  activeOperation: undefined,
  configurationGeneration: 1,
  ownAddresses: ['10.9.0.200'],
}
const LEAVING: LoadBalancerFacts = { ...IDLE, activeOperation: { id: 'op', kind: 'load_balancer.delete' } }
const member = (address: string): Partial<LoadBalancerSpec> => ({
  backends: LoadBalancer.spec.parse({
    ...SPEC,
    backends: [{ name: 'web', members: [{ name: 'a', address, port: 1 }] }],
  }).backends,
})
const subject = <Facts>(facts: Facts, more: Partial<LoadBalancerSpec> = {}) => ({
  accountId: 'acct',
  id: 'lb',
  facts,
  spec: { ...SPEC, ...more },
})
const change = (name: string) => loadBalancerChanges.changes.find((each) => each.name === name)

/** A network with ranges. */
const WORLD = worldWith([
  [
    Network,
    {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Network',
      metadata: { name: 'back', namespace: 'acct-acct' },
      spec: Network.spec.parse({ zone: 'z1', name: 'back' }),
      status: { ipv4Cidr: '10.9.0.0/24', ipv6Prefix: 'fd00::/64' },
    },
  ],
])

test.each<readonly [string, Partial<LoadBalancerSpec>, readonly string[]]>([
  ['nothing', {}, []],
  ['a name', { name: 'front' }, ['rename']],
  ['labels', { labels: { a: 'b' } }, ['arrange']],
  ['protection', { isProtected: true }, ['arrange']],
  ['other members', member('10.9.0.11'), ['configure']],
  ['no frontends and a name', { frontends: [], name: 'front' }, ['rename', 'configure']],
])('the changes between two specs are, with %s', (_what, after, names) => {
  expect(changesBetween(loadBalancerChanges, SPEC, { ...SPEC, ...after }).map(({ name }) => name)).toEqual(names)
})

test.each<readonly [string, () => unknown, string]>([
  [
    'made in a closed zone',
    () => loadBalancerChanges.create.allow?.(subject(undefined, { zone: 'closed' }), ZONES),
    '',
  ],
  [
    'made without an image',
    () => loadBalancerChanges.create.allow?.(subject(undefined), ZONES),
    'has no load balancers',
  ],
  ['named while it is deleted', () => change('rename')?.allow?.(subject(LEAVING), WORLD), 'Another operation runs'],
  ['labelled while it is deleted', () => change('arrange')?.allow?.(subject(LEAVING), WORLD), 'Another operation runs'],
  ['configured while it is deleted', () => change('configure')?.allow?.(subject(LEAVING), WORLD), 'Another operation'],
  [
    'changed where it is of an edge',
    () => change('rename')?.allow?.(subject({ ...IDLE, managedBy: 'edge:e' }), WORLD),
    'is of the edge e',
  ],
  [
    'given a member outside',
    () => change('configure')?.allow?.(subject(IDLE, member('10.8.0.1')), WORLD),
    'backends.0.members.0.address: ',
  ],
  [
    'given itself as a member',
    () => change('configure')?.allow?.(subject(IDLE, member('10.9.0.200')), WORLD),
    'load balancer itself',
  ],
  [
    'given certificates by people',
    () => requireUntouched(loadBalancerChanges, undefined, { ...SPEC, certificates: [CERTIFICATE] }),
    'spec.certificates is written by the platform only',
  ],
  [
    'deleted while it is protected',
    () => loadBalancerChanges.remove.allow?.(subject({ ...IDLE, isProtected: true }), WORLD),
    'is protected',
  ],
])('a load balancer is never %s', (_what, work, sentence) => {
  expect(work).toThrow(sentence)
})
const CERTIFICATE = { id: 'c', name: 'c', dnsNames: [], notBefore: '', notAfter: '', fingerprint: '' }

test('a configuration is believed while nobody knows the ranges of the network', () => {
  expect(() => change('configure')?.allow?.(subject(IDLE, member('10.8.0.1')), ZONES)).not.toThrow()
  expect(() => requireUntouched(loadBalancerChanges, undefined, SPEC)).not.toThrow()
})
