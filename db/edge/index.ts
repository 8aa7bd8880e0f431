/** Network edges of accounts: which network has which edge, and its gateway. A network has one edge. The row of a
 *  network is locked before that of its edge. */
import type { Transaction } from 'kysely'
import type { Gateway } from '../../domain/network/rules.ts'
import { conflict } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { lockNetwork, type NetworkId } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface EdgeId {
  readonly accountId: string
  readonly edgeId: string
}

export interface EdgeDemand extends EdgeId {
  readonly networkId: string
}

export interface EdgeClaim {
  readonly networkId: string
  readonly gateway: Gateway | undefined
  /** The key by which clients know its bastion; undefined before it has one. */
  readonly hostKey?: string | undefined
}

const holdingOf = ({ accountId, edgeId }: EdgeId) => ({ accountId, holder: `edge/${edgeId}` as const })

/** Does nothing when it is claimed already. Throws the Problems `quota_exceeded` (422), `in_use` (409) for a network
 *  with another edge, and 404 for a network that does not exist. */
export async function claimEdge(tx: Transaction<Tables>, demand: EdgeDemand): Promise<void> {
  const { accountId, edgeId, networkId } = demand
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { edges: 1 } })
  const { zone } = await lockNetwork(tx, demand)
  const result = await tx
    .insertInto('edge')
    .values({ account_id: accountId, id: edgeId, zone, network_id: networkId })
    .onConflict((clash) => clash.doNothing())
    .executeTakeFirst()
  if (result.numInsertedOrUpdatedRows !== 0n) return
  const holder = await findEdgeOf(tx, demand)
  if (holder?.edgeId === edgeId) return
  throw conflict(
    'in_use',
    'The network has an edge already. Change that one, or delete it first.',
    holder === undefined ? {} : { resource: { type: 'edge', id: holder.edgeId } },
  )
}

/** Undefined when nothing is claimed. */
export async function findEdge(db: Queries, { accountId, edgeId }: EdgeId): Promise<EdgeClaim | undefined> {
  const row = await selectWhere(db, 'edge', { account_id: accountId, id: edgeId })
    .select(['network_id', 'gateway_ipv4', 'gateway_ipv6', 'host_key'])
    .executeTakeFirst()
  return row && { networkId: row.network_id, gateway: gatewayOf(row), hostKey: row.host_key ?? undefined }
}

const gatewayOf = (row: {
  readonly gateway_ipv4: string | null
  readonly gateway_ipv6: string | null
}): Gateway | undefined =>
  row.gateway_ipv4 === null || row.gateway_ipv6 === null
    ? undefined
    : { ipv4: row.gateway_ipv4, ipv6: row.gateway_ipv6 }

/** The edge of the network; undefined when it has none. */
export async function findEdgeOf(
  db: Queries,
  { accountId, networkId }: NetworkId,
): Promise<{ readonly edgeId: string; readonly gateway: Gateway | undefined } | undefined> {
  const row = await selectWhere(db, 'edge', { account_id: accountId, network_id: networkId })
    .select(['id', 'gateway_ipv4', 'gateway_ipv6'])
    .executeTakeFirst()
  return row && { edgeId: row.id, gateway: gatewayOf(row) }
}

/** From now on the network's gateway is there, or it has none. */
export async function setGateway(
  tx: Transaction<Tables>,
  { accountId, edgeId, gateway }: EdgeId & { readonly gateway: Gateway | undefined },
): Promise<void> {
  await updateWhere(tx, 'edge', { account_id: accountId, id: edgeId })
    .set({ gateway_ipv4: gateway?.ipv4 ?? null, gateway_ipv6: gateway?.ipv6 ?? null })
    .execute()
}

export interface SealedHostKey {
  readonly hostKey: string
  readonly sealedHostKey: string
}

/** The owner that the key is sealed for. */
export const hostKeyOwner = ({ accountId, edgeId }: EdgeId): string => `edge_host_key/${accountId}/${edgeId}`

/** Its current key; the given one becomes its key when it has none. Undefined when nothing is claimed. */
export async function keepHostKey(
  db: Queries,
  { accountId, edgeId }: EdgeId,
  keyPair: SealedHostKey,
): Promise<SealedHostKey | undefined> {
  const row = await updateWhere(db, 'edge', { account_id: accountId, id: edgeId })
    .set(({ fn, val }) => ({
      host_key: fn.coalesce('host_key', val(keyPair.hostKey)),
      sealed_host_key: fn.coalesce('sealed_host_key', val(keyPair.sealedHostKey)),
    }))
    .returning(['host_key', 'sealed_host_key'])
    .executeTakeFirst()
  const { host_key: hostKey, sealed_host_key: sealedHostKey } = row ?? {}
  return hostKey == null || sealedHostKey == null ? undefined : { hostKey, sealedHostKey }
}

/** Idempotent. */
export async function releaseEdge(tx: Transaction<Tables>, id: EdgeId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'edge', { account_id: id.accountId, id: id.edgeId }).execute()
}
