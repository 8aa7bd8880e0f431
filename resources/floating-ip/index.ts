/** FloatingIP: a public address of an account that points to one of its servers. Stored shape, public shape, conversion
 *  and routes. */
import { z } from 'zod'
import { type FloatingIpFacts, TARGET_PATTERN } from '../../domain/floating-ip/rules.ts'
import { resource } from '../kit/define.ts'
import { DateTime, Id, ReportedOperation, RequestedOrEditedOperation, type Stored, ZoneName } from '../kit/shapes.ts'
import { OperationView, activeOperationOf } from '../operation/index.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { AddressText, AppliedSequence, ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, ZONE } from '../kit/columns.ts'
import type { Use } from '../../domain/claim/use.ts'
import { use } from '../kit/uses.ts'

const TARGET_LENGTH_MAXIMUM = 253 + 'private:'.length

export const FloatingIp = resource({
  kind: 'FloatingIP',
  plural: 'floatingips',
  shortNames: ['fip'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A public IPv4 address of an account in a zone. It points to one server at a time: to its public address, or ' +
    'to its interface in a private network whose router has NAT. The address stays the same when it moves to ' +
    'another server.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the floating IP.'),
      serverId: z.string().min(1).max(253).optional().describe('Name of the assigned Server; unassigned when absent.'),
      target: z
        .string()
        .max(TARGET_LENGTH_MAXIMUM)
        .regex(TARGET_PATTERN)
        .optional()
        .describe(
          '`public` for the public address of the server, or `private:` with the name of a Network for its ' +
            'interface there; public when absent.',
        ),
      address: AddressText.optional().describe('Address that the API allocated. Written by the platform only.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('Target of the floating IP.'),
  status: z
    .strictObject({
      ...OBSERVED,
      address: AddressText.optional().describe('Its address.'),
      serverId: ObjectName.optional().describe('Name of the assigned Server.'),
      target: z
        .string()
        .max(TARGET_LENGTH_MAXIMUM)
        .optional()
        .describe('Address or interface of the server that it points to.'),
      appliedSequence: AppliedSequence,
      operation: ReportedOperation,
    })
    .describe('Observed target of the floating IP. Written by its controller.'),
  columns: [
    { name: 'Address', type: 'string', jsonPath: '.status.address' },
    { name: 'Server', type: 'string', jsonPath: '.status.serverId' },
    { name: 'Target', type: 'string', jsonPath: '.status.target' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone', '.spec.serverId'],
  fixed: ['zone', 'address'],
})
export type FloatingIpSpec = z.infer<typeof FloatingIp.spec>
export type FloatingIpStatus = z.infer<typeof FloatingIp.status>

export const FloatingIpView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    address: z.string(),
    server_id: z.string().nullable().describe('Assigned server; null while it is unassigned.'),
    target: z
      .string()
      .nullable()
      .describe(
        'public: the public address of the server. private:<network_id>: its interface in that network. null ' +
          'while unassigned.',
      ),
    created_at: DateTime,
  })
  .meta({ id: 'FloatingIP' })
export type FloatingIpView = z.infer<typeof FloatingIpView>
export type StoredFloatingIp = Stored<FloatingIpSpec, FloatingIpStatus>

/** The unique values of a floating IP: its address. */
export const usesOfFloatingIp = ({ spec, status }: Pick<StoredFloatingIp, 'spec' | 'status'>): readonly Use[] =>
  use('address', '', status?.address ?? spec.address)

export const toFloatingIpView = ({ name, createdAt, spec, status }: StoredFloatingIp): FloatingIpView => ({
  id: name,
  zone: spec.zone,
  address: status?.address ?? spec.address ?? '',
  server_id: spec.serverId ?? null,
  target: spec.serverId === undefined ? null : (spec.target ?? 'public'),
  created_at: createdAt,
})

export function floatingIpFactsOf(floatingIp: StoredFloatingIp): FloatingIpFacts {
  const operation = activeOperationOf(floatingIp)
  return {
    id: floatingIp.name,
    isAssigned: floatingIp.spec.serverId !== undefined,
    isDeleting: floatingIp.isDeleting || floatingIp.spec.operation?.arguments?.['action'] === 'release',
    activeOperation: operation && { id: operation.id },
  }
}

const Target = z
  .string()
  .max(253 + 'private:'.length)
  .regex(TARGET_PATTERN, 'must be public or private:<network_id>')
  .describe(
    'public: the public IPv4 address of the server. private:<network_id>: its interface in that network, which ' +
      'must have a router with NAT.',
  )

const Envelope = z.strictObject({ floating_ip: FloatingIpView })

const verbs = verbsOf({
  path: '/v1/floating-ips',
  noun: 'floating_ip',
  view: FloatingIpView,
})

export const listFloatingIps = verbs.listWhole('list_floating_ips', {
  summary: 'List floating IPs',
  description: 'All floating IPs, newest first.',
})

export const allocateFloatingIp = verbs.create('allocate_floating_ip', {
  summary: 'Allocate a floating IP',
  description:
    'With server_id it is assigned in the same step. The target is checked first, so a refused assignment ' +
    'allocates no address.',
  needs: 'standing',
  audit: 'floating_ip.allocate',
  starts: ['floating_ip.sync'],
  body: z.strictObject({
    zone: ZoneName,
    server_id: Id.nullish().describe('Server in the zone to assign it to; unassigned when omitted.'),
    target: Target.default('public'),
  }),
  example: { zone: 'eu-1a', server_id: '01a1ff50-8add-720c-b721-970d86569b22', target: 'public' },
  answers: {
    201: Envelope.extend({ operation: OperationView.optional().describe('Present when an assignment was started.') }),
  },
  refuses: [400, 404, 409, 422, 503],
})

export const getFloatingIp = verbs.read('get_floating_ip', { summary: 'Get a floating IP' })

export const releaseFloatingIp = verbs.remove('release_floating_ip', {
  summary: 'Release a floating IP',
  description: 'It must be unassigned. Its address returns to the pool.',
  audit: 'floating_ip.release',
  starts: ['floating_ip.sync'],
})

export const assignFloatingIp = verbs.post('assign_floating_ip', '/{id}/assign', {
  summary: 'Assign, move or unassign a floating IP',
  description:
    'Assigning it to another server moves it in one step: the previous server loses it immediately. Without ' +
    'server_id, or with null, it is unassigned.',
  audit: 'floating_ip.assign',
  starts: ['floating_ip.sync'],
  body: z.strictObject({
    server_id: Id.nullish().describe('Server in the zone to assign it to; unassigned when null or omitted.'),
    target: Target.default('public'),
  }),
  example: { server_id: '01a1ff50-8add-720c-b721-970d86569b22', target: 'public' },
})

export const FLOATING_IP_ROUTES = [
  listFloatingIps,
  allocateFloatingIp,
  getFloatingIp,
  releaseFloatingIp,
  assignFloatingIp,
] as const

export const managedFloatingIp = managed({
  noun: 'floating_ip',
  view: FloatingIpView,
  routes: { list: listFloatingIps, create: allocateFloatingIp, read: getFloatingIp, remove: releaseFloatingIp },
  names: ['address'],
  uniqueIn: 'account',
  changes: [{ by: assignFloatingIp, sets: ['server_id', 'target'] }],
  removeNeeds: { server_id: null },
  fields: { server_id: { refers: 'server' }, target: { nullWithout: 'server_id' } },
  facts: ['id', 'address', 'created_at'],
  moments: [],
})
