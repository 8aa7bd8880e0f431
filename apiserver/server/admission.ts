/** What the API says no to, said to kubectl as well: servers that people make, change and delete past the API are
 *  judged by the same
 *  rules. Everything is checked and nothing is claimed: that is the controller's part, once the object is there. */
import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../domain/audit.ts'
import { badField, badRequest, emailUnverified, forbidden } from '../../domain/problem.ts'
import { requireDeletable, requireIdle, requireStartable, requireStoppable } from '../../domain/server-rules.ts'
import { parsePublicKey } from '../../domain/ssh-key.ts'
import { checkStanding, standingOf } from '../../domain/standing.ts'
import { EDIT_ACTIONS, type EditAction } from '../../db/request/kubernetes-requests.ts'
import { hasVerifiedOwner } from '../../db/account/members.ts'
import { accountExists, claimServer, type ServerDemand } from '../../db/server/claims.ts'
import { findServerGroup } from '../../db/server-group/index.ts'
import { readStanding } from '../../db/account/standing.ts'
import type { Tables } from '../../db/tables.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { SERVER_FINALIZER } from '../../resources/labels.ts'
import type { ServerSpec } from '../../resources/server/stored.ts'
import { factsOf } from '../../resources/server/routes.ts'
import { Labels, Printable } from '../../resources/shapes.ts'
import { chooseSize } from './create.ts'
import type { Parts } from '../parts.ts'
import type { ServerObject } from './servers.ts'
import { storedOf } from '../list/stored.ts'
import { type Protected, requireUnforged } from '../admission/platform-fields.ts'

const PROTECTED: Protected = {
  noun: 'server',
  finalizer: SERVER_FINALIZER,
  goesWhen: 'the host side of the server is gone',
}

export type JudgeParts = Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>

/** A change that may happen, by the name that the audit log has for it. */
export interface Asked {
  readonly action:
    | 'server.create'
    | 'server.start'
    | 'server.stop'
    | 'server.metadata'
    | 'server.delete'
    | EditAction
    | `node.${'cordon' | 'uncordon' | 'maintenance' | 'agent_upgrade'}`
    | `server_group.${'create' | 'update' | 'delete'}`
  readonly changes: readonly AuditChange[]
}

/** Throws the Problem that the API would answer. */
export async function judgeCreation(parts: JudgeParts, server: ServerObject): Promise<readonly Asked[]> {
  const { db, caches, clock } = parts
  const {
    metadata: { name, namespace = '' },
    spec,
  } = server
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || !(await accountExists(db, accountId)))
    throw badRequest('The namespace belongs to no account: servers live in acct-<id of the account>.')
  requireUnforged(server, undefined, PROTECTED)
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

/** Claims everything in a transaction that is rolled back: quota, hostname and room are judged by the code that takes
 *  them. */
async function rehearseClaims(parts: JudgeParts, demand: ServerDemand): Promise<void> {
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

/** Does the work in a transaction that is rolled back. */
export async function rehearse(
  { db }: Pick<JudgeParts, 'db'>,
  work: (tx: Transaction<Tables>) => Promise<unknown>,
): Promise<void> {
  const transaction = await db.startTransaction().execute()
  try {
    await work(transaction)
  } finally {
    await transaction.rollback().execute()
  }
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
export function judgeChange(server: ServerObject, before: ServerObject): readonly Asked[] {
  requireUnforged(server, before, PROTECTED)
  const isChanged = (field: keyof ServerSpec): boolean => !isDeepStrictEqual(server.spec[field], before.spec[field])
  const moved = FIXED.find(isChanged)
  if (moved !== undefined) throw badField(`spec.${moved}`, 'cannot be changed')
  if (isChanged('title') || isChanged('labels') || isChanged('sshKeys')) requireReadable(server.spec)
  const facts = factsOf(storedOf(before))
  const asked: Asked[] = []
  if (isChanged('desiredPower')) {
    const isStart = server.spec.desiredPower === 'running'
    if (isStart) requireStartable(facts)
    else requireStoppable(facts)
    asked.push({ action: isStart ? 'server.start' : 'server.stop', changes: [] })
  }
  if (isChanged('metadataEnabled')) {
    requireIdle(facts)
    asked.push({ action: 'server.metadata', changes: [] })
  }
  const edits = EDIT_ACTIONS.map((action) => ({
    action,
    changes: FREE[action]
      .filter(isChanged)
      .map((field) => ({ field: snakeCase(field), before: before.spec[field], after: server.spec[field] })),
  }))
  return [...asked, ...edits.filter(({ changes }) => changes.length > 0)]
}

/** Throws the Problem that the API would answer. Asking again for what happens already is no fault. */
export function judgeDeletion(server: ServerObject): readonly Asked[] {
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
