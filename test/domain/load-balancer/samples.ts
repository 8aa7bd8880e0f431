/** Configurations of load balancers for tests: one of everything, and any that the shapes allow. */
import * as fc from 'fast-check'
import {
  ALGORITHMS,
  type Backend,
  type Frontend,
  HEALTH_CHECKS,
  HEALTH_COUNT,
  HEALTH_INTERVAL_SECONDS,
  HEALTH_TIMEOUT_SECONDS,
  type HealthCheck,
  IDLE_TIMEOUT_SECONDS,
  type LoadBalancerConfiguration,
  type Member,
  PROXY_PROTOCOLS,
  STICKY_SECONDS,
  WEIGHT,
} from '../../../domain/load-balancer/rules.ts'

export const healthCheckOf = (changes: Partial<HealthCheck> = {}): HealthCheck => ({
  type: 'tcp',
  path: '/',
  intervalSeconds: 5,
  timeoutSeconds: 3,
  rise: 2,
  fall: 3,
  expectedStatuses: ['200-399'],
  ...changes,
})

export const memberOf = (changes: Partial<Member> = {}): Member => ({
  id: 'member-1',
  name: 'one',
  address: '10.0.0.10',
  port: 8080,
  weight: 100,
  enabled: true,
  ...changes,
})

export const backendOf = (changes: Partial<Backend> = {}): Backend => ({
  name: 'web',
  algorithm: 'round_robin',
  healthCheck: healthCheckOf(),
  proxyProtocol: 'none',
  members: [memberOf()],
  ...changes,
})

export const frontendOf = (changes: Partial<Frontend> = {}): Frontend => ({
  name: 'web',
  port: 80,
  mode: 'http',
  backend: 'web',
  certificateIds: [],
  allowedCidrs: [],
  inboundProxyProtocol: false,
  idleTimeoutSeconds: 60,
  ...changes,
})

export const CERTIFICATES = ['certificate-1', 'certificate-2'] as const
export const SURROUNDINGS = {
  ipv4Cidr: '10.0.0.0/24',
  ipv6Prefix: 'fd00:0:0:1::/64',
  ownAddresses: ['10.0.0.2', '10.0.0.3', 'fd00:0:0:1::2', '198.18.0.9'],
  certificateIds: CERTIFICATES,
} as const

/** Every setting at least once. */
export const EVERYTHING: LoadBalancerConfiguration = {
  frontends: [
    frontendOf({ allowedCidrs: Array.from({ length: 100 }, (_, index) => `10.${index}.0.0/16`) }),
    frontendOf({ name: 'secure', port: 443, mode: 'https', certificateIds: CERTIFICATES, inboundProxyProtocol: true }),
    frontendOf({ name: 'mail', port: 25, mode: 'tcp', backend: 'mail', idleTimeoutSeconds: 3_600 }),
  ],
  backends: [
    backendOf({
      algorithm: 'least_connections',
      healthCheck: healthCheckOf({
        type: 'http',
        path: '/health?a=$(b)&c=%20;@',
        expectedStatuses: ['200', '301-308'],
      }),
      stickyCookie: { name: 'SERVER', ttlSeconds: 3_600 },
      members: [
        memberOf(),
        memberOf({ id: 'member-2', name: 'two', address: 'fd00:0:0:1::20', weight: 0 }),
        memberOf({ id: 'member-3', name: 'three', address: '2001:db8::1', weight: 255, enabled: false }),
      ],
    }),
    backendOf({ name: 'mail', algorithm: 'source_address', proxyProtocol: 'v2' }),
    backendOf({ name: 'unused', proxyProtocol: 'v1', members: [] }),
  ],
}

const Name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?$/)
const between = ({ least, most }: { readonly least: number; readonly most: number }) =>
  fc.integer({ min: least, max: most })
const Ipv4 = fc.integer({ min: 10, max: 250 }).map((last) => `10.0.0.${last}`)
const Ipv6 = fc.integer({ min: 0x10, max: 0xffff }).map((last) => `fd00:0:0:1::${last.toString(16)}`)
const Cidr = fc.oneof(
  fc.integer({ min: 0, max: 255 }).map((second) => `10.${second}.0.0/16`),
  fc.constantFrom('0.0.0.0/0', '::/0', '2001:db8::/32', '192.0.2.1/32'),
)
const Statuses = fc.oneof(
  fc.integer({ min: 100, max: 599 }).map(String),
  fc.tuple(fc.integer({ min: 100, max: 399 }), fc.integer({ min: 400, max: 599 })).map((two) => two.join('-')),
)
const Health: fc.Arbitrary<HealthCheck> = fc.record({
  type: fc.constantFrom(...HEALTH_CHECKS),
  path: fc.stringMatching(/^\/[A-Za-z0-9\-._~!$&()*+,;=:@%/?]{0,30}$/),
  intervalSeconds: between(HEALTH_INTERVAL_SECONDS),
  timeoutSeconds: between(HEALTH_TIMEOUT_SECONDS),
  rise: between(HEALTH_COUNT),
  fall: between(HEALTH_COUNT),
  expectedStatuses: fc.array(Statuses, { minLength: 1, maxLength: 10 }),
})
const Members = fc
  .uniqueArray(
    fc.record({
      address: fc.oneof(Ipv4, Ipv6),
      port: fc.integer({ min: 1, max: 65_535 }),
      weight: between(WEIGHT),
      enabled: fc.boolean(),
    }),
    { maxLength: 20, selector: ({ address, port }) => `${address} ${port}` },
  )
  .map((members) => members.map((member, index): Member => ({ id: `member-${index}`, name: `m-${index}`, ...member })))

/** Whatever can be accepted: nothing in it has a fault. */
export const Configurations: fc.Arbitrary<LoadBalancerConfiguration> = fc
  .uniqueArray(
    fc.record({
      name: Name,
      isHttp: fc.boolean(),
      algorithm: fc.constantFrom(...ALGORITHMS),
      healthCheck: Health,
      proxyProtocol: fc.constantFrom(...PROXY_PROTOCOLS),
      cookie: fc.option(
        fc.record({ name: fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), ttlSeconds: between(STICKY_SECONDS) }),
      ),
      members: Members,
      frontends: fc.array(
        fc.record({
          port: fc.integer({ min: 1, max: 65_535 }),
          isSecure: fc.boolean(),
          certificateIds: fc.constantFrom([CERTIFICATES[0]], [...CERTIFICATES]),
          allowedCidrs: fc.array(Cidr, { maxLength: 100 }),
          inboundProxyProtocol: fc.boolean(),
          idleTimeoutSeconds: between(IDLE_TIMEOUT_SECONDS),
        }),
        { maxLength: 3 },
      ),
    }),
    { maxLength: 6, selector: ({ name }) => name },
  )
  .map((parts) => {
    const frontends = parts.flatMap(({ name, isHttp, frontends: some }) =>
      some.map(
        ({ isSecure, certificateIds, ...rest }, index): Frontend => ({
          ...rest,
          name: `${name}-${index}`.slice(0, 63),
          backend: name,
          mode: !isHttp ? 'tcp' : isSecure ? 'https' : 'http',
          certificateIds: isHttp && isSecure ? certificateIds : [],
        }),
      ),
    )
    const [ports, names] = [new Set<number>(), new Set<string>()]
    return {
      frontends: frontends.filter(({ port, name }) => {
        const isNew = !ports.has(port) && !names.has(name)
        ports.add(port)
        names.add(name)
        return isNew
      }),
      backends: parts.map(({ name, isHttp, algorithm, healthCheck, proxyProtocol, cookie, members }) => ({
        name,
        algorithm,
        healthCheck,
        proxyProtocol,
        ...(isHttp && cookie !== null ? { stickyCookie: cookie } : {}),
        members,
      })),
    }
  })
