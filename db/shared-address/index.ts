/** Addresses of private networks that several machines of one holder share: they move one among themselves, and no
 *  server ever gets it. A holder is `load_balancer/<id>` or the like, and has one pair in a network. */
import type { Transaction } from 'kysely'
import type { ChosenAddresses } from '../../domain/network/interfaces.ts'
import { chooseAddresses } from '../network-interface/index.ts'
import { lockNetwork, type NetworkId } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

export interface SharedAddressId extends NetworkId {
  readonly holder: string
}

export interface SharedAddress {
  readonly ipv4Address: string
  readonly ipv6Address: string
}

/** Claims a pair of addresses, once: the holder's existing pair stays as it is. Throws 404 for an unknown network, 400
 *  for addresses that its hosts cannot have, and the Problems `in_use` (409) for one that is taken and
 *  `no_free_address` (503) for a network that is full. */
export async function claimSharedAddress(
  tx: Transaction<Tables>,
  { accountId, networkId, holder, ...chosen }: SharedAddressId & ChosenAddresses,
): Promise<SharedAddress> {
  const network = await lockNetwork(tx, { accountId, networkId })
  const known = await findSharedAddress(tx, { accountId, networkId, holder })
  if (known !== undefined) return known
  const addresses = await chooseAddresses(tx, { accountId, networkId }, network, chosen)
  await tx
    .insertInto('shared_address')
    .values({
      account_id: accountId,
      network_id: networkId,
      holder,
      ipv4_address: addresses.ipv4Address,
      ipv6_address: addresses.ipv6Address,
    })
    .execute()
  return addresses
}

/** Undefined when the holder has none there. */
export async function findSharedAddress(
  db: Queries,
  { accountId, networkId, holder }: SharedAddressId,
): Promise<SharedAddress | undefined> {
  const row = await selectWhere(db, 'shared_address', { account_id: accountId, network_id: networkId, holder })
    .select(['ipv4_address', 'ipv6_address'])
    .executeTakeFirst()
  return row && { ipv4Address: row.ipv4_address, ipv6Address: row.ipv6_address }
}

/** Releases everything that the holder has, in every network. Idempotent. */
export async function releaseSharedAddresses(
  tx: Transaction<Tables>,
  { accountId, holder }: Omit<SharedAddressId, 'networkId'>,
): Promise<void> {
  await deleteWhere(tx, 'shared_address', { account_id: accountId, holder }).execute()
}
