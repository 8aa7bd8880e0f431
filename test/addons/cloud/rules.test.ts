/** What a service asks for, and which nodes get its traffic. */
import { describe, expect, test } from 'vitest'
import { readAnnotations } from '../../../addons/cloud/annotations.ts'
import { nodeDigest, targetsOf, unnamedNodes } from '../../../addons/cloud/nodes.ts'
import type { ServiceSpec } from '../../../addons/cloud/objects.ts'
import { desiredBalancer } from '../../../addons/cloud/wanted.ts'
import { newNode, newServer, newService, UID } from './objects.ts'

const TARGETS = [
  { name: 'web-0', address: '10.1.0.10' },
  { name: 'web-1', address: '10.1.0.11' },
]
const SURROUNDINGS = { clusterId: 'c1', zone: 'eu-1a', networkId: 'n1', targets: TARGETS }
const wish = (spec: ServiceSpec, annotations: Record<string, string> = {}, more: object = {}) =>
  desiredBalancer(newService(spec, { annotations }), { ...SURROUNDINGS, ...more })

describe('a load balancer', () => {
  test('has a frontend for each port, and the nodes behind it at their node ports', () => {
    const { wanted, faults } = wish({
      ports: [
        { name: 'http', port: 80, nodePort: 30_080 },
        { name: 'https', protocol: 'TCP', port: 443, nodePort: 30_443 },
      ],
    })
    expect(faults).toEqual([])
    expect(wanted?.creation).toEqual({
      zone: 'eu-1a',
      name: 'k8s-shop-web-5f0d6c1e',
      network_id: 'n1',
      public_ipv4: true,
      labels: { 'kubernetes-cluster': 'c1', 'kubernetes-service-uid': UID, 'kubernetes-service': 'shop/web' },
    })
    const { frontends = [], backends = [] } = wanted?.configuration ?? {}
    expect(frontends).toMatchObject([
      { name: 'tcp-80', port: 80, mode: 'tcp', backend: 'tcp-80', allowed_cidrs: [] },
      { name: 'tcp-443', port: 443, mode: 'tcp', backend: 'tcp-443', idle_timeout_seconds: 60 },
    ])
    expect(backends).toMatchObject([
      { name: 'tcp-80', algorithm: 'round_robin', proxy_protocol: 'none' },
      {
        name: 'tcp-443',
        members: [
          { name: 'web-0', address: '10.1.0.10', port: 30_443, weight: 100, enabled: true },
          { name: 'web-1', address: '10.1.0.11', port: 30_443 },
        ],
      },
    ])
  })

  test('keeps its own name at any length, which ends with the service itself', () => {
    const service = newService({}, { namespace: 'n'.repeat(63), name: 's'.repeat(63) })
    const name = desiredBalancer(service, SURROUNDINGS).wanted?.creation.name ?? ''
    expect(name).toHaveLength(100)
    expect(name).toMatch(/^k8s-n{63}-s+-5f0d6c1e$/)
  })

  test('is what the annotations say', () => {
    const { wanted } = wish(
      {},
      {
        'svccloud.dev/load-balancer-algorithm': 'least_connections',
        'svccloud.dev/load-balancer-idle-timeout-seconds': '3600',
        'svccloud.dev/load-balancer-internal': 'true',
        'svccloud.dev/load-balancer-plan': 'starter-1c-1g',
        'svccloud.dev/load-balancer-proxy-protocol': 'v2',
      },
    )
    expect(wanted?.creation).toMatchObject({ plan: 'starter-1c-1g', public_ipv4: false })
    expect(wanted?.configuration).toMatchObject({
      frontends: [{ idle_timeout_seconds: 3_600 }],
      backends: [{ algorithm: 'least_connections', proxy_protocol: 'v2' }],
    })
  })

  test('is for the networks that the service names, and keeps clients where it says so', () => {
    const { wanted } = wish({
      loadBalancerSourceRanges: [' 198.51.100.0/24', '2001:DB8:0::/48'],
      sessionAffinity: 'ClientIP',
    })
    expect(wanted?.configuration.frontends[0]?.allowed_cidrs).toEqual(['198.51.100.0/24', '2001:db8::/48'])
    expect(wanted?.configuration.backends[0]?.algorithm).toBe('source_address')
  })

  test('looks oftener for nodes with pods where only those answer', () => {
    const checkOf = (spec: ServiceSpec) => wish(spec).wanted?.configuration.backends[0]?.health_check
    expect(checkOf({})).toMatchObject({ type: 'tcp', interval_seconds: 5, rise: 2, fall: 3 })
    const local = { type: 'tcp', interval_seconds: 2, rise: 1, fall: 2 }
    expect(checkOf({ externalTrafficPolicy: 'Local' })).toMatchObject(local)
  })

  test('has no more members than there may be, and says so', () => {
    const targets = Array.from({ length: 300 }, (_, number) => ({ name: `w${number}`, address: `10.1.1.${number}` }))
    expect(wish({}, {}, { targets }).wanted).toMatchObject({
      notes: ['250 of 300 nodes get its traffic: a load balancer has no more members'],
    })
    const ports = Array.from({ length: 10 }, (_, index) => ({ port: index + 1, nodePort: 30_000 + index }))
    expect(wish({ ports }, {}, { targets }).wanted?.configuration.backends[9]?.members).toHaveLength(100)
    expect(wish({}, {}, { targets: [] }).wanted?.notes).toEqual(['no node can take its traffic'])
  })
})

test.each<[string, ServiceSpec, Record<string, string>, string]>([
  ['UDP', { ports: [{ protocol: 'UDP', port: 53, nodePort: 30_053 }] }, {}, 'port 53 is UDP'],
  ['no node port', { ports: [{ port: 80 }] }, {}, 'port 80 has no node port'],
  ['a network with bits of a host', { loadBalancerSourceRanges: ['10.0.0.1/8'] }, {}, '10.0.0.1/8 of load'],
  ['too many networks', { loadBalancerSourceRanges: Array(101).fill('10.0.0.0/8') }, {}, 'more than 100 networks'],
  [
    'too many ports',
    { ports: Array.from({ length: 51 }, (_, index) => ({ port: index + 1, nodePort: 30_000 + index })) },
    {},
    'it has 51 ports',
  ],
  ['an unknown annotation', {}, { 'svccloud.dev/load-balancer-plans': 'x' }, 'load-balancer-plans is unknown'],
  ['an algorithm that is none', {}, { 'svccloud.dev/load-balancer-algorithm': 'random' }, 'is one of round_robin'],
  ['another protocol', {}, { 'svccloud.dev/load-balancer-proxy-protocol': 'v3' }, 'is one of none, v1, v2'],
  ['internal said otherwise', {}, { 'svccloud.dev/load-balancer-internal': 'yes' }, 'is one of true, false'],
  ['no number', {}, { 'svccloud.dev/load-balancer-idle-timeout-seconds': '1m' }, 'a whole number from 1 to 86400'],
])('a service that cannot have one says why: %s', (_what, spec, annotations, fault) => {
  const { wanted, faults } = wish(spec, annotations)
  expect(wanted).toBeUndefined()
  expect(faults.join('\n')).toContain(fault)
})

test('annotations of others are theirs', () => {
  const service = newService({}, { annotations: { 'example.com/load-balancer-plan': 'x' } })
  expect(readAnnotations(service)).toMatchObject({ annotations: { plan: undefined }, faults: [] })
})

describe('nodes', () => {
  const servers = [0, 1, 2].map(newServer)
  const excluded = { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } }
  const names = (...nodes: ReturnType<typeof newNode>[]) => targetsOf(nodes, servers).map(({ name }) => name)

  test('that are ready get traffic, at the address that the platform knows', () => {
    expect(targetsOf([newNode('web-1'), newNode('web-0', false)], servers)).toEqual([
      { name: 'web-1', address: '10.1.0.11' },
    ])
  })
  test('that are excluded, are going, or are of no pool get none', () => {
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z' }
    expect(names(newNode('web-0', true, excluded), newNode('web-1', true, going), newNode('mine'))).toEqual([])
  })
  test('get it all while none is ready, so that the balancer finds out', () => {
    expect(names(newNode('web-1', false), newNode('web-0', false))).toEqual(['web-0', 'web-1'])
    expect(names(newNode('web-1', false, excluded))).toEqual([])
  })
  test('say which servers they are, once', () => {
    const [first, second] = [newNode('web-0'), newNode('web-1')]
    const named = { ...second, spec: { providerID: 'svccloud://eu-1a/machine-node-1' } }
    expect(unnamedNodes([first, named, newNode('mine')], servers)).toEqual([
      { node: first, providerId: 'svccloud://eu-1a/machine-node-0' },
    ])
  })
  test('wake nobody by what decides nothing', () => {
    const node = newNode('web-0')
    expect(nodeDigest({ ...node, metadata: { ...node.metadata, resourceVersion: '2' } })).toBe(nodeDigest(node))
    for (const other of [newNode('web-0', false), newNode('web-0', true, excluded)])
      expect(nodeDigest(other)).not.toBe(nodeDigest(node))
  })
})
