/** LoadBalancer: distributes traffic over servers of a private network, as it is stored. */
import { z } from 'zod'
import { DNS_NAMES_MAXIMUM } from '../../domain/load-balancer/certificate.ts'
import { OBSERVED, Port, within } from '../kit/fields.ts'
import {
  ALGORITHMS,
  ALLOWED_CIDRS_MAXIMUM,
  type Backend,
  BACKENDS_MAXIMUM,
  CERTIFICATES_MAXIMUM,
  CERTIFICATES_OF_FRONTEND_MAXIMUM,
  configurationDigest,
  COOKIE_NAME_PATTERN,
  EXPECTED_STATUSES_MAXIMUM,
  type Frontend,
  FRONTEND_MODES,
  FRONTENDS_MAXIMUM,
  HEALTH_CHECKS,
  HEALTH_COUNT,
  HEALTH_INTERVAL_SECONDS,
  HEALTH_PATH_PATTERN,
  HEALTH_TIMEOUT_SECONDS,
  IDLE_TIMEOUT_SECONDS,
  type LoadBalancerConfiguration,
  MEMBERS_OF_BACKEND_MAXIMUM,
  NAME_PATTERN,
  PROXY_PROTOCOLS,
  STATUSES_PATTERN,
  STICKY_SECONDS,
  WEIGHT,
} from '../../domain/load-balancer/rules.ts'
import { resource } from '../kit/define.ts'
import { ReportedOperation, RequestedOrEditedOperation, StoredLabels, ZoneName } from '../kit/shapes.ts'
import { AddressText, CidrText, ManagedByText, ObjectName } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'
import type { Use } from '../../domain/claim/use.ts'
import { use } from '../kit/uses.ts'

const MACHINES_MAXIMUM = 4
const ADDRESSES_OF_MACHINE_MAXIMUM = 16
const MEMBERS_REPORTED_MAXIMUM = 1_000

const Name = z.string().min(1).max(63).regex(NAME_PATTERN)
const Address = AddressText.min(1)

const StoredFrontend = z.strictObject({
  name: Name.describe('Unique among the frontends.'),
  port: Port.describe('Port on IPv4 and IPv6; unique among the frontends.'),
  mode: z.enum(FRONTEND_MODES).describe('Traffic that it accepts: connections, requests, or requests in TLS.'),
  backend: Name.describe('Name of the backend that receives the traffic.'),
  certificateIds: z
    .array(z.string().min(1).max(253))
    .max(CERTIFICATES_OF_FRONTEND_MAXIMUM)
    .default([])
    .describe(
      'Certificates for https, selected by the name that the client requests. The first one is used when none matches.',
    ),
  allowedCidrs: z
    .array(CidrText.min(1))
    .max(ALLOWED_CIDRS_MAXIMUM)
    .default([])
    .describe('Networks that may connect; empty for any.'),
  inboundProxyProtocol: z
    .boolean()
    .default(false)
    .describe('Whether incoming connections start with a PROXY header from an upstream proxy.'),
  idleTimeoutSeconds: within(IDLE_TIMEOUT_SECONDS)
    .default(IDLE_TIMEOUT_SECONDS.default)
    .describe('Seconds without traffic after which a connection is closed.'),
})

const StoredHealthCheck = z.strictObject({
  type: z.enum(HEALTH_CHECKS).default('tcp').describe('Check by connection, or by request.'),
  path: z.string().max(255).regex(HEALTH_PATH_PATTERN).default('/').describe('Path of the http check.'),
  intervalSeconds: within(HEALTH_INTERVAL_SECONDS).default(HEALTH_INTERVAL_SECONDS.default).describe('How often.'),
  timeoutSeconds: within(HEALTH_TIMEOUT_SECONDS)
    .default(HEALTH_TIMEOUT_SECONDS.default)
    .describe('Seconds allowed for an answer.'),
  rise: within(HEALTH_COUNT)
    .default(HEALTH_COUNT.rise)
    .describe('Consecutive successes after which a member is healthy.'),
  fall: within(HEALTH_COUNT)
    .default(HEALTH_COUNT.fall)
    .describe('Consecutive failures after which a member is unhealthy.'),
  expectedStatuses: z
    .array(z.string().max(7).regex(STATUSES_PATTERN))
    .min(1)
    .max(EXPECTED_STATUSES_MAXIMUM)
    .default(['200-399'])
    .describe('HTTP statuses of a healthy member: single values or ranges.'),
})

const StoredMember = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(63)
    .regex(NAME_PATTERN)
    .optional()
    .describe('Its id in the API; its name when it has no other id.'),
  name: Name.describe('Unique among the members of the backend.'),
  address: Address.describe('An IPv4 host of the network, or an IPv6 address.'),
  port: Port.describe('Port of the member.'),
  weight: within(WEIGHT)
    .default(WEIGHT.default)
    .describe('Relative share of the traffic; with 0 it receives nothing new but keeps clients whose cookie names it.'),
  enabled: z.boolean().default(true).describe('Whether it receives traffic and health checks.'),
})

const StoredBackend = z.strictObject({
  name: Name.describe('Unique among the backends.'),
  algorithm: z
    .enum(ALGORITHMS)
    .default('round_robin')
    .describe('Algorithm that selects the member for a connection or request.'),
  healthCheck: StoredHealthCheck.optional().describe('Health check of the members; by connection when absent.'),
  proxyProtocol: z
    .enum(PROXY_PROTOCOLS)
    .default('none')
    .describe('PROXY header with the client address that members receive.'),
  stickyCookie: z
    .strictObject({
      name: z.string().min(1).max(64).regex(COOKIE_NAME_PATTERN).describe('Name of the cookie.'),
      ttlSeconds: within(STICKY_SECONDS).describe('Lifetime of the cookie in seconds.'),
    })
    .optional()
    .describe('Cookie that returns a client to the same member; none when absent.'),
  members: z
    .array(StoredMember)
    .max(MEMBERS_OF_BACKEND_MAXIMUM)
    .default([])
    .describe('Members that receive the traffic.'),
})

const StoredCertificate = z.strictObject({
  id: z.string().min(1).max(63).describe('Its id in the API.'),
  name: Name.describe('Unique among the certificates.'),
  dnsNames: z.array(ObjectName).max(DNS_NAMES_MAXIMUM).describe('DNS names in the certificate.'),
  notBefore: z.string().max(64).describe('Start of its validity.'),
  notAfter: z.string().max(64).describe('Time when it expires.'),
  fingerprint: z.string().max(128).describe('SHA-256 of it.'),
})

export const LoadBalancer = resource({
  kind: 'LoadBalancer',
  plural: 'loadbalancers',
  shortNames: ['lb'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Distributes traffic over servers of a private network. It has two machines of the platform with shared ' +
    'addresses; one takes over within seconds when the other fails. Changes of frontends and backends do not ' +
    'interrupt connections.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the load balancer.'),
      name: z
        .string()
        .min(1)
        .max(100)
        .describe('Display name, unique among the load balancers of the account in the zone.'),
      networkId: z.string().min(1).max(253).describe('Name of the Network of its members.'),
      plan: z.string().min(1).max(63).describe('Plan of each of its machines.'),
      publicIpv4: z
        .boolean()
        .default(true)
        .describe('Whether it has public addresses: IPv4, and IPv6 where the zone has it.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      isProtected: z.boolean().default(false).describe('Whether deletion is refused.'),
      frontends: z.array(StoredFrontend).max(FRONTENDS_MAXIMUM).default([]).describe('Frontends.'),
      backends: z.array(StoredBackend).max(BACKENDS_MAXIMUM).default([]).describe('Backends.'),
      certificates: z
        .array(StoredCertificate)
        .max(CERTIFICATES_MAXIMUM)
        .default([])
        .describe('Certificates added through the API. Written by the platform only.'),
      numbered: z
        .strictObject({
          generation: z.int().min(1).describe('Generation of the frontends and backends.'),
          digest: z.string().max(64).describe('Digest of those frontends and backends. Others are a later generation.'),
        })
        .optional()
        .describe('Version of the configuration. Written by the platform only.'),
      managedBy: ManagedByText.optional().describe(
        'edge:<id> when it is part of that edge. Written by the platform only.',
      ),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the load balancer.'),
  status: z
    .strictObject({
      ...OBSERVED,
      isMade: z.boolean().optional().describe('Whether its machines have run once.'),
      isHealthy: z.boolean().optional().describe('Whether both of its machines are healthy.'),
      healthDetail: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable description of the problem; empty when there is none.'),
      publicIpv4: Address.optional().describe('Public IPv4 address on the active machine.'),
      publicIpv6: Address.optional().describe('Public IPv6 address on the active machine.'),
      privateIpv4: Address.optional().describe('IPv4 address in the network on the active machine.'),
      privateIpv6: Address.optional().describe('IPv6 address in the network on the active machine.'),
      applied: z
        .strictObject({
          generation: z.int().min(0).describe('Generation of the configuration.'),
          digest: z.string().max(64).describe('Digest of the configuration.'),
        })
        .optional()
        .describe('Configuration that every machine runs; absent while they differ.'),
      nodes: z
        .array(
          z.strictObject({
            id: ObjectName.describe('Name of its Server.'),
            role: z.enum(['active', 'standby']).describe('Whether it has the addresses.'),
            isHealthy: z.boolean().describe('Whether it is healthy.'),
            addresses: z
              .array(Address)
              .max(ADDRESSES_OF_MACHINE_MAXIMUM)
              .describe('Separate addresses of the machine.'),
            configurationGeneration: z
              .int()
              .min(0)
              .describe('Generation of the configuration that it runs; 0 before the first.'),
          }),
        )
        .max(MACHINES_MAXIMUM)
        .optional()
        .describe('Its machines.'),
      members: z
        .array(
          z.strictObject({
            backend: Name.describe('Name of its backend.'),
            id: z.string().max(63).describe('Id of the member.'),
            isHealthy: z.boolean().describe("Result of the active machine's last check."),
          }),
        )
        .max(MEMBERS_REPORTED_MAXIMUM)
        .optional()
        .describe('Members that have been checked.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the load balancer. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Public', type: 'string', jsonPath: '.status.publicIpv4' },
    { name: 'Private', type: 'string', jsonPath: '.status.privateIpv4' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'networkId', 'plan', 'publicIpv4', 'managedBy'],
})
export type LoadBalancerSpec = z.infer<typeof LoadBalancer.spec>
export type LoadBalancerStatus = z.infer<typeof LoadBalancer.status>
type Rules = Pick<LoadBalancerSpec, 'frontends' | 'backends'>
export type StoredBackend = LoadBalancerSpec['backends'][number]
export type StoredCertificate = LoadBalancerSpec['certificates'][number]

/** The unique values of a load balancer: its addresses. */
export const usesOfLoadBalancer = ({
  spec,
  status,
}: {
  readonly spec: LoadBalancerSpec
  readonly status?: LoadBalancerStatus | undefined
}): readonly Use[] => [
  ...use('address', '', status?.publicIpv4),
  ...use('address', '', status?.publicIpv6),
  ...use('network', spec.networkId, status?.privateIpv4),
  ...use('network', spec.networkId, status?.privateIpv6),
]

/** Default health check of members. */
export const HEALTH_CHECK_DEFAULT = StoredHealthCheck.parse({})

/** The configuration as the domain knows it: every member has an id, every backend a check. */
export const configurationOf = ({ frontends, backends }: Rules): LoadBalancerConfiguration => ({
  frontends: frontends satisfies readonly Frontend[],
  backends: backends.map(
    ({ healthCheck = HEALTH_CHECK_DEFAULT, members, ...rest }): Backend => ({
      ...rest,
      healthCheck,
      members: members.map((member) => ({ ...member, id: memberIdOf(member) })),
    }),
  ),
})

export const memberIdOf = ({ id, name }: Pick<StoredBackend['members'][number], 'id' | 'name'>): string => id ?? name

const digestOf = (configuration: Rules): string => configurationDigest(configurationOf(configuration))

export interface ConfigurationNumber {
  readonly generation: number
  readonly digest: string
}

/** The configuration that the spec has. An edit past the API is one generation later than the number from the
 *  platform. */
export function numberOf({
  numbered,
  ...configuration
}: Rules & Pick<LoadBalancerSpec, 'numbered'>): ConfigurationNumber {
  const digest = digestOf(configuration)
  const { generation = 1 } = numbered ?? {}
  return { generation: numbered === undefined || numbered.digest === digest ? generation : generation + 1, digest }
}

/** What the platform writes beside another configuration: always one generation later. */
export const nextNumber = (before: Rules & Pick<LoadBalancerSpec, 'numbered'>, after: Rules): ConfigurationNumber => ({
  generation: numberOf(before).generation + 1,
  digest: digestOf(after),
})

export const firstNumber = (configuration: Rules): ConfigurationNumber => ({
  generation: 1,
  digest: digestOf(configuration),
})
