/** Server groups of an account. Answers come from PostgreSQL, where groups are claimed and servers placed by them; the
 *  object in Kubernetes shows the same to kubectl. */
import { serverGroupChanges } from '../../../changes/server-group.ts'
import { unmetMembers } from '../../../domain/node/placement.ts'
import { notFound } from '../../../domain/problem.ts'
import {
  countMembers,
  findServerGroup,
  listGroupMembers,
  listServerGroups as listRows,
  type ServerGroup as Group,
} from '../../../db/server-group/index.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { isDryRun } from '../../../kit/sys/dry-run.ts'
import { accountNamespace, accountOfNamespace } from '../../../resources/index.ts'
import {
  getServerGroup,
  listServerGroups,
  ServerGroup,
  type ServerGroupSpec,
  type ServerGroupStatus,
  type ServerGroupView,
} from '../../../resources/server-group/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { Server } from '../../../resources/server/index.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { besides, rowFeed, sourceOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'

type ServerGroupObject = KubeObject<ServerGroupSpec, ServerGroupStatus>

/** Those that have a row. */
const openServerGroups = (parts: Parts) => ({
  async read(accountId: string, id: string): Promise<ServerGroupObject> {
    await requireRow(parts, accountId, id)
    const group = await parts.store.get(ServerGroup, { namespace: accountNamespace(accountId), name: id })
    if (group === undefined) throw notFound('server group')
    return group
  },
  factsOf: (group: ServerGroupObject) => serverGroupChanges.factsOf(storedOf(group)),
  viewOf: (group: ServerGroupObject) => wholeViewOf(parts, group),
  createdOf: async (group: ServerGroupObject) => ({ server_group: viewOf(await rowOf(parts, group), 0) }),
})

/** Throws 404. */
async function requireRow({ db }: Pick<Parts, 'db'>, accountId: string, groupId: string): Promise<Group> {
  const group = await findServerGroup(db, { accountId, groupId })
  if (group === undefined) throw notFound('server group')
  return group
}

async function rowOf(parts: Parts, { metadata, spec }: ServerGroupObject): Promise<Group> {
  const { name: id, namespace = '', creationTimestamp } = metadata
  if (!isDryRun()) return requireRow(parts, accountOfNamespace(namespace) ?? '', id)
  // A dry run writes no row.
  const { name, zone = null, region = '', spread, strict: isStrict } = spec
  return { id, name, zone, region, spread, isStrict, generation: 1, createdAt: new Date(creationTimestamp ?? 0) }
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

/** In the form of answers about one group. */
async function wholeViewOf(parts: Parts, object: ServerGroupObject): Promise<ServerGroupView> {
  const group = await rowOf(parts, object)
  const accountId = accountOfNamespace(object.metadata.namespace ?? '') ?? ''
  const members = await listGroupMembers(parts.db, { accountId, groupId: group.id })
  const idsOf = (some: typeof members) => some.map(({ serverId }) => serverId)
  return {
    ...viewOf(group, members.length),
    members: idsOf(members),
    unmet_members: idsOf(unmetMembers(group.spread, members)),
  }
}

/** In the form of lists. */
async function viewsOf({ db }: Parts, accountId: string, groups: readonly Group[]): Promise<ServerGroupView[]> {
  const ids = groups.map(({ id }) => id)
  const counts = await countMembers(db, accountId, ids)
  return groups.map((group) => viewOf(group, counts.get(group.id) ?? 0))
}

function serverGroupEndpoints(parts: Parts): readonly Endpoint[] {
  const groups = openServerGroups(parts)
  return [
    customerEndpoint(listServerGroups, (call) => {
      const { accountId } = call.caller
      return pageOfRows(
        parts,
        call,
        (after, count) => listRows(parts.db, accountId, after, count),
        (rows) => viewsOf(parts, accountId, rows),
      )
    }),
    customerEndpoint(getServerGroup, async ({ caller: { accountId }, params }) => {
      const group = await groups.read(accountId, params.id)
      const body = { server_group: await wholeViewOf(parts, group) }
      return { status: 200, body, headers: { etag: etagOfObject(group) } }
    }),
    ...changeEndpoints(parts, serverGroupChanges, groups),
  ]
}

export const serverGroup = noun<Parts>({
  name: 'server_group',
  kinds: [kind(ServerGroup, { access: 'write', admission: admissionOf(serverGroupChanges) })],
  endpoints: serverGroupEndpoints,
  feeds: ({ db, caches, ...parts }) => [
    rowFeed(
      'server_group',
      listServerGroups,
      async (accountId, groupId) => {
        const group = isUuid(groupId) ? await findServerGroup(db, { accountId, groupId }) : undefined
        return group && (await viewsOf({ ...parts, db, caches }, accountId, [group]))[0]
      },
      [
        sourceOf(
          caches.of(ServerGroup),
          besides(({ metadata: { name } }) => [name]),
          { isOwn: true },
        ),
        sourceOf(
          caches.of(Server),
          besides(({ spec }) => [spec.serverGroupId]),
          { part: ({ spec }) => spec.serverGroupId },
        ),
      ],
    ),
  ],
})
