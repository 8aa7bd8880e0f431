/** Server groups of accounts. Placement reads the row: adding a member and deleting the group lock it first, so that a
 *  group is never deleted while a server is added. A server is a member as long as it holds room on a node. */
import type { Selectable, Transaction } from 'kysely'
import { evacueeKey, type SpreadGroup } from '../../domain/node/evacuation.ts'
import type { Apartness, Place, Spread } from '../../domain/node/placement.ts'
import { badField, conflict } from '../../domain/problem.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface GroupId {
  readonly accountId: string
  readonly groupId: string
}

export interface ServerGroup {
  readonly id: string
  readonly name: string
  /** Null for a group whose members are in several zones of the region. */
  readonly zone: string | null
  readonly region: string
  readonly spread: Spread
  readonly isStrict: boolean
  /** Increases with every change, from 1. */
  readonly generation: number
  readonly createdAt: Date
}

export interface ServerGroupMember extends Place {
  readonly serverId: string
}

const holderOf = (groupId: string): `server_group/${string}` => `server_group/${groupId}`
const toGroup = ({
  id,
  name,
  zone,
  region,
  spread,
  is_strict,
  generation,
  created_at,
}: Selectable<Tables['server_group']>): ServerGroup => ({
  id,
  name,
  zone,
  region,
  spread,
  isStrict: is_strict,
  generation,
  createdAt: created_at,
})

/** Creates the group, once: an existing one stays as it is. Throws the Problems `quota_exceeded` (422) and `name_taken`
 *  (409). */
export async function addServerGroup(tx: Transaction<Tables>, accountId: string, group: ServerGroup): Promise<void> {
  await takeQuotas(tx, { accountId, holder: holderOf(group.id), amounts: { server_groups: 1 } })
  const { id, name, zone, region, spread, isStrict, generation, createdAt } = group
  const added = await tx
    .insertInto('server_group')
    .values({
      account_id: accountId,
      id,
      name,
      zone,
      region,
      spread,
      is_strict: isStrict,
      generation,
      created_at: createdAt,
    })
    .onConflict((conflicting) => conflicting.doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows === 0n)
    await requireFreeName(tx, 'server_group', { account_id: accountId, id, name })
}

/** Throws the Problem `name_taken` (409). Does nothing when it has that name already. */
export async function renameServerGroup(
  tx: Transaction<Tables>,
  group: GroupId,
  name: string,
): Promise<ServerGroup | undefined> {
  // The lock of the account's quota row serializes changes of names. It is always taken before that of the group.
  await selectWhere(tx, 'account_quota', { account_id: group.accountId, name: 'server_groups' })
    .select('name')
    .forUpdate()
    .execute()
  const before = await lockServerGroup(tx, group)
  if (before === undefined || before.name === name) return before
  await requireFreeName(tx, 'server_group', { account_id: group.accountId, id: group.groupId, name })
  const row = await updateWhere(tx, 'server_group', { account_id: group.accountId, id: group.groupId })
    .set((columns) => ({ name, generation: columns('generation', '+', 1) }))
    .returningAll()
    .executeTakeFirstOrThrow()
  return toGroup(row)
}

/** Does nothing when it does not exist. Throws the Problem `in_use` (409) while it has members. */
export async function removeServerGroup(
  tx: Transaction<Tables>,
  { accountId, groupId }: GroupId,
): Promise<ServerGroup | undefined> {
  await releaseQuotas(tx, { accountId, holder: holderOf(groupId) })
  const group = await lockServerGroup(tx, { accountId, groupId })
  if (group === undefined) return undefined
  const [count = 0] = (await countMembers(tx, accountId, [groupId])).values()
  if (count > 0)
    throw conflict(
      'in_use',
      `The group has ${count} ${count === 1 ? 'server' : 'servers'}. Delete ${count === 1 ? 'it' : 'them'} first.`,
      { resource: { type: 'server_group', id: groupId } },
    )
  await deleteWhere(tx, 'server_group', { account_id: accountId, id: groupId }).execute()
  return group
}

async function lockServerGroup(
  tx: Transaction<Tables>,
  { accountId, groupId }: GroupId,
): Promise<ServerGroup | undefined> {
  const row = await selectWhere(tx, 'server_group', { account_id: accountId, id: groupId })
    .selectAll()
    .forUpdate()
    .executeTakeFirst()
  return row && toGroup(row)
}

/** The constraint that keeps a server apart from the other members, locked until the transaction ends. `at` is the
 *  requested location.
 *  Throws 400 when the account has no such group at that location. */
export async function lockApartness(
  tx: Transaction<Tables>,
  group: GroupId,
  {
    serverId,
    zone,
    region,
  }: { readonly serverId: string; readonly zone: string; readonly region?: string | undefined },
): Promise<Apartness> {
  const found = await lockServerGroup(tx, group)
  if (found === undefined) throw badField('serverGroupId', 'the account has no such server group')
  if (found.zone === null ? region !== undefined && region !== found.region : found.zone !== zone)
    throw badField('serverGroupId', `the group is for servers in ${found.zone ?? found.region}`)
  const others = (await listGroupMembers(tx, group)).filter((member) => member.serverId !== serverId)
  return {
    spread: found.spread,
    isStrict: found.isStrict,
    members: [...others, ...(await listDestinations(tx, group, serverId))],
  }
}

/** Keeps a machine away from the nodes of the others that run for the same owner, where there are other nodes. Quotas
 *  are claimed before, so that an account claims one placement at a time. */
export async function machineApartness(
  db: Queries,
  { accountId, managedBy }: { readonly accountId: string; readonly managedBy: string },
  serverId: string,
): Promise<Apartness> {
  const members = await db
    .selectFrom('placement')
    .leftJoin('placement_target as target', (join) =>
      join
        .onRef('target.account_id', '=', 'placement.account_id')
        .onRef('target.server_id', '=', 'placement.server_id'),
    )
    .innerJoin('node_capacity as place', (join) =>
      join.on((on) =>
        on.or([on('place.node', '=', on.ref('placement.node')), on('place.node', '=', on.ref('target.node'))]),
      ),
    )
    .select(['place.node', 'place.zone', 'place.rack'])
    .where('placement.account_id', '=', accountId)
    .where('placement.managed_by', '=', managedBy)
    .where('placement.server_id', '<>', serverId)
    .execute()
  return { spread: 'host', isStrict: false, members }
}

/** Oldest first. */
export async function listGroupMembers(
  db: Queries,
  { accountId, groupId }: GroupId,
): Promise<readonly ServerGroupMember[]> {
  const rows = await db
    .selectFrom('placement')
    .innerJoin('node_capacity', 'node_capacity.node', 'placement.node')
    .select(['placement.server_id', 'placement.node', 'placement.zone', 'node_capacity.rack'])
    .where('placement.account_id', '=', accountId)
    .where('placement.group_id', '=', groupId)
    .orderBy('placement.claimed_at')
    .orderBy('placement.server_id')
    .execute()
  return rows.map(({ server_id, node, zone, rack }) => ({ serverId: server_id, node, zone, rack }))
}

/** The targets of other members' moves. */
async function listDestinations(
  db: Queries,
  { accountId, groupId }: GroupId,
  serverId: string,
): Promise<readonly Place[]> {
  return db
    .selectFrom('placement_target as target')
    .innerJoin('placement', (join) =>
      join
        .onRef('placement.account_id', '=', 'target.account_id')
        .onRef('placement.server_id', '=', 'target.server_id'),
    )
    .innerJoin('node_capacity', 'node_capacity.node', 'target.node')
    .select(['target.node', 'target.zone', 'node_capacity.rack'])
    .where('placement.account_id', '=', accountId)
    .where('placement.group_id', '=', groupId)
    .where('target.server_id', '<>', serverId)
    .execute()
}

/** The groups with other members of the servers on the node, by `evacueeKey`. Nothing is locked: the result may be
 *  outdated at once. */
export async function listGroupsOn(db: Queries, node: string): Promise<ReadonlyMap<string, SpreadGroup>> {
  const rows = await db
    .selectFrom('placement as own')
    .where('own.node', '=', node)
    .innerJoin('server_group', (join) =>
      join.onRef('server_group.account_id', '=', 'own.account_id').onRef('server_group.id', '=', 'own.group_id'),
    )
    .innerJoin('placement as other', (join) =>
      join
        .onRef('other.account_id', '=', 'own.account_id')
        .onRef('other.group_id', '=', 'own.group_id')
        .onRef('other.server_id', '<>', 'own.server_id'),
    )
    .leftJoin('placement_target as target', (join) =>
      join.onRef('target.account_id', '=', 'other.account_id').onRef('target.server_id', '=', 'other.server_id'),
    )
    .innerJoin('node_capacity as place', (join) =>
      join.on((on) =>
        on.or([on('place.node', '=', on.ref('other.node')), on('place.node', '=', on.ref('target.node'))]),
      ),
    )
    .select([
      'own.account_id',
      'own.server_id',
      'server_group.spread',
      'server_group.is_strict',
      'other.server_id as other_id',
      'place.node',
      'place.zone',
      'place.rack',
    ])
    .orderBy('own.account_id')
    .orderBy('own.server_id')
    .orderBy('other.server_id')
    .orderBy('place.node')
    .execute()
  const byServer = Map.groupBy(rows, ({ account_id, server_id }) => evacueeKey(account_id, server_id))
  return new Map(
    [...byServer].flatMap(([key, [first, ...rest]]) =>
      first === undefined
        ? []
        : [
            [
              key,
              {
                spread: first.spread,
                isStrict: first.is_strict,
                others: [first, ...rest].map(({ other_id, node: at, zone, rack }) => ({
                  serverId: other_id,
                  node: at,
                  zone,
                  rack,
                })),
              },
            ],
          ],
    ),
  )
}

/** By the id of the group; groups without members are not in it. */
export async function countMembers(
  db: Queries,
  accountId: string,
  groupIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (groupIds.length === 0) return new Map()
  const rows = await selectWhere(db, 'placement', { account_id: accountId })
    .select((columns) => ['group_id', columns.fn.countAll<number>().as('count')])
    .where('group_id', 'in', groupIds)
    .groupBy('group_id')
    .execute()
  return new Map(rows.map(({ group_id, count }) => [group_id ?? '', count]))
}

/** Undefined for unknown ids and those of another account. */
export async function findServerGroup(db: Queries, { accountId, groupId }: GroupId): Promise<ServerGroup | undefined> {
  const row = await selectWhere(db, 'server_group', { account_id: accountId, id: groupId })
    .selectAll()
    .executeTakeFirst()
  return row && toGroup(row)
}

/** Newest first, after the given position. */
export async function listServerGroups(
  db: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<readonly ServerGroup[]> {
  const groups = selectWhere(db, 'server_group', { account_id: accountId }).selectAll()
  const rows = await newestFirst(groups, after, limit).execute()
  return rows.map(toGroup)
}
