/** Public shape and routes of load balancers, and the conversion from the stored shape. */
import { z } from 'zod'
import { PEM_BYTES_MAXIMUM } from '../../domain/load-balancer/certificate.ts'
import type { LoadBalancerFacts } from '../../domain/load-balancer/rules.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import {
  ById,
  DateTime,
  Id,
  LabelFilters,
  Labels,
  pageOf,
  PageQuery,
  PrintableName,
  type Stored,
  ZoneName,
} from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import {
  Backends,
  BackendView,
  CertificateView,
  ConfigurationName,
  Frontends,
  FrontendView,
  MemberChange,
  MemberInput,
  MemberView,
  toBackendView,
  toCertificateView,
  toFrontendView,
} from './configuration.ts'
import { getLoadBalancerMetrics } from './metrics.ts'
import { type LoadBalancerSpec, type LoadBalancerStatus, numberOf } from './stored.ts'

export const LOAD_BALANCER_STATES = ['creating', 'running', 'error', 'deleting'] as const

const Summary = z.strictObject({
  id: z.string(),
  zone: z.string(),
  name: z.string(),
  network_id: z.string(),
  plan: z.string().describe('Plan of each of its two machines.'),
  state: z.enum(LOAD_BALANCER_STATES),
  is_healthy: z.boolean().describe('Whether both of its machines are healthy.'),
  health_detail: z.string().describe('Human-readable description of the problem; empty when there is none.'),
  public_ipv4: z.string().nullable(),
  public_ipv6: z
    .string()
    .nullable()
    .describe('null without public_ipv4, and when the zone had no IPv6 addresses at creation.'),
  private_ipv4: z.string().nullable().describe('Its IPv4 address in the network.'),
  private_ipv6: z.string().nullable().describe('Its IPv6 address in the network.'),
  nodes: z
    .array(
      z.strictObject({
        id: z.string(),
        role: z.enum(['active', 'standby']).describe('Whether it has the addresses.'),
        is_healthy: z.boolean(),
        configuration_generation: z.int().describe('Generation of the configuration that it runs; 0 before the first.'),
      }),
    )
    .describe('Its machines.'),
  configuration_generation: z.int().describe('Increases with every accepted change of frontends and backends.'),
  is_configuration_applied: z.boolean().describe('Whether both machines run that configuration.'),
  labels: z.record(z.string(), z.string()),
  certificates: z.array(CertificateView).describe('Certificates without their keys.'),
  is_protected: z.boolean(),
  managed_by: z.string().nullable().describe('edge:<id> when it is part of that edge; null otherwise.'),
  active_operation: OperationView.nullable(),
  created_at: DateTime,
})
/** Shape in lists. */
export const LoadBalancerSummary = Summary.meta({ id: 'LoadBalancerSummary' })
export type LoadBalancerSummary = z.infer<typeof LoadBalancerSummary>

export const LoadBalancerView = Summary.extend({
  frontends: z.array(FrontendView).describe('Frontends.'),
  backends: z.array(BackendView).describe('Backends.'),
}).meta({ id: 'LoadBalancer' })
export type LoadBalancerView = z.infer<typeof LoadBalancerView>
export type StoredLoadBalancer = Stored<LoadBalancerSpec, LoadBalancerStatus>

/** A creation that ended without running machines is `error`. */
function stateOf({ spec, status, isDeleting }: StoredLoadBalancer): (typeof LOAD_BALANCER_STATES)[number] {
  if (isDeleting || spec.operation?.kind === 'load_balancer.delete') return 'deleting'
  if (status?.isMade === true) return 'running'
  return status?.operation?.status === 'failed' && status.operation.id === spec.operation?.id ? 'error' : 'creating'
}

export function toLoadBalancerSummary(balancer: StoredLoadBalancer): LoadBalancerSummary {
  const { name, spec, status, createdAt } = balancer
  const operation = activeOperationOf(balancer)
  const { generation, digest } = numberOf(spec)
  return viewOf(LoadBalancerSummary, spec, {
    id: name,
    state: stateOf(balancer),
    is_healthy: status?.isHealthy ?? false,
    health_detail: status?.healthDetail ?? '',
    public_ipv4: status?.publicIpv4 ?? null,
    public_ipv6: status?.publicIpv6 ?? null,
    private_ipv4: status?.privateIpv4 ?? null,
    private_ipv6: status?.privateIpv6 ?? null,
    nodes: (status?.nodes ?? []).map(({ id, role, isHealthy, configurationGeneration }) => ({
      id,
      role,
      is_healthy: isHealthy,
      configuration_generation: configurationGeneration,
    })),
    configuration_generation: generation,
    is_configuration_applied: status?.applied?.generation === generation && status.applied.digest === digest,
    certificates: spec.certificates.map(toCertificateView),
    active_operation:
      operation === undefined ? null : toOperationView(operation, namedTarget('load_balancer', balancer)),
    created_at: createdAt,
  })
}

export const toLoadBalancerView = (balancer: StoredLoadBalancer): LoadBalancerView => ({
  ...toLoadBalancerSummary(balancer),
  frontends: balancer.spec.frontends.map(toFrontendView),
  backends: balancer.spec.backends.map((backend) => toBackendView(backend, balancer.status)),
})

export function loadBalancerFactsOf(balancer: StoredLoadBalancer): LoadBalancerFacts {
  const { name: id, spec, isDeleting } = balancer
  const operation = activeOperationOf(balancer)
  return {
    id,
    isDeleting,
    isProtected: spec.isProtected,
    managedBy: spec.managedBy,
    configurationGeneration: numberOf(spec).generation,
    activeOperation: operation && { id: operation.id, kind: operation.kind },
    ownAddresses: ownAddressesOf(balancer.status),
  }
}

const ownAddressesOf = ({ nodes = [], ...status }: LoadBalancerStatus = {}): readonly string[] =>
  [
    status.publicIpv4,
    status.publicIpv6,
    status.privateIpv4,
    status.privateIpv6,
    ...nodes.flatMap(({ addresses }) => addresses),
  ].filter((address) => address !== undefined)

const Envelope = z.strictObject({ load_balancer: LoadBalancerView })
const MemberEnvelope = z.strictObject({ member: MemberView })
const OfBackend = ById.extend({ name: ConfigurationName.describe('Name of the backend.') })
const OfMember = OfBackend.extend({ member_id: Id })

export const CreateLoadBalancer = z
  .strictObject({
    zone: ZoneName,
    name: PrintableName.describe('Unique among the load balancers of the account in the zone.'),
    network_id: Id.describe('Private network of its members.'),
    plan: z.string().max(63).optional().describe('Plan of each of its two machines. Defaults to the smallest.'),
    public_ipv4: z
      .boolean()
      .default(true)
      .describe('Whether it has public addresses: IPv4, and IPv6 where the zone has it.'),
    labels: Labels.default({}),
    is_protected: z.boolean().default(false).describe('Whether deletion is refused.'),
    frontends: Frontends.default([]).describe(
      'Frontends. Frontends of mode https can be added once it has a certificate.',
    ),
    backends: Backends.default([]).describe('Backends.'),
  })
  .meta({ id: 'CreateLoadBalancer' })
export type CreateLoadBalancer = z.infer<typeof CreateLoadBalancer>

export const UpdateLoadBalancer = z
  .strictObject({
    name: PrintableName.optional(),
    labels: Labels.optional(),
    is_protected: z.boolean().optional().describe('Whether deletion is refused.'),
  })
  .meta({ id: 'UpdateLoadBalancer' })
export type UpdateLoadBalancer = z.infer<typeof UpdateLoadBalancer>

export const SetLoadBalancerConfiguration = z
  .strictObject({
    frontends: Frontends.describe('Complete list of frontends.'),
    backends: Backends.describe('Complete list of backends. Members that keep their name keep their id.'),
    configuration_generation: z
      .int()
      .min(1)
      .optional()
      .describe('Generation that this changes; any other generation is refused with 409.'),
  })
  .meta({ id: 'SetLoadBalancerConfiguration' })
export type SetLoadBalancerConfiguration = z.infer<typeof SetLoadBalancerConfiguration>

const Pem = z.string().min(1).max(PEM_BYTES_MAXIMUM)
export const AddCertificate = z
  .strictObject({
    name: ConfigurationName.describe('Unique among the certificates of the load balancer.'),
    certificate: Pem.describe('PEM: the server certificate first, then the certificates that signed it.'),
    private_key: Pem.describe('PEM of the unencrypted private key. It is stored encrypted and never returned.'),
  })
  .meta({ id: 'AddLoadBalancerCertificate' })

const verbs = verbsOf({
  path: '/v1/load-balancers',
  noun: 'load_balancer',
  view: LoadBalancerView,
})

export const listLoadBalancers = verbs.list('list_load_balancers', {
  summary: 'List load balancers',
  description: 'Newest first, without frontends and backends. A load balancer must have every given label.',
  clusterScopes: ['load_balancers'],
  query: PageQuery.extend({ zone: ZoneName.optional(), label: LabelFilters }),
  answers: { 200: pageOf(LoadBalancerSummary) },
})

export const createLoadBalancer = verbs.create('create_load_balancer', {
  summary: 'Create a load balancer',
  description:
    'Creates two machines of the plan with shared addresses: when one fails, the other takes over within seconds. ' +
    'They count against the server quotas and are billed like servers.',
  clusterScopes: ['load_balancers'],
  needs: 'standing',
  starts: ['load_balancer.create'],
  body: CreateLoadBalancer,
  example: {
    zone: 'eu-1a',
    name: 'web',
    network_id: '01a1ff50-8add-720c-b721-970d86569b30',
    frontends: [{ name: 'web', port: 80, mode: 'http', backend: 'web' }],
    backends: [{ name: 'web', members: [{ name: 'one', address: '10.1.0.10', port: 8080 }] }],
  },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const getLoadBalancer = verbs.read('get_load_balancer', {
  summary: 'Get a load balancer',
  clusterScopes: ['load_balancers'],
})

export const updateLoadBalancer = verbs.change('update_load_balancer', {
  summary: 'Update name, labels or protection of a load balancer',
  description: 'labels replaces all labels. With If-Match only that version is changed.',
  body: UpdateLoadBalancer,
  example: { is_protected: true },
})

export const deleteLoadBalancer = verbs.remove('delete_load_balancer', {
  summary: 'Delete a load balancer',
  description: 'Deletes its machines, addresses and certificates too.',
  clusterScopes: ['load_balancers'],
  starts: ['load_balancer.delete'],
})

export const setLoadBalancerConfiguration = verbs.put('set_load_balancer_configuration', '/{id}/configuration', {
  summary: 'Replace the configuration of a load balancer',
  description:
    'Replaces all frontends and backends, or none. The machines apply the change without interrupting ' +
    'connections; is_configuration_applied shows when they have.',
  clusterScopes: ['load_balancers'],
  audit: 'load_balancer.configure',
  body: SetLoadBalancerConfiguration,
  example: {
    frontends: [{ name: 'web', port: 80, mode: 'http', backend: 'web' }],
    backends: [{ name: 'web', members: [{ name: 'one', address: '10.1.0.10', port: 8080 }] }],
  },
  answers: { 200: Envelope },
  refuses: [400, 404, 409, 422],
})

export const addLoadBalancerMember = verbs.post('add_load_balancer_member', '/{id}/backends/{name}/members', {
  summary: 'Add a member to a backend',
  audit: 'load_balancer.member_add',
  params: OfBackend,
  body: MemberInput,
  example: { name: 'two', address: '10.1.0.11', port: 8080 },
  answers: { 201: MemberEnvelope },
  refuses: [400, 404, 409, 422],
})

export const updateLoadBalancerMember = verbs.patch(
  'update_load_balancer_member',
  '/{id}/backends/{name}/members/{member_id}',
  {
    summary: 'Update a member of a backend',
    audit: 'load_balancer.member_update',
    params: OfMember,
    body: MemberChange,
    example: { weight: 0 },
    answers: { 200: MemberEnvelope },
  },
)

export const removeLoadBalancerMember = verbs.delete(
  'remove_load_balancer_member',
  '/{id}/backends/{name}/members/{member_id}',
  {
    summary: 'Remove a member from a backend',
    description: 'The member receives nothing new; requests in progress complete.',
    audit: 'load_balancer.member_remove',
    params: OfMember,
  },
)

export const addLoadBalancerCertificate = verbs.post('add_load_balancer_certificate', '/{id}/certificates', {
  summary: 'Add a certificate to a load balancer',
  description:
    'Checks the chain, and that the key matches the certificate. The key is stored encrypted and never returned.',
  audit: 'load_balancer.certificate_add',
  body: AddCertificate,
  example: {
    name: 'www',
    certificate: '-----BEGIN CERTIFICATE-----\n...\n-----END CERTIFICATE-----\n',
    private_key: '-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n',
  },
  answers: { 201: z.strictObject({ certificate: CertificateView }) },
  refuses: [400, 404, 409, 422, 503],
})

export const removeLoadBalancerCertificate = verbs.delete(
  'remove_load_balancer_certificate',
  '/{id}/certificates/{certificate_id}',
  {
    summary: 'Remove a certificate from a load balancer',
    description: 'No frontend may use it.',
    audit: 'load_balancer.certificate_remove',
    params: ById.extend({ certificate_id: Id }),
  },
)

export const LOAD_BALANCER_ROUTES = [
  listLoadBalancers,
  createLoadBalancer,
  getLoadBalancer,
  updateLoadBalancer,
  deleteLoadBalancer,
  setLoadBalancerConfiguration,
  addLoadBalancerMember,
  updateLoadBalancerMember,
  removeLoadBalancerMember,
  addLoadBalancerCertificate,
  removeLoadBalancerCertificate,
  getLoadBalancerMetrics,
] as const
