/** Rules of managed databases about other resources, for every interface. */
import { requirePrivateNetworks } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { DATABASE_IMAGE_COMMAND } from '../../../domain/managed-machine/rules.ts'
import { badField, notFound, notImplemented, zoneLacks } from '../../../domain/problem.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import type { DatabaseSpec } from '../../../resources/database/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { offersDatabases } from '../../../resources/managed-machine/index.ts'
import { Network } from '../../../resources/network/index.ts'
import type { AdmissionParts } from '../../kit/admission/kind.ts'
import { rehearseMachines } from '../managed-machine/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Rename } from '../../kit/words.ts'

/** Throws 400 for a zone that does not exist, and 409 for one without private networks, or whose hosts have no image of
 *  databases. */
export function requireDatabases(parts: Pick<Parts, 'caches'>, zone: string, field?: string): void {
  requirePrivateNetworks(worldOf(parts.caches), zone, field)
  if (offersDatabases(parts.caches.of(Zone).get({ name: zone })?.status)) return
  throw zoneLacks(
    'databases',
    `The zone ${zone} has no databases: on each host its operator runs: ${DATABASE_IMAGE_COMMAND}`,
  )
}

/** Throws 400 where the region has one zone, and 501 elsewhere. */
export function refuseZoneRedundancy({ caches }: Pick<Parts, 'caches'>, zone: string): never {
  const zones = caches.of(Zone)
  const region = zones.get({ name: zone })?.spec.region
  const others = zones.list().filter(({ spec }) => spec.region === region)
  if (others.length < 2) throw badField('zone_redundant', 'needs another zone in the region')
  throw notImplemented('Databases with a replica in another zone are not offered yet.')
}

/** Throws 404 for a network that does not exist. */
export function requireNetwork({ caches }: Pick<Parts, 'caches'>, accountId: string, networkId: string): void {
  const network = caches.of(Network).get({ namespace: accountNamespace(accountId), name: networkId })
  if (network === undefined) throw notFound('network')
}

/** Throws the refusal that its machine would get, in the words of the interface. */
export const rehearseDatabase = (
  parts: AdmissionParts,
  rename: Rename,
  accountId: string,
  { zone, networkId, plan }: Pick<DatabaseSpec, 'zone' | 'networkId' | 'plan'>,
): Promise<void> =>
  rehearseMachines(parts, rename, { accountId, zone, machines: [{ plan, publicIpv4: false, networkIds: [networkId] }] })
