/** Public shapes of frontends, backends, members and certificates, and the conversion to the stored shapes. */
import { z } from 'zod'
import {
  ALGORITHMS,
  ALLOWED_CIDRS_MAXIMUM,
  BACKENDS_MAXIMUM,
  CERTIFICATES_OF_FRONTEND_MAXIMUM,
  COOKIE_NAME_PATTERN,
  EXPECTED_STATUSES_MAXIMUM,
  FRONTEND_MODES,
  FRONTENDS_MAXIMUM,
  HEALTH_CHECKS,
  HEALTH_COUNT,
  HEALTH_INTERVAL_SECONDS,
  HEALTH_PATH_PATTERN,
  HEALTH_TIMEOUT_SECONDS,
  IDLE_TIMEOUT_SECONDS,
  MEMBERS_OF_BACKEND_MAXIMUM,
  NAME_PATTERN,
  PROXY_PROTOCOLS,
  STATUSES_PATTERN,
  STICKY_SECONDS,
  WEIGHT,
} from '../../domain/load-balancer/rules.ts'
import { canonicalAddress, canonicalCidr, parseAddress } from '../../domain/network/addresses.ts'
import { DateTime, Id } from '../kit/shapes.ts'
import { viewOf } from '../kit/view.ts'
import {
  HEALTH_CHECK_DEFAULT,
  type LoadBalancerSpec,
  type LoadBalancerStatus,
  memberIdOf,
  type StoredBackend,
  type StoredCertificate,
} from './stored.ts'
import { AddressText, CidrText, Port, within } from '../kit/fields.ts'

type StoredFrontend = LoadBalancerSpec['frontends'][number]
type StoredMember = StoredBackend['members'][number]

export const ConfigurationName = z
  .string()
  .regex(
    NAME_PATTERN,
    'must be 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit',
  )
const MemberAddress = AddressText.refine((text) => parseAddress(text) !== undefined, 'must be an address')
  .transform(canonicalAddress)
  .describe('An IPv4 host of the network, or an IPv6 address.')
const Weight = within(WEIGHT).describe(
  'Relative share of the traffic. With 0 it receives no new clients but keeps those whose cookie names it.',
)
const Enabled = z.boolean().describe('Whether it receives traffic and health checks.')
const MemberPort = Port.describe('Port of the member.')

export const MemberView = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    address: z.string(),
    port: MemberPort,
    weight: Weight,
    enabled: Enabled,
    is_healthy: z.boolean().nullable().describe('null until the first check.'),
  })
  .meta({ id: 'LoadBalancerMember' })
export type MemberView = z.infer<typeof MemberView>

export const MemberInput = z
  .strictObject({
    name: ConfigurationName.describe('Unique among the members of the backend.'),
    address: MemberAddress,
    port: MemberPort,
    weight: Weight.default(WEIGHT.default),
    enabled: Enabled.default(true),
  })
  .meta({ id: 'LoadBalancerMemberInput' })
export type MemberInput = z.infer<typeof MemberInput>

export const MemberChange = z
  .strictObject({ weight: Weight.optional(), enabled: Enabled.optional(), port: MemberPort.optional() })
  .meta({ id: 'UpdateLoadBalancerMember' })
export type MemberChange = z.infer<typeof MemberChange>

const FrontendFields = {
  name: ConfigurationName.describe('Unique among the frontends.'),
  port: Port.describe('Port on IPv4 and IPv6; unique among the frontends.'),
  mode: z.enum(FRONTEND_MODES).describe('Traffic that it accepts: connections, requests, or requests in TLS.'),
  backend: ConfigurationName.describe('Name of the backend that receives the traffic.'),
}
const CertificateIds = z.array(Id).max(CERTIFICATES_OF_FRONTEND_MAXIMUM)
const AllowedCidrs = z.array(CidrText.transform(canonicalCidr)).max(ALLOWED_CIDRS_MAXIMUM)

export const FrontendInput = z
  .strictObject({
    ...FrontendFields,
    certificate_ids: CertificateIds.default([]).describe(
      'Certificates for https, selected by the name that the client requests. The first one is used when none matches.',
    ),
    allowed_cidrs: AllowedCidrs.default([]).describe(
      'Networks that may connect; empty for any. The connecting address counts, also behind another proxy.',
    ),
    inbound_proxy_protocol: z
      .boolean()
      .default(false)
      .describe('Whether incoming connections start with a PROXY header from an upstream proxy.'),
    idle_timeout_seconds: within(IDLE_TIMEOUT_SECONDS)
      .default(IDLE_TIMEOUT_SECONDS.default)
      .describe('Seconds without traffic after which a connection is closed.'),
  })
  .meta({ id: 'LoadBalancerFrontendInput' })
export type FrontendInput = z.infer<typeof FrontendInput>

export const FrontendView = z
  .strictObject({
    name: z.string(),
    port: FrontendFields.port,
    mode: FrontendFields.mode,
    backend: FrontendFields.backend,
    certificate_ids: z.array(z.string()),
    allowed_cidrs: z.array(z.string()),
    inbound_proxy_protocol: z.boolean(),
    idle_timeout_seconds: z.int(),
  })
  .meta({ id: 'LoadBalancerFrontend' })

const HealthCheckInput = z.strictObject({
  type: z.enum(HEALTH_CHECKS).default('tcp').describe('Check by connection, or by request.'),
  path: z
    .string()
    .max(255)
    .regex(HEALTH_PATH_PATTERN, 'must be a path, with a query or without')
    .default('/')
    .describe('Path of the http check.'),
  interval_seconds: within(HEALTH_INTERVAL_SECONDS).default(HEALTH_INTERVAL_SECONDS.default).describe('How often.'),
  timeout_seconds: within(HEALTH_TIMEOUT_SECONDS)
    .default(HEALTH_TIMEOUT_SECONDS.default)
    .describe('Seconds allowed for an answer.'),
  rise: within(HEALTH_COUNT)
    .default(HEALTH_COUNT.rise)
    .describe('Consecutive successes after which a member is healthy.'),
  fall: within(HEALTH_COUNT)
    .default(HEALTH_COUNT.fall)
    .describe('Consecutive failures after which a member is unhealthy.'),
  expected_statuses: z
    .array(z.string().regex(STATUSES_PATTERN, 'must be a status or a range of them, as 200 or 200-399'))
    .min(1)
    .max(EXPECTED_STATUSES_MAXIMUM)
    .default(['200-399'])
    .describe('HTTP statuses of a healthy member: single values or ranges.'),
})

const StickyCookie = z
  .strictObject({
    name: z
      .string()
      .regex(COOKIE_NAME_PATTERN, 'must be 1 to 64 letters, digits, dashes and underscores')
      .describe('Name of the cookie.'),
    ttl_seconds: within(STICKY_SECONDS).describe('Lifetime of the cookie in seconds.'),
  })
  .describe('Cookie that returns a client to the same member.')

export const BackendInput = z
  .strictObject({
    name: ConfigurationName.describe('Unique among the backends.'),
    algorithm: z
      .enum(ALGORITHMS)
      .default('round_robin')
      .describe('Algorithm that selects the member for a connection or request.'),
    health_check: HealthCheckInput.optional().describe('Health check of the members; by connection when omitted.'),
    proxy_protocol: z.enum(PROXY_PROTOCOLS).default('none').describe('PROXY header that members receive.'),
    sticky_cookie: StickyCookie.nullish(),
    members: z
      .array(MemberInput)
      .max(MEMBERS_OF_BACKEND_MAXIMUM)
      .default([])
      .describe('Members that receive the traffic.'),
  })
  .meta({ id: 'LoadBalancerBackendInput' })
export type BackendInput = z.infer<typeof BackendInput>

export const BackendView = z
  .strictObject({
    name: z.string(),
    algorithm: z.enum(ALGORITHMS),
    health_check: z.strictObject({
      type: z.enum(HEALTH_CHECKS).describe('Check by connection, or by request.'),
      path: z.string().describe('Path of the http check.'),
      interval_seconds: z.int(),
      timeout_seconds: z.int().describe('Seconds allowed for an answer.'),
      rise: z.int(),
      fall: z.int(),
      expected_statuses: z.array(z.string()),
    }),
    proxy_protocol: z.enum(PROXY_PROTOCOLS),
    sticky_cookie: z.strictObject({ name: z.string(), ttl_seconds: z.int() }).nullable(),
    members: z.array(MemberView),
  })
  .meta({ id: 'LoadBalancerBackend' })

export const CertificateView = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    dns_names: z.array(z.string()).describe('DNS names in the certificate.'),
    fingerprint_sha256: z.string(),
    not_before: DateTime,
    not_after: DateTime.describe('Time when it expires.'),
  })
  .meta({ id: 'LoadBalancerCertificate' })

export const Frontends = z.array(FrontendInput).max(FRONTENDS_MAXIMUM)
export const Backends = z.array(BackendInput).max(BACKENDS_MAXIMUM)

export const toStoredFrontend = (frontend: FrontendInput): StoredFrontend => ({
  name: frontend.name,
  port: frontend.port,
  mode: frontend.mode,
  backend: frontend.backend,
  certificateIds: frontend.certificate_ids,
  allowedCidrs: frontend.allowed_cidrs,
  inboundProxyProtocol: frontend.inbound_proxy_protocol,
  idleTimeoutSeconds: frontend.idle_timeout_seconds,
})

/** Members that keep their name keep their id. */
export function toStoredBackend(
  { name, algorithm, health_check: check, proxy_protocol: proxyProtocol, sticky_cookie: cookie, members }: BackendInput,
  idOf: (backend: string, member: string) => string,
): StoredBackend {
  return {
    name,
    algorithm,
    healthCheck: {
      type: check?.type ?? HEALTH_CHECK_DEFAULT.type,
      path: check?.path ?? HEALTH_CHECK_DEFAULT.path,
      intervalSeconds: check?.interval_seconds ?? HEALTH_CHECK_DEFAULT.intervalSeconds,
      timeoutSeconds: check?.timeout_seconds ?? HEALTH_CHECK_DEFAULT.timeoutSeconds,
      rise: check?.rise ?? HEALTH_CHECK_DEFAULT.rise,
      fall: check?.fall ?? HEALTH_CHECK_DEFAULT.fall,
      expectedStatuses: check?.expected_statuses ?? HEALTH_CHECK_DEFAULT.expectedStatuses,
    },
    proxyProtocol,
    ...(cookie === undefined || cookie === null
      ? {}
      : { stickyCookie: { name: cookie.name, ttlSeconds: cookie.ttl_seconds } }),
    members: members.map((member) => ({ ...member, id: idOf(name, member.name) })),
  }
}

export const toFrontendView = (frontend: StoredFrontend): z.infer<typeof FrontendView> =>
  viewOf(FrontendView, frontend, { allowed_cidrs: frontend.allowedCidrs.map(canonicalCidr) })

export const toBackendView = (
  { name, algorithm, healthCheck = HEALTH_CHECK_DEFAULT, proxyProtocol, stickyCookie, members }: StoredBackend,
  status: LoadBalancerStatus | undefined,
): z.infer<typeof BackendView> => ({
  name,
  algorithm,
  health_check: {
    type: healthCheck.type,
    path: healthCheck.path,
    interval_seconds: healthCheck.intervalSeconds,
    timeout_seconds: healthCheck.timeoutSeconds,
    rise: healthCheck.rise,
    fall: healthCheck.fall,
    expected_statuses: healthCheck.expectedStatuses,
  },
  proxy_protocol: proxyProtocol,
  sticky_cookie: stickyCookie === undefined ? null : { name: stickyCookie.name, ttl_seconds: stickyCookie.ttlSeconds },
  members: members.map((member) => toMemberView(name, member, status)),
})

export function toMemberView(
  backend: string,
  member: StoredMember,
  status: LoadBalancerStatus | undefined,
): MemberView {
  const { name, address, port, weight, enabled } = member
  const id = memberIdOf(member)
  const checked = status?.members?.find((one) => one.backend === backend && one.id === id)
  const is_healthy = enabled ? (checked?.isHealthy ?? null) : null
  return { id, name, address: canonicalAddress(address), port, weight, enabled, is_healthy }
}

export const toCertificateView = (certificate: StoredCertificate): z.infer<typeof CertificateView> =>
  viewOf(CertificateView, certificate, { fingerprint_sha256: certificate.fingerprint })
