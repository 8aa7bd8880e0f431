/** Floating IPs as the API shows them: public shape, bridge from the stored one, routes. */
import { z } from 'zod'
import { type FloatingIpFacts, TARGET_PATTERN } from '../../domain/floating-ip/rules.ts'
import { activeOperationOf, OperationView } from '../operation/index.ts'
import { DateTime, Id, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import type { FloatingIpSpec, FloatingIpStatus } from './stored.ts'

export const FloatingIpView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    address: z.string(),
    server_id: z.string().nullable().describe('Server that it is assigned to; null while it is unassigned.'),
    target: z
      .string()
      .nullable()
      .describe('public: its public address; private:<network_id>: its interface there; null while unassigned.'),
    created_at: DateTime,
  })
  .meta({ id: 'FloatingIP' })
export type FloatingIpView = z.infer<typeof FloatingIpView>
export type StoredFloatingIp = Stored<FloatingIpSpec, FloatingIpStatus>

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
    'public: the public IPv4 address of the server; private:<network_id>: its interface there, where a router with ' +
      'NAT must be.',
  )

const Envelope = z.strictObject({ floating_ip: FloatingIpView })

const verbs = verbsOf({
  path: '/v1/floating-ips',
  area: 'Networking: floating IPs',
  noun: 'floating_ip',
  view: FloatingIpView,
})

export const listFloatingIps = verbs.listWhole('list_floating_ips', {
  summary: 'List floating IPs',
  description: 'All of them, newest first.',
})

export const allocateFloatingIp = verbs.create('allocate_floating_ip', {
  summary: 'Allocate a floating IP',
  description:
    'With server_id it is assigned in the same step: the target is checked first, so that a refused assignment keeps ' +
    'no address.',
  needs: 'standing',
  audit: 'floating_ip.allocate',
  starts: ['floating_ip.sync'],
  body: z.strictObject({
    zone: ZoneName,
    server_id: Id.nullish().describe('Server of the zone that it is assigned to; none when left out.'),
    target: Target.default('public'),
  }),
  example: { zone: 'eu-1a', server_id: '01a1ff50-8add-720c-b721-970d86569b22', target: 'public' },
  answers: {
    201: Envelope.extend({ operation: OperationView.optional().describe('Present when it is being assigned.') }),
  },
  refuses: [400, 404, 409, 422, 503],
})

export const getFloatingIp = verbs.read('get_floating_ip', { summary: 'Read a floating IP' })

export const releaseFloatingIp = verbs.remove('release_floating_ip', {
  summary: 'Release a floating IP',
  description: 'It must be unassigned. Its address returns to its pool.',
  audit: 'floating_ip.release',
  starts: ['floating_ip.sync'],
})

export const assignFloatingIp = verbs.post('assign_floating_ip', '/{id}/assign', {
  summary: 'Assign a floating IP to a server, move it or unassign it',
  description:
    'One that is assigned to another server is moved in one step: that server loses it at once. Without server_id, ' +
    'or with null, it is unassigned.',
  audit: 'floating_ip.assign',
  starts: ['floating_ip.sync'],
  body: z.strictObject({
    server_id: Id.nullish().describe('Server of the zone that it is assigned to; none when null or left out.'),
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
