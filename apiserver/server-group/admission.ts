/** Server groups that people make, rename and delete past the API must satisfy its rules: everything is checked,
 *  nothing is claimed. */
import { badField } from '../../domain/problem.ts'
import { addServerGroup, removeServerGroup, renameServerGroup } from '../../db/server-group/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { Region, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import { ServerGroup, type ServerGroupSpec, type ServerGroupStatus } from '../../resources/server-group/index.ts'
import { PrintableName } from '../../resources/shapes.ts'
import { chooseDomain } from './endpoints.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireAccount } from '../admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../admission/kind.ts'
import { rehearse } from '../admission/rehearse.ts'

const PLATFORM: PlatformFields = {
  noun: 'group',
  finalizer: finalizerOf(ServerGroup),
  goesWhen: 'the group has no servers',
}

type ServerGroupObject = KubeObject<ServerGroupSpec, ServerGroupStatus>

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, group: ServerGroupObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: id },
    spec,
  } = group
  const accountId = await requireAccount(parts, group, 'server groups')
  denyPlatformFields(group, undefined, PLATFORM)
  requireReadable(spec)
  const domain = chooseDomain(parts, {
    spread: spec.spread,
    ...(spec.zone === undefined ? {} : { zone: spec.zone }),
    ...(spec.region === undefined ? {} : { region: spec.region }),
  })
  await rehearse(parts, (tx) =>
    addServerGroup(tx, accountId, {
      id,
      name: spec.name,
      ...domain,
      isStrict: spec.strict,
      generation: 1,
      createdAt: parts.clock.now(),
    }),
  )
  return [{ action: 'server_group.create', changes: [] }]
}

/** Throws the Problem that the API would answer. The kind itself refuses everything but another name. */
async function validateChange(
  parts: AdmissionParts,
  group: ServerGroupObject,
  before: ServerGroupObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(group, before, PLATFORM)
  const [{ name }, accountId] = [group.spec, accountOfNamespace(group.metadata.namespace ?? '')]
  if (name === before.spec.name || accountId === undefined) return []
  requireReadable(group.spec)
  await rehearse(parts, (tx) => renameServerGroup(tx, { accountId, groupId: group.metadata.name }, name))
  return [{ action: 'server_group.update', changes: [{ field: 'name', before: before.spec.name, after: name }] }]
}

/** Throws the Problem that the API would answer. */
async function validateDeletion(
  parts: AdmissionParts,
  { metadata: { name: groupId, namespace = '', deletionTimestamp } }: ServerGroupObject,
): Promise<readonly AdmittedChange[]> {
  const accountId = accountOfNamespace(namespace)
  if (deletionTimestamp !== undefined || accountId === undefined) return []
  await rehearse(parts, (tx) => removeServerGroup(tx, { accountId, groupId }))
  return [{ action: 'server_group.delete', changes: [] }]
}

function requireReadable({ name }: ServerGroupSpec): void {
  const fault = PrintableName.safeParse(name).error?.issues[0]
  if (fault !== undefined) throw badField('spec.name', fault.message)
}

export const serverGroupAdmission: AdmissionRules<ServerGroupSpec, ServerGroupStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: validateDeletion,
  reads: [Region, Zone],
}
