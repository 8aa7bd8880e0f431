/** Public pools: networks with addresses for servers and services. Stored and public shape, and the operators'
 *  routes. */
import { z } from 'zod'
import { canonicalCidr } from '../../domain/network/addresses.ts'
import { PUBLIC_POOL_STATES, POOL_USES, poolTotal } from '../../domain/public-pool/rules.ts'
import { resource } from '../kit/define.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import {
  DateTime,
  PageQuery,
  Printable,
  ReportedOperation,
  RequestedOrEditedOperation,
  type Stored,
  ZoneName,
} from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { AddressText, CidrText, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, STATE, ZONE } from '../kit/columns.ts'

export const PublicPool = resource({
  kind: 'PublicPool',
  plural: 'publicpools',
  shortNames: ['pool'],
  scope: 'Cluster',
  description: [
    'A network with addresses for servers and services of a zone: single IPv4 addresses, or a /64 each from an ' +
      'IPv6 network.',
    'In state draining it provides no new addresses, and servers may exchange their prefix. A deleted pool is ' +
      'removed when none of its addresses is in use.',
  ].join(' '),
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of its addresses.'),
      family: z.enum(['ipv4', 'ipv6']).describe('Address family.'),
      cidr: CidrText.min(1).describe(
        'The network, as in 203.0.113.0/24 or 2001:db8::/40. It must not overlap another pool.',
      ),
      use: z.enum(POOL_USES).describe('Use of the addresses.'),
      isPrivate: z
        .boolean()
        .optional()
        .describe('Whether the Internet does not route the network; derived from the network when absent.'),
      gateway: AddressText.min(1)
        .optional()
        .describe(
          'Default gateway of the addresses. When absent: the first address of an IPv4 network, fe80::1 for ' + 'IPv6.',
        ),
      announce: z
        .enum(['bgp', 'static'])
        .default('static')
        .describe(
          'How upstream routers of the zone learn about it. The platform only records this; the routers ' +
            'announce the network.',
        ),
      state: z
        .enum(['active', 'draining'])
        .default('active')
        .describe(
          'A draining pool provides no new addresses. Assigned ones stay until they are returned or exchanged.',
        ),
      note: z.string().max(1024).optional().describe('Note for other operators.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the pool.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z
        .enum(PUBLIC_POOL_STATES)
        .optional()
        .describe('Applied state; absent when the pool could not be activated.'),
      total: z.int().min(0).optional().describe('Total number of addresses or prefixes.'),
      operation: ReportedOperation,
    })
    .describe('Observed state. Written by its controller.'),
  columns: [
    ZONE,
    { name: 'Network', type: 'string', jsonPath: '.spec.cidr' },
    { name: 'Use', type: 'string', jsonPath: '.spec.use' },
    STATE,
    { name: 'Total', type: 'integer', jsonPath: '.status.total' },
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone', '.spec.use', '.status.state'],
  fixed: ['zone', 'family', 'cidr', 'use', 'isPrivate', 'gateway'],
})
export type PublicPoolSpec = z.infer<typeof PublicPool.spec>
export type PublicPoolStatus = z.infer<typeof PublicPool.status>

export const PublicPoolView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    family: z.enum(['ipv4', 'ipv6']),
    cidr: z.string(),
    use: z.enum(POOL_USES),
    is_private: z.boolean(),
    state: z.enum(PUBLIC_POOL_STATES),
    total: z.int(),
    allocated: z.int(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'PublicPool' })
export type PublicPoolView = z.infer<typeof PublicPoolView>

/** It could not be activated: it never provides addresses. */
export const isRefusedPool = ({
  spec,
  status,
}: Pick<Stored<PublicPoolSpec, PublicPoolStatus>, 'spec' | 'status'>): boolean =>
  status?.state === undefined && status?.operation !== undefined && activeOperationOf({ spec, status }) === undefined

/** `allocated` comes from the database; `isPrivate` follows from the network when the spec does not set it. */
export function toPublicPoolView(
  { name, createdAt, spec, status }: Stored<PublicPoolSpec, PublicPoolStatus>,
  { allocated, isPrivate }: { readonly allocated: number; readonly isPrivate: boolean },
): PublicPoolView {
  const { zone, family, cidr, use } = spec
  const operation = activeOperationOf({ spec, status })
  return {
    id: name,
    zone,
    family,
    cidr: canonicalCidr(cidr),
    use,
    is_private: isPrivate,
    state: status?.state ?? (isRefusedPool({ spec, status }) ? 'retired' : spec.state),
    total: status?.total ?? poolTotal(cidr),
    allocated,
    active_operation:
      operation === undefined ? null : toOperationView(operation, namedTarget('public_pool', { name, spec })),
    created_at: createdAt,
  }
}
const Note = Printable.max(1024)

const verbs = verbsOf({
  path: '/v1/operator/public-pools',
  noun: 'public_pool',
  view: PublicPoolView,
  staff: 'operations',
  access: { resource: 'publicpools', scope: 'cluster' },
})

export const listPublicPools = verbs.list('list_public_pools', {
  summary: 'List pools of public addresses',
  description: 'Newest first.',
  query: PageQuery.extend({ zone: ZoneName.optional(), family: z.enum(['ipv4', 'ipv6']).optional() }),
})

export const getPublicPool = verbs.read('get_public_pool', { summary: 'Get a pool of public addresses' })

export const createPublicPool = verbs.create('create_public_pool', {
  summary: 'Add a pool of public addresses',
  description: 'Its addresses are available after the operation has succeeded.',
  starts: ['public_pool.sync'],
  body: z.strictObject({
    zone: ZoneName,
    family: z.enum(['ipv4', 'ipv6']),
    cidr: CidrText.min(1).describe('The network, without host bits.'),
    use: z.enum(POOL_USES).describe('Use of the addresses: single IPv4 addresses, or a /64 each from an IPv6 network.'),
    is_private: z
      .boolean()
      .optional()
      .describe('Whether the Internet does not route the network. Derived from the network by default.'),
    gateway: AddressText.min(1)
      .nullish()
      .describe('Defaults to the first address of an IPv4 network, fe80::1 for IPv6.'),
    announce: z
      .enum(['bgp', 'static'])
      .default('static')
      .describe('How upstream routers of the zone learn about it. Recorded only; the routers announce the network.'),
  }),
  example: { zone: 'eu-1a', family: 'ipv6', cidr: '2001:db8::/40', use: 'server_ipv6_prefix' },
})

export const updatePublicPool = verbs.change('update_public_pool', {
  summary: 'Drain or reactivate a pool of public addresses',
  description:
    'A draining pool provides no new addresses. Servers with one of its prefixes may exchange it, and the owners ' +
    'of their accounts get an email. No operation starts if the pool has the requested state already.',
  starts: ['public_pool.sync'],
  body: z.strictObject({ state: z.enum(['active', 'draining']).optional(), note: Note.optional() }),
  example: { state: 'draining', note: 'Moves to another provider.' },
})

export const deletePublicPool = verbs.remove('delete_public_pool', {
  summary: 'Retire a pool of public addresses',
  description: 'None of its addresses may be in use. Prefixes that were exchanged are no longer routed afterwards.',
  starts: ['public_pool.sync'],
})

export const PUBLIC_POOL_ROUTES = [
  listPublicPools,
  getPublicPool,
  createPublicPool,
  updatePublicPool,
  deletePublicPool,
] as const
