/** Servers that people make, change and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: that is the controller's part, once the object is there. */
import { isDeepStrictEqual } from 'node:util'
import { badField, badRequest, emailUnverified, forbidden } from '../../domain/problem.ts'
import { requireDeletable, requireIdle, requireStartable, requireStoppable } from '../../domain/server-rules.ts'
import { parsePublicKey } from '../../domain/ssh-key.ts'
import { checkStanding, standingOf } from '../../domain/standing.ts'
import { EDIT_ACTIONS, type EditAction } from '../../db/request/index.ts'
import { hasVerifiedOwner, readStanding } from '../../db/account/index.ts'
import { accountExists, claimServer, type ServerDemand } from '../../db/server/index.ts'
import { findServerGroup } from '../../db/server-group/index.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { SERVER_FINALIZER } from '../../resources/labels.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { factsOf, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Labels, Printable } from '../../resources/shapes.ts'
import { chooseSize } from './create.ts'
import type { ServerObject } from './servers.ts'
import { storedOf } from '../list/stored.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../admission/kind.ts'
import { rehearse } from '../admission/rehearse.ts'

const PLATFORM: PlatformFields = {
  noun: 'server',
  finalizer: SERVER_FINALIZER,
  goesWhen: 'the host side of the server is gone',
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, server: ServerObject): Promise<readonly AdmittedChange[]> {
  const { db, caches, clock } = parts
  const {
    metadata: { name, namespace = '' },
    spec,
  } = server
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || !(await accountExists(db, accountId)))
    throw badRequest('The namespace belongs to no account: servers live in acct-<id of the account>.')
  denyPlatformFields(server, undefined, PLATFORM)
  requireReadable(spec)
  requireOffered(spec)
  const now = clock.now()
  if (!(await hasVerifiedOwner(db, accountId))) throw emailUnverified()
  checkStanding(standingOf(await readStanding(db, accountId, now)))
  const { plan, region, storageGibibytes } = chooseSize(
    { caches },
    {
      zone: spec.zone,
      plan: spec.plan,
      template: spec.template,
      ...(spec.storageGibibytes === undefined ? {} : { storage_gibibytes: spec.storageGibibytes }),
    },
    now,
  )
  const { cores, memoryMebibytes, cpuPool } = plan
  await rehearseClaims(parts, {
    accountId,
    serverId: name,
    hostname: spec.hostname,
    zone: spec.zone,
    region,
    serverGroupId: spec.serverGroupId,
    publicIpv4: spec.publicIpv4,
    cores,
    memoryMebibytes,
    storageGibibytes,
    ...(cpuPool === undefined ? {} : { cpuPool }),
  })
  return [{ action: 'server.create', changes: [] }]
}

/** Claims everything in a transaction that is rolled back: quota, hostname and room are checked by the code that takes
 *  them. */
async function rehearseClaims(parts: AdmissionParts, demand: ServerDemand): Promise<void> {
  const { clock, random } = parts
  const { accountId, serverGroupId: groupId, ...rest } = demand
  // A group of the same manifest may come later, or its controller is about to claim it: the server waits for it.
  const isGroupKnown = groupId !== undefined && (await findServerGroup(parts.db, { accountId, groupId })) !== undefined
  await rehearse(parts, (tx) =>
    claimServer(
      tx,
      { accountId, ...rest, ...(isGroupKnown ? { serverGroupId: groupId } : {}) },
      { now: clock.now(), random },
    ),
  )
}

/** What is decided at creation. The kind refuses it too, unless an operation of the platform changes it. */
const FIXED = [
  'bootStorageId',
  'hostname',
  'zone',
  'plan',
  'template',
  'customImageId',
  'storageGibibytes',
  'userDataSecretName',
  'initScriptId',
  'serverGroupId',
  'publicIpv4',
] as const satisfies readonly (keyof ServerSpec)[]
/** What may be changed at any time, by the action that the API has for it. */
const FREE: Readonly<Record<EditAction, readonly (keyof ServerSpec)[]>> = {
  'server.update': ['title', 'labels', 'isProtected', 'sshKeys'],
  'server.ha_policy': ['haPolicy'],
  'server.migration_policy': ['migrationPolicy'],
}

/** Throws the Problem that the API would answer. */
function validateChange(server: ServerObject, before: ServerObject): readonly AdmittedChange[] {
  denyPlatformFields(server, before, PLATFORM)
  const isChanged = (field: keyof ServerSpec): boolean => !isDeepStrictEqual(server.spec[field], before.spec[field])
  const moved = FIXED.find(isChanged)
  if (moved !== undefined) throw badField(`spec.${moved}`, 'cannot be changed')
  if (isChanged('title') || isChanged('labels') || isChanged('sshKeys')) requireReadable(server.spec)
  const facts = factsOf(storedOf(before))
  const admitted: AdmittedChange[] = []
  if (isChanged('desiredPower')) {
    const isStart = server.spec.desiredPower === 'running'
    if (isStart) requireStartable(facts)
    else requireStoppable(facts)
    admitted.push({ action: isStart ? 'server.start' : 'server.stop', changes: [] })
  }
  if (isChanged('metadataEnabled')) {
    requireIdle(facts)
    admitted.push({ action: 'server.metadata', changes: [] })
  }
  const edits = EDIT_ACTIONS.map((action) => ({
    action,
    changes: FREE[action]
      .filter(isChanged)
      .map((field) => ({ field: snakeCase(field), before: before.spec[field], after: server.spec[field] })),
  }))
  return [...admitted, ...edits.filter(({ changes }) => changes.length > 0)]
}

/** Throws the Problem that the API would answer. Asking again for what happens already is no fault. */
function validateDeletion(server: ServerObject): readonly AdmittedChange[] {
  if (server.metadata.deletionTimestamp !== undefined) return []
  requireDeletable(factsOf(storedOf(server)))
  return [{ action: 'server.delete', changes: [] }]
}

function requireReadable({ title, labels, sshKeys, userDataSecretName }: ServerSpec): void {
  if (!Printable.safeParse(title).success) throw badField('spec.title', 'must be printable')
  const fault = Labels.safeParse(labels).error?.issues[0]
  if (fault !== undefined) throw badField(['spec.labels', ...fault.path].join('.'), fault.message)
  for (const [index, text] of sshKeys.entries()) {
    const key = parsePublicKey(text)
    if (typeof key === 'string') throw badField(`spec.sshKeys.${index}`, key)
  }
  if (sshKeys.length === 0 && userDataSecretName === undefined)
    throw badField('spec.sshKeys', 'a server needs at least one SSH key, or user data: nobody could sign in')
}

function requireOffered({ bootStorageId, customImageId, initScriptId }: ServerSpec): void {
  if (bootStorageId !== undefined) throw forbidden('spec.bootStorageId is written by the platform only.')
  if (customImageId !== undefined) throw badField('spec.customImageId', 'custom images are not offered here')
  if (initScriptId !== undefined)
    throw badField(
      'spec.initScriptId',
      'is set through the API only: put the text into a Secret and name it in spec.userDataSecretName',
    )
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export const serverAdmission: AdmissionRules<ServerSpec, ServerStatus> = {
  create: validateCreation,
  update: (_parts, server, before) => validateChange(server, before),
  delete: (_parts, before) => validateDeletion(before),
  reads: [Plan, Template, Zone],
  // A protected server stays, whoever cleans up around it.
  validatesCleanUp: true,
}
