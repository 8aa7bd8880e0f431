/** What network edges need of their surroundings, whichever door a request comes through. */
import { edgeMachinesOf, type EdgeSurroundings, membersFault } from '../../domain/edge-rules.ts'
import { badField } from '../../domain/problem.ts'
import { capabilitiesOf, Zone } from '../../resources/catalog/index.ts'
import type { EdgeSpec } from '../../resources/edge/index.ts'
import type { AdmissionParts } from '../admission/kind.ts'
import { rehearseMachines, requireManagedMachines } from '../managed-machine/index.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'

/** Throws 400 for a zone that is not there, 503 for one that takes nothing new or has no image for machines, and 409
 *  for one without private networks. */
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
    throw badField(fields.members, 'are what a load balancer leads to: the edge does not have that role')
  const fault = membersFault(members, surroundings)
  if (fault === undefined) return
  const field = fault.field === 'frontendPort' ? fields.frontendPort : fault.field
  throw badField(`${fields.members}.${fault.index}.${field}`, fault.detail)
}

/** The addresses of its machines. */
export const ownAddressesOf = (
  machines: readonly { readonly [Field in AddressField]?: string | undefined }[] = [],
): readonly string[] => machines.flatMap((machine) => ADDRESS_FIELDS.flatMap((field) => machine[field] ?? []))
const ADDRESS_FIELDS = ['publicIpv4', 'publicIpv6', 'privateIpv4', 'privateIpv6'] as const
type AddressField = (typeof ADDRESS_FIELDS)[number]

interface RehearsedEdge {
  readonly accountId: string
  /** Of one that is there. */
  readonly edgeId?: string
  readonly spec: Pick<EdgeSpec, 'zone' | 'networkId' | 'roles' | 'placement' | 'plan'>
  /** Names of the machines that it has. */
  readonly made?: readonly string[]
}

/** Throws what the machines that it does not have yet would be refused with. */
export function rehearseEdge(parts: AdmissionParts, { accountId, edgeId, spec, made = [] }: RehearsedEdge) {
  const { zone, networkId, roles, placement, plan } = spec
  const missing = edgeMachinesOf(roles, placement).filter(({ name }) => !made.includes(name))
  return rehearseMachines(parts, {
    accountId,
    zone,
    ...(edgeId === undefined ? {} : { owner: { type: 'edge', id: edgeId } }),
    machines: missing.map(() => ({ plan, publicIpv4: true, networkIds: [networkId] })),
  })
}
