/** Server groups of an account. Answers come from PostgreSQL, where groups are claimed and servers placed by them; the
 *  object in Kubernetes says the same to kubectl and is written in one step with it. */
import { badField, badRequest, notFound } from '../../domain/problem.ts'
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
import type { Call, Customer } from '../../kit/http/call.ts'
import { etagOf, requireMatch } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { apiVersionOf } from '../../kit/kube/object.ts'
import { newOrderedUuid, newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ACCOUNT_LABEL, LAST_CHANGE_ANNOTATION, SERVER_GROUP_FINALIZER } from '../../resources/labels.ts'
import { Region, Zone } from '../../resources/catalog/index.ts'
import {
  type CreateServerGroup,
  createServerGroup,
  deleteServerGroup,
  getServerGroup,
  listServerGroups,
  ServerGroup,
  type ServerGroupSpec,
  type ServerGroupView,
  updateServerGroup,
} from '../../resources/server-group/index.ts'
import { accept, commitEarlier } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { ensureNamespace } from '../change/namespaces.ts'
import { readPageByTime } from '../list/page.ts'
import type { Parts } from '../parts.ts'

const FIRST_GENERATION = 1

export function serverGroupEndpoints(parts: Parts): readonly Endpoint[] {
  const { db, cursors } = parts
  parts.caches.of(Region)
  return [
    customerEndpoint(listServerGroups, async (call) => {
      const { accountId } = call.caller
      const { items, nextCursor } = await readPageByTime(
        cursors,
        call,
        (after, count) => listRows(db, accountId, after, count),
        (group) => group,
      )
      const counts = await countMembers(
        db,
        accountId,
        items.map(({ id }) => id),
      )
      return {
        status: 200,
        body: { items: items.map((group) => viewOf(group, counts.get(group.id) ?? 0)), next_cursor: nextCursor },
      }
    }),
    customerEndpoint(createServerGroup, async (call) => {
      const group = await create(parts, call)
      return { status: 201, body: { server_group: viewOf(group, 0) }, headers: { etag: etagOf(group.generation) } }
    }),
    customerEndpoint(getServerGroup, async ({ caller, params }) => {
      const group = await find(parts, caller, params.id)
      return {
        status: 200,
        body: { server_group: await wholeViewOf(parts, caller.accountId, group) },
        headers: { etag: etagOf(group.generation) },
      }
    }),
    customerEndpoint(updateServerGroup, async (call) => {
      const group = await rename(parts, call)
      const counts = await countMembers(db, call.caller.accountId, [group.id])
      return {
        status: 200,
        body: { server_group: viewOf(group, counts.get(group.id) ?? 0) },
        headers: { etag: etagOf(group.generation) },
      }
    }),
    customerEndpoint(deleteServerGroup, async (call) => {
      await remove(parts, call)
      return { status: 204 }
    }),
  ]
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

/** As only the single read shows it. */
async function wholeViewOf({ db }: Parts, accountId: string, group: Group): Promise<ServerGroupView> {
  const members = await listMembers(db, { accountId, groupId: group.id })
  const idsOf = (some: typeof members) => some.map(({ serverId }) => serverId)
  return {
    ...viewOf(group, members.length),
    members: idsOf(members),
    unmet_members: idsOf(unmetMembers(group.spread, members)),
  }
}

async function find({ db }: Parts, { accountId }: Customer, groupId: string): Promise<Group> {
  const group = await findServerGroup(db, { accountId, groupId })
  if (group === undefined) throw notFound('server group')
  return group
}

async function create(parts: Parts, call: Call<typeof createServerGroup, Customer>): Promise<Group> {
  const {
    caller: { accountId },
    body,
    now,
  } = call
  const id = newOrderedUuid(parts.random, now)
  const changeId = newUuid(parts.random)
  const group: Group = {
    id,
    name: body.name,
    ...chooseDomain(parts, body),
    isStrict: isStrict(body),
    generation: FIRST_GENERATION,
    createdAt: now,
  }
  const { namespace, ...key } = { namespace: accountNamespace(accountId), name: id }
  await accept(parts, {
    id: changeId,
    accountId,
    resource: { type: 'server_group', id },
    audit: auditEntryOf(call, { resourceId: id, detail: { name: body.name } }),
    claim: (tx) => addServerGroup(tx, accountId, group),
    release: async (tx) => void (await removeServerGroup(tx, { accountId, groupId: id })),
    write: async () => {
      await ensureNamespace(parts, accountId)
      const metadata = {
        ...key,
        namespace,
        labels: { [ACCOUNT_LABEL]: accountId },
        annotations: { [LAST_CHANGE_ANNOTATION]: changeId },
        finalizers: [SERVER_GROUP_FINALIZER],
      }
      return parts.store.create(ServerGroup, { metadata, spec: specOf(group) })
    },
    read: () => parts.store.get(ServerGroup, { namespace, ...key }),
    wasApplied: () => true, // nobody else has the id
  })
  return group
}

const specOf = ({ name, spread, zone, region, isStrict: strict }: Group): ServerGroupSpec => ({
  name,
  spread,
  strict,
  ...(zone === null ? { region } : { zone }),
})

/** Where the members live. Throws 400 for what does not exist or does not go together. */
export function chooseDomain(
  { caches }: Pick<Parts, 'caches'>,
  { spread, zone: zoneName, region }: Pick<CreateServerGroup, 'spread' | 'zone' | 'region'>,
): Pick<Group, 'spread' | 'zone' | 'region'> {
  const zone = zoneName === undefined ? undefined : caches.of(Zone).get({ name: zoneName })
  if (zoneName !== undefined && zone === undefined) throw badField('zone', 'there is no such zone')
  if (spread !== 'zone') {
    if (zoneName === undefined || zone === undefined) throw badField('zone', `is required for the spread ${spread}`)
    if (region !== undefined && region !== zone.spec.region) throw badField('region', 'is not that of the zone')
    return { spread, zone: zoneName, region: zone.spec.region }
  }
  const named = region ?? zone?.spec.region
  if (named === undefined) throw badField('region', 'is required for the spread zone')
  if (caches.of(Region).get({ name: named }) === undefined) throw badField('region', 'there is no such region')
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

async function rename(parts: Parts, call: Call<typeof updateServerGroup, Customer>): Promise<Group> {
  const {
    caller,
    params: { id },
    body,
    request,
  } = call
  const { accountId } = caller
  const before = await find(parts, caller, id)
  requireMatch(request, etagOf(before.generation))
  const changeId = newUuid(parts.random)
  const key = { namespace: accountNamespace(accountId), name: id }
  let group = before
  await accept(parts, {
    id: changeId,
    accountId,
    resource: { type: 'server_group', id },
    audit: auditEntryOf(call, {
      resourceId: id,
      changes: before.name === body.name ? [] : [{ field: 'name', before: before.name, after: body.name }],
    }),
    claim: async (tx) => {
      const renamed = await renameServerGroup(tx, { accountId, groupId: id }, body.name)
      if (renamed === undefined) throw notFound('server group')
      group = renamed
      requireMatch(request, etagOf(renamed.name === before.name ? renamed.generation : renamed.generation - 1))
    },
    release: async (tx) => void (await renameServerGroup(tx, { accountId, groupId: id }, before.name)),
    write: async () => {
      const object = await parts.store.get(ServerGroup, key)
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) throw notFound('server group')
      const earlier = object.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      const { resourceVersion } = object.metadata
      return parts.store.patch(ServerGroup, key, {
        metadata: { resourceVersion, annotations: { [LAST_CHANGE_ANNOTATION]: changeId } },
        spec: { name: body.name },
      })
    },
    read: () => parts.store.get(ServerGroup, key),
    wasApplied: (object) => object.metadata.annotations?.[LAST_CHANGE_ANNOTATION] === changeId,
  })
  return group
}

async function remove(parts: Parts, call: Call<typeof deleteServerGroup, Customer>): Promise<void> {
  const {
    caller,
    params: { id },
  } = call
  const { accountId } = caller
  const before = await find(parts, caller, id)
  const key = { namespace: accountNamespace(accountId), name: id }
  await accept(parts, {
    id: newUuid(parts.random),
    accountId,
    resource: { type: 'server_group', id },
    audit: auditEntryOf(call, { resourceId: id, detail: { name: before.name } }),
    claim: async (tx) => {
      if ((await removeServerGroup(tx, { accountId, groupId: id })) === undefined) throw notFound('server group')
    },
    release: (tx) => addServerGroup(tx, accountId, before),
    write: async () => {
      const object = await parts.store.get(ServerGroup, key)
      if (object === undefined)
        // it is gone already
        return { apiVersion: apiVersionOf(ServerGroup), kind: ServerGroup.kind, metadata: key, spec: specOf(before) }
      const earlier = object.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      await parts.store.delete(ServerGroup, key, object.metadata.uid === undefined ? {} : { uid: object.metadata.uid })
      return object
    },
    read: async () => undefined,
    wasApplied: () => false,
  })
}
