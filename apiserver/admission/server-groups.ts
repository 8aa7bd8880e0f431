/** Server groups that people make, rename and delete past the API are judged as the API would: everything is checked, nothing is claimed. */
import { badField, badRequest, forbidden } from '../../domain/problem.ts'
import { accountExists } from '../../db/server-claims.ts'
import { addServerGroup, removeServerGroup, renameServerGroup } from '../../db/server-groups.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION, SERVER_GROUP_FINALIZER } from '../../resources/labels.ts'
import type { ServerGroupSpec, ServerGroupStatus } from '../../resources/server-group.ts'
import { PrintableName } from '../../resources/shapes.ts'
import { chooseDomain } from '../handlers/server-groups.ts'
import { type Asked, type JudgeParts, rehearse } from './servers.ts'

export type ServerGroupObject = KubeObject<ServerGroupSpec, ServerGroupStatus>

/** Throws the Problem that the API would answer. */
export async function judgeGroupCreation(parts: JudgeParts, group: ServerGroupObject): Promise<readonly Asked[]> {
  const { metadata: { name: id, namespace = '' }, spec } = group
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || !(await accountExists(parts.db, accountId))) throw badRequest('The namespace belongs to no account: server groups live in acct-<id of the account>.')
  requireUnforged(group, undefined)
  requireReadable(spec)
  const domain = chooseDomain(parts, { spread: spec.spread, ...(spec.zone === undefined ? {} : { zone: spec.zone }), ...(spec.region === undefined ? {} : { region: spec.region }) })
  await rehearse(parts, (tx) => addServerGroup(tx, accountId, { id, name: spec.name, ...domain, isStrict: spec.strict, generation: 1, createdAt: parts.clock.now() }))
  return [{ action: 'server_group.create', changes: [] }]
}

/** Throws the Problem that the API would answer. The kind itself refuses everything but another name. */
export async function judgeGroupChange(parts: JudgeParts, group: ServerGroupObject, before: ServerGroupObject): Promise<readonly Asked[]> {
  requireUnforged(group, before)
  const [{ name }, accountId] = [group.spec, accountOfNamespace(group.metadata.namespace ?? '')]
  if (name === before.spec.name || accountId === undefined) return []
  requireReadable(group.spec)
  await rehearse(parts, (tx) => renameServerGroup(tx, { accountId, groupId: group.metadata.name }, name))
  return [{ action: 'server_group.update', changes: [{ field: 'name', before: before.spec.name, after: name }] }]
}

/** Throws the Problem that the API would answer. */
export async function judgeGroupDeletion(parts: JudgeParts, { metadata: { name: groupId, namespace = '', deletionTimestamp } }: ServerGroupObject): Promise<readonly Asked[]> {
  const accountId = accountOfNamespace(namespace)
  if (deletionTimestamp !== undefined || accountId === undefined) return []
  await rehearse(parts, (tx) => removeServerGroup(tx, { accountId, groupId }))
  return [{ action: 'server_group.delete', changes: [] }]
}

function requireUnforged(group: ServerGroupObject, before: ServerGroupObject | undefined): void {
  const noteOf = (object: ServerGroupObject | undefined) => object?.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
  if (noteOf(group) !== noteOf(before)) throw forbidden(`The annotation ${LAST_CHANGE_ANNOTATION} is written by the platform only.`)
  const isHeld = before?.metadata.finalizers?.includes(SERVER_GROUP_FINALIZER) ?? false
  if (isHeld && !group.metadata.finalizers?.includes(SERVER_GROUP_FINALIZER)) throw forbidden('The finalizer goes when the group has no servers.')
}

function requireReadable({ name }: ServerGroupSpec): void {
  const fault = PrintableName.safeParse(name).error?.issues[0]
  if (fault !== undefined) throw badField('spec.name', fault.message)
}
