import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  memberAddressFault,
  canonicalConfiguration,
  configurationDigest,
  configurationFault,
  HEALTH_PATH_PATTERN,
  type LoadBalancerConfiguration,
  type LoadBalancerFacts,
  MEMBERS_OF_BACKEND_MAXIMUM,
  modeOfBackend,
  NAME_PATTERN,
  requireConfigurable,
  requireDeletableLoadBalancer,
  requireGeneration,
} from '../../../domain/load-balancer/rules.ts'
import { backendOf, Configurations, EVERYTHING, frontendOf, healthCheckOf, memberOf, SURROUNDINGS } from './samples.ts'

const faultOf = (changes: Partial<LoadBalancerConfiguration>) =>
  configurationFault({ frontends: [frontendOf()], backends: [backendOf()], ...changes }, SURROUNDINGS)
const webWith = (members: Parameters<typeof backendOf>[0]) => faultOf({ backends: [backendOf(members)] })

describe('a configuration', () => {
  test('of everything has no fault', () => expect(configurationFault(EVERYTHING, SURROUNDINGS)).toBeUndefined())
  test('of nothing has none', () => expect(faultOf({ frontends: [], backends: [] })).toBeUndefined())

  test('that the shapes allow and whose parts know each other has none', () => {
    fc.assert(
      fc.property(Configurations, (configuration) => {
        expect(configurationFault(configuration, SURROUNDINGS)).toBeUndefined()
      }),
    )
  })

  test.each([
    ['two frontends of a name', { frontends: [frontendOf(), frontendOf({ port: 81 })] }, 'frontends.1.name'],
    ['two frontends of a port', { frontends: [frontendOf(), frontendOf({ name: 'b' })] }, 'frontends.1.port'],
    ['two backends of a name', { backends: [backendOf(), backendOf()] }, 'backends.1.name'],
    ['a frontend of no backend', { frontends: [frontendOf({ backend: 'api' })] }, 'frontends.0.backend'],
    ['https without a certificate', { frontends: [frontendOf({ mode: 'https' })] }, 'frontends.0.certificateIds'],
    [
      'http with a certificate',
      { frontends: [frontendOf({ certificateIds: ['certificate-1'] })] },
      'frontends.0.certificateIds',
    ],
    [
      'a certificate of somebody else',
      { frontends: [frontendOf({ mode: 'https', certificateIds: ['certificate-1', 'another'] })] },
      'frontends.0.certificateIds.1',
    ],
    [
      'a certificate twice',
      { frontends: [frontendOf({ mode: 'https', certificateIds: ['certificate-1', 'certificate-1'] })] },
      'frontends.0.certificateIds.1.id',
    ],
    [
      'a network with host bits',
      { frontends: [frontendOf({ allowedCidrs: ['::/0', '10.0.0.1/24'] })] },
      'frontends.0.allowedCidrs.1',
    ],
    [
      'a backend of both modes',
      { frontends: [frontendOf(), frontendOf({ name: 'raw', port: 81, mode: 'tcp' as const })] },
      'backends.0.name',
    ],
    [
      'a cookie that nobody reads',
      {
        frontends: [frontendOf({ mode: 'tcp' as const })],
        backends: [backendOf({ stickyCookie: { name: 'A', ttlSeconds: 1 } })],
      },
      'backends.0.stickyCookie',
    ],
    [
      'statuses that end before they begin',
      { backends: [backendOf({ healthCheck: healthCheckOf({ expectedStatuses: ['200', '399-200'] }) })] },
      'backends.0.healthCheck.expectedStatuses.1',
    ],
  ])('with %s has a fault there', (_what, changes, field) => expect(faultOf(changes)?.field).toBe(field))

  test.each([
    ['of one name', [memberOf(), memberOf({ id: 'b', port: 1 })], 'name'],
    ['of one id', [memberOf(), memberOf({ name: 'b', port: 1 })], 'id'],
    ['of one address and port', [memberOf(), memberOf({ id: 'b', name: 'b' })], 'address'],
    [
      'of one address in two texts',
      [memberOf({ address: '2001:db8::1' }), memberOf({ id: 'b', name: 'b', address: '2001:DB8:0::1' })],
      'address',
    ],
  ])('with two members %s has a fault at the second', (_what, members, field) =>
    expect(webWith({ members })?.field).toBe(`backends.0.members.1.${field}`),
  )

  test('may not have more members than its object holds', () => {
    const backends = Array.from({ length: 5 }, (_, backend) =>
      backendOf({
        name: `b-${backend}`,
        members: Array.from({ length: MEMBERS_OF_BACKEND_MAXIMUM }, (_, index) =>
          memberOf({ id: `m-${index}`, name: `m-${index}`, port: 1 + index }),
        ),
      }),
    )
    expect(faultOf({ frontends: [], backends: backends.slice(0, 4) })).toBeUndefined()
    expect(faultOf({ frontends: [], backends })).toEqual({
      field: 'backends',
      detail: 'may have at most 1000 members together',
    })
  })
})

describe('the address of a member', () => {
  test.each(['10.0.0.4', '10.0.0.254', 'fd00:0:0:1::20', '2001:db8::1', 'fd12::1'])('can be %s', (address) =>
    expect(memberAddressFault(address, SURROUNDINGS)).toBeUndefined(),
  )
  test.each([
    ['10.0.1.4', /outside the network/],
    ['192.0.2.1', /outside the network/],
    ['127.0.0.1', /outside the network/],
    ['169.254.169.254', /outside the network/],
    ['10.0.0.0', /no host/],
    ['10.0.0.1', /no host/],
    ['10.0.0.255', /no host/],
    ['10.0.0.2', /itself/],
    ['FD00:0:0:1:0::2', /itself/],
    ['198.18.0.9', /itself/],
    ['fd00:0:0:1::1', /no host/],
    ['::1', /no address of a server/],
    ['fe80::1', /no address of a server/],
    ['ff02::1', /no address of a server/],
    ['64:ff9b::a00:1', /no address of a server/],
    ['web.example', /must be an address/],
    ['10.0.0.4 disabled', /must be an address/],
  ])('cannot be %s', (address, fault) => expect(memberAddressFault(address, SURROUNDINGS)).toMatch(fault))
})

test.each(['', '-a', 'a-', 'A', 'a b', 'a\nserver x', 'a.b', '#a', 'a'.repeat(64)])('%j is no name', (name) =>
  expect(NAME_PATTERN.test(name)).toBe(false),
)
test.each(["/a'b", '/a b', '/a"b', '/a\\b', 'a', '/a\nb', '/#a', '/{a}'])('%j is no path of a health check', (path) =>
  expect(HEALTH_PATH_PATTERN.test(path)).toBe(false),
)

test('addresses are written in one way', () => {
  const { frontends, backends } = canonicalConfiguration({
    frontends: [frontendOf({ allowedCidrs: ['2001:DB8::/032'] })],
    backends: [backendOf({ members: [memberOf({ address: '2001:DB8:0:0::1' })] })],
  })
  expect(frontends[0]?.allowedCidrs).toEqual(['2001:db8::/32'])
  expect(backends[0]?.members[0]?.address).toBe('2001:db8::1')
})

test.each([
  ['http of a web frontend', [frontendOf()], 'http'],
  ['http of an https frontend', [frontendOf({ mode: 'https' })], 'http'],
  ['tcp of a raw one', [frontendOf({ mode: 'tcp' })], 'tcp'],
  ['tcp without any', [], 'tcp'],
  ['tcp when another backend has one', [frontendOf({ backend: 'api' })], 'tcp'],
] as const)('the mode of a backend is %s', (_what, frontends, mode) =>
  expect(modeOfBackend(backendOf(), frontends)).toBe(mode),
)

describe('what the state allows', () => {
  const facts = (changes: Partial<LoadBalancerFacts> = {}): LoadBalancerFacts => ({
    id: 'lb-1',
    isProtected: false,
    isDeleting: false,
    managedBy: undefined,
    configurationGeneration: 3,
    ownAddresses: [],
    activeOperation: undefined,
    ...changes,
  })
  const creating = { id: 'op', kind: 'load_balancer.create' }
  const deleting = { id: 'op', kind: 'load_balancer.delete' }

  test('configuring while it is being made', () =>
    expect(() => requireConfigurable(facts({ activeOperation: creating }))).not.toThrow())
  test.each([
    ['of an edge', facts({ managedBy: 'edge:e-1' }), 'in_use'],
    ['that is being deleted', facts({ activeOperation: deleting }), 'operation_in_progress'],
    ['whose object goes', facts({ isDeleting: true }), 'state_not_allowed'],
  ])('no configuring of one %s', (_what, of, reason) =>
    expect(() => requireConfigurable(of)).toThrow(
      expect.objectContaining({ members: expect.objectContaining({ reason }) }),
    ),
  )

  test('the generation that is expected, or none', () => {
    expect(() => requireGeneration(facts(), 3)).not.toThrow()
    expect(() => requireGeneration(facts(), undefined)).not.toThrow()
    expect(() => requireGeneration(facts(), 2)).toThrow(/at generation 3, not 2/)
  })

  test('deleting while it is being made', () =>
    expect(() => requireDeletableLoadBalancer(facts({ activeOperation: creating }))).not.toThrow())
  test.each([
    ['that is protected', facts({ isProtected: true }), 'protected'],
    ['of an edge', facts({ managedBy: 'edge:e-1' }), 'in_use'],
    ['twice', facts({ activeOperation: deleting }), 'operation_in_progress'],
  ])('no deleting of one %s', (_what, of, reason) =>
    expect(() => requireDeletableLoadBalancer(of)).toThrow(
      expect.objectContaining({ members: expect.objectContaining({ reason }) }),
    ),
  )
})

test('a configuration has one digest, with members stored in any order', () => {
  const { frontends, backends } = EVERYTHING
  const turned = frontends.map((one) => Object.fromEntries(Object.entries(one).toReversed()) as typeof one)
  expect(configurationDigest({ frontends: turned, backends })).toBe(configurationDigest(EVERYTHING))
  expect(configurationDigest({ frontends: frontends.slice(1), backends })).not.toBe(configurationDigest(EVERYTHING))
})
