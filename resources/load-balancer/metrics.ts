/** Traffic of a load balancer as the API shows it: its active machine counts since it became active. */
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
  received_bytes: Count.describe('Bytes from clients so far.'),
  transmitted_bytes: Count.describe('Bytes to clients so far.'),
}

export const LoadBalancerMetrics = z
  .strictObject({
    node_id: z.string().nullable().describe('Machine that counted; null while none has the addresses.'),
    observed_at: DateTime.nullable().describe('Time of its report, within about half a minute; null before the first.'),
    frontends: z
      .array(
        z.strictObject({
          name: z.string(),
          ...Traffic,
          requests: Count.describe('Requests of http and https so far.'),
        }),
      )
      .describe('Counters of each frontend that the machine has reported.'),
    members: z.array(
      z.strictObject({ id: z.string(), backend: z.string().describe('Its pool.'), name: z.string(), ...Traffic }),
    ),
    omitted_members: Count.describe('Number of members that did not fit in the report.'),
  })
  .meta({ id: 'LoadBalancerMetrics' })
export type LoadBalancerMetrics = z.infer<typeof LoadBalancerMetrics>

/** The machine that counted, and its report. */
export interface CountingMachine {
  readonly nodeId: string
  readonly observedAt: string
  readonly report: MachineReport
}

/** A guest writes the report: only names that are in the spec are accepted. */
export function toLoadBalancerMetrics(
  spec: LoadBalancerSpec,
  counted: CountingMachine | undefined,
): LoadBalancerMetrics {
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
  summary: 'Get the traffic of the frontends and members of a load balancer',
  permission: 'read',
  description:
    'The machine with the addresses counts since it became active; after a takeover, counters start at zero. ' +
    'Traffic since the last report is missing.',
  params: ById,
  answers: { 200: LoadBalancerMetrics },
  refuses: [404],
})
