/** Server groups of an account. Answers come from PostgreSQL, where groups are claimed and servers placed by them; the
 *  object in Kubernetes says the same to kubectl and is written in one step with it. */
import { badField, badRequest } from '../../domain/problem.ts'
import { unmetMembers } from '../../domain/placement.ts'
import {
  addServerGroup,
  countMembers,
  findServerGroup,
  listMembers,
  listServerGroups as listRows,
  removeServerGroup,
  renameServerGroup,
  type ServerGroup as Group,
} from '../../db/server-group/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { etagOf } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { newOrderedUuid } from '../../kit/sys/random.ts'
import { Region, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  type CreateServerGroup,
  createServerGroup,
  deleteServerGroup,
  getServerGroup,
  listServerGroups,
  ServerGroup,
  type ServerGroupSpec,
  type ServerGroupStatus,
  type ServerGroupView,
  updateServerGroup,
} from '../../resources/server-group/index.ts'
import { pageOfRows } from '../list/page.ts'
import { type ClaimedNoun, createClaimed, deleteClaimed, findClaimed, renameClaimed } from '../plain/claimed-objects.ts'
import type { Parts } from '../parts.ts'
import { unknownRegion, unknownZone } from '../catalog/index.ts'

const FIRST_GENERATION = 1

const SERVER_GROUP: ClaimedNoun<Group, ServerGroupSpec, ServerGroupStatus> = {
  name: 'server_group',
  title: 'server group',
  resource: ServerGroup,
  finalizer: finalizerOf(ServerGroup),
  specOf: ({ name, spread, zone, region, isStrict: strict }) => ({
    name,
    spread,
    strict,
    ...(zone === null ? { region } : { zone }),
  }),
  find: (queries, accountId, groupId) => findServerGroup(queries, { accountId, groupId }),
  claim: addServerGroup,
  rename: (tx, accountId, groupId, name) => renameServerGroup(tx, { accountId, groupId }, name),
  release: (tx, accountId, groupId) => removeServerGroup(tx, { accountId, groupId }),
}

export function serverGroupEndpoints(parts: Parts): readonly Endpoint[] {
  parts.caches.of(Region)
  return [
    customerEndpoint(listServerGroups, (call) => list(parts, call)),
    customerEndpoint(createServerGroup, async (call) => {
      const group: Group = {
        id: newOrderedUuid(parts.random, call.now),
        name: call.body.name,
        ...chooseDomain(parts, call.body),
        isStrict: isStrict(call.body),
        generation: FIRST_GENERATION,
        createdAt: call.now,
      }
      await createClaimed(parts, SERVER_GROUP, call, group)
      return answerOf(201, group, viewOf(group, 0))
    }),
    customerEndpoint(getServerGroup, async ({ caller: { accountId }, params }) => {
      const group = await findClaimed(parts, SERVER_GROUP, accountId, params.id)
      return answerOf(200, group, await wholeViewOf(parts, accountId, group))
    }),
    customerEndpoint(updateServerGroup, async (call) => {
      const group = await renameClaimed(parts, SERVER_GROUP, call, call.body.name)
      return answerOf(200, group, await wholeViewOf(parts, call.caller.accountId, group))
    }),
    customerEndpoint(deleteServerGroup, async (call) => {
      await deleteClaimed(parts, SERVER_GROUP, call)
      return { status: 204 }
    }),
  ]
}

const list = (parts: Parts, call: Call<typeof listServerGroups, Customer>): Promise<Answer> => {
  const { accountId } = call.caller
  return pageOfRows(
    parts,
    call,
    (after, count) => listRows(parts.db, accountId, after, count),
    (groups) => viewsOf(parts, accountId, groups),
  )
}

const answerOf = (status: 200 | 201, { generation }: Group, view: ServerGroupView | undefined): Answer => ({
  status,
  body: { server_group: view },
  headers: { etag: etagOf(generation) },
})

/** As lists show them. */
async function viewsOf({ db }: Parts, accountId: string, groups: readonly Group[]): Promise<ServerGroupView[]> {
  const counts = await countMembers(
    db,
    accountId,
    groups.map(({ id }) => id),
  )
  return groups.map((group) => viewOf(group, counts.get(group.id) ?? 0))
}

const viewOf = (
  { id, zone, region, name, spread, isStrict, createdAt }: Group,
  memberCount: number,
): ServerGroupView => ({
  id,
  zone,
  region,
  name,
  spread,
  strict: isStrict,
  policy: isStrict ? 'strict' : 'soft',
  member_count: memberCount,
  created_at: createdAt.toISOString(),
})

/** As the answers about one group show it. */
async function wholeViewOf({ db }: Parts, accountId: string, group: Group): Promise<ServerGroupView> {
  const members = await listMembers(db, { accountId, groupId: group.id })
  const idsOf = (some: typeof members) => some.map(({ serverId }) => serverId)
  return {
    ...viewOf(group, members.length),
    members: idsOf(members),
    unmet_members: idsOf(unmetMembers(group.spread, members)),
  }
}

/** Where the members live. Throws 400 for what does not exist or does not go together. */
export function chooseDomain(
  { caches }: Pick<Parts, 'caches'>,
  { spread, zone: zoneName, region }: Pick<CreateServerGroup, 'spread' | 'zone' | 'region'>,
): Pick<Group, 'spread' | 'zone' | 'region'> {
  const zone = zoneName === undefined ? undefined : caches.of(Zone).get({ name: zoneName })
  if (zoneName !== undefined && zone === undefined) throw unknownZone({ caches }, zoneName)
  if (spread !== 'zone') {
    if (zoneName === undefined || zone === undefined) throw badField('zone', `is required for the spread ${spread}`)
    if (region !== undefined && region !== zone.spec.region) throw badField('region', 'is not that of the zone')
    return { spread, zone: zoneName, region: zone.spec.region }
  }
  const named = region ?? zone?.spec.region
  if (named === undefined) throw badField('region', 'is required for the spread zone')
  if (caches.of(Region).get({ name: named }) === undefined) throw unknownRegion({ caches }, named)
  if (zone !== undefined && zone.spec.region !== named) throw badField('zone', 'is not of the region')
  return { spread, zone: null, region: named }
}

function isStrict({ strict, policy }: CreateServerGroup): boolean {
  if (strict !== undefined && policy !== undefined)
    throw badRequest('Send one of strict and policy.', [
      { field: 'policy', detail: 'is the older spelling of strict: send one of them' },
    ])
  return strict ?? policy === 'strict'
}
