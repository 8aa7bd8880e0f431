/** What network edges need of their surroundings, whichever door a request comes through. */
import { type EdgeSurroundings, membersFault } from '../../domain/edge-rules.ts'
import { MANAGED_IMAGE_COMMAND } from '../../domain/managed-machine.ts'
import { badField, unavailable } from '../../domain/problem.ts'
import { serverQuota } from '../../domain/quota.ts'
import { takeQuotas } from '../../db/account/index.ts'
import { capabilitiesOf, Plan, Zone } from '../../resources/catalog/index.ts'
import type { EdgeSpec } from '../../resources/edge/index.ts'
import { offersManagedMachines } from '../../resources/managed-machine/index.ts'
import { rehearse } from '../admission/rehearse.ts'
import { requirePrivateNetworks } from '../network/index.ts'
import type { Parts } from '../parts.ts'

/** Throws 400 for a zone that is not there, 503 for one that takes nothing new or has no image for machines, and 409
 *  for one without private networks. */
export function requireEdges(parts: Pick<Parts, 'caches'>, zone: string, field?: string): void {
  requirePrivateNetworks(parts, zone, field)
  if (!offersManagedMachines(parts.caches.of(Zone).get({ name: zone })?.status))
    throw unavailable(
      'not_configured',
      `The zone ${zone} has no edges: its hosts have no image for their machines. An operator brings it by ` +
        `\`${MANAGED_IMAGE_COMMAND}\`.`,
    )
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

/** Throws the Problem `quota_exceeded` (422) when the account may not have its machines. */
export async function requireQuota(
  parts: Pick<Parts, 'db' | 'caches'>,
  { accountId, plan, machines }: { readonly accountId: string; readonly plan: string; readonly machines: number },
): Promise<void> {
  const size = parts.caches.of(Plan).get({ name: plan })?.spec
  if (size === undefined || machines === 0) return
  const holdings = Array.from({ length: machines }, (_, index) => ({
    accountId,
    holder: `rehearsal/${index}`,
    amounts: serverQuota(size),
  }))
  await rehearse(parts, (tx) => takeQuotas(tx, ...holdings))
}
