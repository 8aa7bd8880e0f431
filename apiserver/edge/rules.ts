/** What network edges need of their surroundings, whichever door a request comes through. */
import { edgeMachinesOf, type EdgeSurroundings, hasPair, membersFault } from '../../domain/edge-rules.ts'
import { LOAD_BALANCER_MACHINES } from '../../domain/load-balancer.ts'
import { badField } from '../../domain/problem.ts'
import { claimLoadBalancer } from '../../db/load-balancer/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import { rehearse } from '../admission/rehearse.ts'
import { capabilitiesOf, Zone } from '../../resources/catalog/index.ts'
import type { EdgeSpec, EdgeStatus } from '../../resources/edge/index.ts'
import type { AdmissionParts } from '../admission/kind.ts'
import { rehearseMachines, requireManagedMachines } from '../managed-machine/index.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'

/** Throws 400 for a zone that is not there, 503 for one that takes nothing new, and 409 for one without private
 *  networks or without the image for machines. */
export function requireEdges(parts: Pick<Parts, 'caches'>, zone: string, field?: string): void {
  requirePrivateNetworks(parts, zone, field)
  requireManagedMachines(parts, zone)
}

/** Whether the zone has servers enough for a machine of each role. */
export function hasSeparateEdges({ caches }: Pick<Parts, 'caches'>, zone: string): boolean {
  const object = caches.of(Zone).get({ name: zone })
  return object !== undefined && capabilitiesOf(object).includes('separate_edges')
}

/** Where a request names the members and their fields. */
export interface MemberFields {
  readonly members: string
  readonly frontendPort: string
}

/** Throws 400 for members that the edge cannot have, and for any without a load balancer. */
export function requireMembers(
  members: EdgeSpec['members'],
  surroundings: EdgeSurroundings,
  fields: MemberFields,
): void {
  if (members.length > 0 && !surroundings.roles.includes('load_balancer'))
    throw badField(fields.members, 'are the targets of a load balancer: the edge does not have that role')
  const fault = membersFault(members, surroundings)
  if (fault === undefined) return
  const field = fault.field === 'frontendPort' ? fields.frontendPort : fault.field
  throw badField(`${fields.members}.${fault.index}.${field}`, fault.detail)
}

/** The addresses of its machines, and of its load balancer. */
export const ownAddressesOf = ({ machines = [], balancer }: EdgeStatus = {}): readonly string[] => [
  ...machines.flatMap((machine) => ADDRESS_FIELDS.flatMap((field) => machine[field] ?? [])),
  ...(balancer?.addresses ?? []),
]
const ADDRESS_FIELDS = ['publicIpv4', 'publicIpv6', 'privateIpv4', 'privateIpv6'] as const

interface RehearsedEdge {
  readonly accountId: string
  /** Of one that is there. */
  readonly edgeId?: string
  readonly spec: Pick<EdgeSpec, 'zone' | 'networkId' | 'roles' | 'placement' | 'plan'>
  /** What it has. */
  readonly status?: EdgeStatus | undefined
}

/** Throws what the machines and the load balancer that it does not have yet would be refused with. */
export async function rehearseEdge(parts: AdmissionParts, { accountId, edgeId, spec, status }: RehearsedEdge) {
  const { zone, networkId, roles, placement, plan } = spec
  const made = status?.machines ?? []
  const missing = edgeMachinesOf(roles, placement).filter(({ name }) => !made.some((one) => one.name === name))
  const pair = hasPair(roles, placement) && status?.balancer === undefined ? LOAD_BALANCER_MACHINES : []
  await rehearseMachines(parts, {
    accountId,
    zone,
    ...(edgeId === undefined ? {} : { owner: { type: 'edge', id: edgeId } }),
    machines: [
      ...missing.map(() => ({ plan, publicIpv4: true, networkIds: [networkId] })),
      ...pair.map(() => ({ plan, publicIpv4: false, networkIds: [networkId] })),
    ],
  })
  const network = parts.caches.of(Network).get({ namespace: accountNamespace(accountId), name: networkId })
  if (pair.length === 0 || network === undefined) return
  const loadBalancerId = newUuid(parts.random)
  await rehearse(parts, (tx) =>
    claimLoadBalancer(tx, { accountId, loadBalancerId, zone, name: loadBalancerId, networkId, publicIpv4: true }),
  )
}
