/** Room that guests use on a node without a claim, because PostgreSQL, or both stores, were restored to an older
 *  state. */
import { sql } from 'kysely'
import type { GuestOnNode, Room } from '../../domain/node/placement.ts'
import type { Queries } from '../kit/open.ts'
import { updateWhere } from '../kit/where.ts'

/** The guests on the node that no claim counts. */
const forgottenOn = (node: string, guests: readonly GuestOnNode[]) => sql<ForgottenRow>`
  select coalesce(sum(guest.cores), 0)::bigint as cores,
    coalesce(sum(guest.memory), 0)::bigint as "memoryMebibytes",
    coalesce(sum(guest.storage), 0)::bigint as "storageGibibytes"
  from unnest(
    ${guests.map(({ accountId = null }) => accountId)}::uuid[],
    ${guests.map(({ serverId = null }) => serverId)}::text[],
    ${guests.map(({ cores }) => cores)}::bigint[],
    ${guests.map(({ memoryMebibytes }) => memoryMebibytes)}::bigint[],
    ${guests.map(({ storageGibibytes }) => storageGibibytes)}::bigint[]
  ) as guest (account_id, server_id, cores, memory, storage)
  where not exists (
    select from placement
    where placement.account_id = guest.account_id and placement.server_id = guest.server_id
      and placement.node = ${node}
  ) and not exists (
    select from placement_target
    where placement_target.account_id = guest.account_id and placement_target.server_id = guest.server_id
      and placement_target.node = ${node}
  )`
type ForgottenRow = { readonly [Resource in keyof Room]: string | number }

/** The room on the node that these guests use and no claim counts. */
export async function findForgottenRoom(db: Queries, node: string, guests: readonly GuestOnNode[]): Promise<Room> {
  const [row] = guests.length === 0 ? [] : (await forgottenOn(node, guests).execute(db)).rows
  return {
    cores: Number(row?.cores ?? 0),
    memoryMebibytes: Number(row?.memoryMebibytes ?? 0),
    storageGibibytes: Number(row?.storageGibibytes ?? 0),
  }
}

/** Counts it as used from now on, on each node with some of the guests. Other nodes stay as they are. */
export async function countForgottenRoom(db: Queries, guests: readonly GuestOnNode[]): Promise<void> {
  for (const [node, those] of [...Map.groupBy(guests, ({ node }) => node)].sort(([one], [other]) =>
    one < other ? -1 : 1,
  ))
    await writeForgottenRoom(db, node, await findForgottenRoom(db, node, those))
}

export async function writeForgottenRoom(db: Queries, node: string, room: Room): Promise<void> {
  await updateWhere(db, 'node_capacity', { node })
    .set({
      cores_forgotten: room.cores,
      memory_mebibytes_forgotten: room.memoryMebibytes,
      storage_gibibytes_forgotten: room.storageGibibytes,
    })
    .execute()
}
