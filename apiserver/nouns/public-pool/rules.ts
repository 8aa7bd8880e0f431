/** Rules of a pool of public addresses, for every interface. The database decides about overlaps. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { isPrivateNetwork } from '../../../domain/network/addresses.ts'
import { badField, conflict } from '../../../domain/problem.ts'
import { poolFault, poolsOverlap } from '../../../domain/public-pool/rules.ts'
import { countAllocated, poolOverlap } from '../../../db/public-pool/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { isRefusedPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../resources/public-pool/index.ts'
import type { Parts } from '../../kit/parts.ts'

export type PoolObject = KubeObject<PublicPoolSpec, PublicPoolStatus>

/** From its spec, otherwise derived from its network. */
export const isPrivateOf = ({ cidr, isPrivate }: Pick<PublicPoolSpec, 'cidr' | 'isPrivate'>): boolean =>
  isPrivate ?? isPrivateNetwork(cidr)

/** Throws 400 for an invalid pool of the zone. */
export function requireSound(
  { caches }: Pick<Parts, 'caches'>,
  spec: PublicPoolSpec,
  fieldOf: (field: string) => string,
): void {
  if (caches.of(Zone).get({ name: spec.zone }) === undefined)
    throw unknownZone(worldOf(caches), spec.zone, fieldOf('zone'))
  const fault = poolFault({ ...spec, isPrivate: isPrivateOf(spec) })
  if (fault !== undefined) throw badField(fieldOf(fault.field), fault.detail)
}

/** Throws 409 when the network of the pool overlaps that of another pool whose addresses are allocated, were allocated,
 *  or are about to be. */
export function requireApart(
  { id, cidr }: { readonly id: string; readonly cidr: string },
  pools: readonly PoolObject[],
): void {
  const clash = pools.find(
    ({ metadata, spec, status }) =>
      metadata.name !== id && !isRefusedPool({ spec, status }) && poolsOverlap(spec.cidr, cidr),
  )
  if (clash !== undefined) throw poolOverlap(cidr, clash.metadata.name)
}

/** Throws 409 while somebody has an address of the pool. */
export async function requireUnused({ db }: Pick<Parts, 'db'>, id: string): Promise<void> {
  const allocated = (await countAllocated(db, [id])).get(id) ?? 0
  if (allocated > 0)
    throw conflict(
      'in_use',
      `${allocated} of its addresses are in use. Drain the pool, and delete it when they are not.`,
      { resource: { type: 'public_pool', id } },
    )
}
