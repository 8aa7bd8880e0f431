/** What a load balancer has moved, as the API shows it: counted by its active machine since that began. */
import { z } from 'zod'
import { backendSection, frontendSection } from '../../domain/load-balancer/haproxy.ts'
import { route } from '../kit/define.ts'
import type { MachineReport } from '../managed-machine/index.ts'
import { ById, DateTime } from '../kit/shapes.ts'
import { type LoadBalancerSpec, memberIdOf } from './stored.ts'

const Count = z.int().min(0)
const Traffic = {
  open_connections: Count.describe('Now.'),
  connections: Count.describe('So far.'),
  received_bytes: Count.describe('From clients, so far.'),
  transmitted_bytes: Count.describe('To clients, so far.'),
}

export const LoadBalancerMetrics = z
  .strictObject({
    node_id: z.string().nullable().describe('The machine that counted; null while none has the addresses.'),
    observed_at: DateTime.nullable().describe('When it said so, within about half a minute; null before the first.'),
    frontends: z
      .array(z.strictObject({ name: z.string(), ...Traffic, requests: Count.describe('Of http and https, so far.') }))
      .describe('Of each frontend that the machine has reported.'),
    members: z.array(
      z.strictObject({ id: z.string(), backend: z.string().describe('Its pool.'), name: z.string(), ...Traffic }),
    ),
    omitted_members: Count.describe('Members of which the machine had no room to tell.'),
  })
  .meta({ id: 'LoadBalancerMetrics' })
export type LoadBalancerMetrics = z.infer<typeof LoadBalancerMetrics>

/** Who counted, and what it said. */
export interface Counted {
  readonly nodeId: string
  readonly observedAt: string
  readonly report: MachineReport
}

/** A report is what a guest says: of what it names only what the spec has is taken. */
export function toLoadBalancerMetrics(spec: LoadBalancerSpec, counted: Counted | undefined): LoadBalancerMetrics {
  const { frontends = [], servers = [], omitted = 0 } = counted?.report.haproxy ?? {}
  const frontendOf = new Map(frontends.map(([section, ...counts]) => [section, counts]))
  const memberOf = new Map(servers.map(([section, id, _status, ...counts]) => [`${section}/${id}`, counts]))
  return {
    node_id: counted?.nodeId ?? null,
    observed_at: counted?.observedAt ?? null,
    frontends: spec.frontends.flatMap(({ name }) => {
      const counts = frontendOf.get(frontendSection(name))
      return counts === undefined ? [] : [{ name, ...trafficOf(counts), requests: counts[4] }]
    }),
    members: spec.backends.flatMap(({ name: backend, members }) =>
      members.flatMap((member) => {
        const id = memberIdOf(member)
        const counts = memberOf.get(`${backendSection(backend)}/${id}`)
        return counts === undefined ? [] : [{ id, backend, name: member.name, ...trafficOf(counts) }]
      }),
    ),
    omitted_members: omitted,
  }
}

const trafficOf = ([open, connections, received, transmitted]: readonly [
  number,
  number,
  number,
  number,
  ...number[],
]) => ({
  open_connections: open,
  connections,
  received_bytes: received,
  transmitted_bytes: transmitted,
})

export const getLoadBalancerMetrics = route({
  id: 'get_load_balancer_metrics',
  method: 'GET',
  path: '/v1/load-balancers/{id}/metrics',
  area: 'Networking: load balancers',
  summary: 'Read what frontends and members of a load balancer have moved',
  permission: 'read',
  description:
    'Counted by the machine that has the addresses, since it began: after another took over, counts begin anew. What ' +
    'was not reported yet is missing.',
  params: ById,
  answers: { 200: LoadBalancerMetrics },
  refuses: [404],
})
