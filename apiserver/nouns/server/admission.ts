/** Servers that people create, change and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: the controller claims, once the object exists. */
import { requireDiskSize } from '../../../domain/storage/rules.ts'
import { requireReadableSchedule, requireScheduleZone } from '../../../changes/kit/backups.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { firewallFaults, NO_FIREWALL } from '../../../domain/server/firewall.ts'
import { badField, forbidden } from '../../../domain/problem.ts'
import {
  requireDeletable,
  requireIdle,
  requireStartable,
  requireStoppable,
  requireStopped,
} from '../../../domain/server/rules.ts'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'
import { attachInterface, type InterfaceDemand, leaveNetwork } from '../../../db/network-interface/index.ts'
import { acceptSizeChange, claimServer, type ServerDemand } from '../../../db/server/index.ts'
import { findServerGroup } from '../../../db/server-group/index.ts'
import { requireNoBootHolds } from '../../../db/storage-hold/index.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Network } from '../../../resources/network/index.ts'
import { Server, factsOf, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { choosePlan } from './change-plan.ts'
import { chooseSize } from './create.ts'
import { requireFilter } from './firewall.ts'
import { chooseSystem } from './system.ts'
import type { ServerObject } from './objects.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import {
  type AdmissionParts,
  type AdmissionRules,
  type AdmittedChange,
  editedFields,
} from '../../kit/admission/kind.ts'
import { requireLabels, requirePrintableTitle } from '../../kit/admission/readable-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'

const PLATFORM: PlatformFields = {
  noun: 'server',
  finalizer: finalizerOf(Server),
  goesWhen: 'the host side of the server is removed',
}

/** Throws the Problem that the API would answer. */
async function validateCreation(parts: AdmissionParts, server: ServerObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name, namespace = '' },
    spec,
  } = server
  const accountId = await requireAccount(parts, server, 'servers')
  denyPlatformFields(server, undefined, PLATFORM)
  requireReadable(spec)
  requireOffered(spec)
  requireFirewall(parts, spec)
  requireReadableSchedule(spec, 'spec.backupSchedule')
  requireScheduleZone(worldOf(parts.caches), spec)
  await requireStanding(parts, accountId)
  const system = await chooseSystem(parts, {
    namespace,
    zone: spec.zone,
    template: spec.template,
    custom_image_id: spec.customImageId,
    now: parts.clock.now(),
  })
  const { plan, region, storageGibibytes } = chooseSize(
    parts,
    {
      zone: spec.zone,
      plan: spec.plan,
      ...defined({ storage_gibibytes: spec.storageGibibytes }),
    },
    system,
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
    networks: networkDemands(parts, namespace, spec.networks ?? []),
    cores,
    memoryMebibytes,
    storageGibibytes,
    ...defined({ cpuPool }),
  })
  return [{ action: 'server.create', changes: [] }]
}

/** Claims everything in a transaction that is rolled back: quota, hostname and room are checked by the code that claims
 *  them. */
async function rehearseClaims(parts: AdmissionParts, demand: ServerDemand): Promise<void> {
  const { clock, random } = parts
  const { accountId, serverGroupId: groupId, ...rest } = demand
  // A group of the same manifest may be created later, or its controller is about to claim it: the server waits for it.
  const isGroupKnown = groupId !== undefined && (await findServerGroup(parts.db, { accountId, groupId })) !== undefined
  await rehearse(parts, (tx) =>
    claimServer(
      tx,
      { accountId, ...rest, ...(isGroupKnown ? { serverGroupId: groupId } : {}) },
      { now: clock.now(), random },
    ),
  )
}

/** Fields that are fixed at creation. The kind refuses changes too, unless an operation of the platform makes them. */
const FIXED = [
  'bootStorageId',
  'hostname',
  'zone',
  'template',
  'customImageId',
  'userDataSecretName',
  'initScriptId',
  'serverGroupId',
  'publicIpv4',
  'managedBy',
  'sharedAddresses',
  'backupSchedule',
] as const satisfies readonly (keyof ServerSpec)[]
/** Fields that may be changed at any time, by the action that the API has for it. */
const FREE = {
  'server.update': ['title', 'labels', 'isProtected', 'sshKeys'],
  'server.ha_policy': ['haPolicy'],
  'server.migration_policy': ['migrationPolicy'],
} as const satisfies Record<AdmittedChange['action'], readonly (keyof ServerSpec)[]>
// the object has these keys
const FREE_ACTIONS = Object.keys(FREE) as (keyof typeof FREE)[]
/** Fields whose values are in the audit log. */
const AUDITED: Readonly<Record<string, readonly (keyof ServerSpec)[]>> = {
  ...FREE,
  'server.change_plan': ['plan', 'storageGibibytes'],
}

const isEdited = (after: ServerObject, before: ServerObject, fields: readonly (keyof ServerSpec)[]): boolean =>
  fields.some((field) => !isDeepStrictEqual(after.spec[field], before.spec[field]))

const namesOf = ({ spec: { networks = [] } }: ServerObject): readonly string[] =>
  networks.map(({ networkId }) => networkId)
const isOneMissing = (names: readonly string[], some: readonly string[]): boolean =>
  some.some((name) => !names.includes(name))

/** The changes that an edit requests, under the actions of REST. A start may be combined with another size. */
function actionsOf(after: ServerObject | undefined, before: ServerObject | undefined): AdmittedChange['action'][] {
  if (after === undefined || before === undefined) return []
  const isChanged = (...fields: readonly (keyof ServerSpec)[]): boolean => isEdited(after, before, fields)
  const isResized = isChanged('plan', 'storageGibibytes')
  const power = after.spec.desiredPower === 'running' ? 'server.start' : 'server.stop'
  return [
    ...(isResized ? (['server.change_plan'] as const) : []),
    ...(!isResized && isChanged('desiredPower') ? ([power] as const) : []),
    ...(isChanged('metadataEnabled') ? (['server.metadata'] as const) : []),
    ...(isChanged('firewall') ? (['server.firewall'] as const) : []),
    ...(isOneMissing(namesOf(before), namesOf(after)) ? (['server.attach_network'] as const) : []),
    ...(isOneMissing(namesOf(after), namesOf(before)) ? (['server.detach_network'] as const) : []),
    ...FREE_ACTIONS.filter((action) => isChanged(...FREE[action])),
  ]
}

/** Throws the Problem that the API would answer. */
async function validateChange(
  parts: AdmissionParts,
  server: ServerObject,
  before: ServerObject,
): Promise<readonly AdmittedChange[]> {
  denyPlatformFields(server, before, PLATFORM)
  const isChanged = (...fields: readonly (keyof ServerSpec)[]): boolean => isEdited(server, before, fields)
  const moved = FIXED.find((field) => isChanged(field))
  if (moved !== undefined) throw badField(`spec.${moved}`, 'cannot be changed')
  if (isChanged('title', 'labels', 'sshKeys')) requireReadable(server.spec)
  const facts = factsOf(storedOf(before))
  const actions = actionsOf(server, before)
  if (actions.includes('server.change_plan')) await validateSize(parts, server, before)
  if (actions.includes('server.start')) requireStartable(facts)
  if (actions.includes('server.stop')) requireStoppable(facts)
  if (isChanged('metadataEnabled', 'firewall')) requireIdle(facts)
  if (isChanged('firewall')) requireFirewall(parts, server.spec)
  if (isChanged('networks')) await validateNetworks(parts, server, before)
  return actions.map((action) => ({
    action,
    changes: editedFields(AUDITED[action] ?? [], server.spec, before.spec),
  }))
}

/** Another plan or more boot storage: the room and the quota of both sizes must be available. A start may be combined
 *  with it. Throws the Problem that the API would answer. */
async function validateSize(parts: AdmissionParts, server: ServerObject, before: ServerObject): Promise<void> {
  const {
    metadata: { name: serverId, namespace = '' },
    spec,
  } = server
  requireStopped(factsOf(storedOf(before)))
  const held = before.status?.storageGibibytes ?? before.spec.storageGibibytes ?? 0
  if (spec.storageGibibytes !== undefined && spec.storageGibibytes < held)
    throw badField('spec.storageGibibytes', `the boot storage has ${held} GiB and never shrinks`)
  requireDiskSize(spec.storageGibibytes ?? 0, 'spec.storageGibibytes')
  const { cores, memoryMebibytes, storageGibibytes, cpuPool } = choosePlan(parts, before, spec.plan)
  const accountId = accountOfNamespace(namespace) ?? ''
  await requireStanding(parts, accountId)
  await rehearse(parts, (tx) =>
    acceptSizeChange(
      tx,
      {
        accountId,
        serverId,
        operationId: newUuid(parts.random),
        cores,
        memoryMebibytes,
        storageGibibytes: spec.storageGibibytes ?? storageGibibytes,
        cpuPool,
      },
      parts.clock.now(),
    ),
  )
}

/** Throws the Problem that the API would answer. Networks of the same manifest may be created later: they are waited
 *  for. */
async function validateNetworks(parts: AdmissionParts, server: ServerObject, before: ServerObject): Promise<void> {
  const {
    metadata: { name: serverId, namespace = '' },
    spec: { networks = [] },
  } = server
  requireIdle(factsOf(storedOf(before)))
  const accountId = accountOfNamespace(namespace) ?? ''
  const { networks: had = [] } = before.spec
  const known = (networkId: string) => had.find((entry) => entry.networkId === networkId)
  const changed = networks.findIndex((entry) => {
    const earlier = known(entry.networkId)
    return earlier !== undefined && !isDeepStrictEqual(earlier, entry)
  })
  if (changed !== -1) throw badField(`spec.networks.${changed}`, 'cannot be changed: take the server out first')
  const added = networks.filter(({ networkId }) => known(networkId) === undefined)
  const removed = had.filter(({ networkId }) => !networks.some((entry) => entry.networkId === networkId))
  const demands = networkDemands(parts, namespace, added)
  await rehearse(parts, async (tx) => {
    for (const { networkId } of removed) await leaveNetwork(tx, { accountId, serverId, networkId })
    for (const demand of demands)
      await attachInterface(tx, { accountId, serverId, ...demand }, { now: parts.clock.now(), random: parts.random })
  })
}

/** Those that exist. */
const networkDemands = (
  { caches }: Pick<AdmissionParts, 'caches'>,
  namespace: string,
  networks: NonNullable<ServerSpec['networks']>,
): readonly InterfaceDemand[] =>
  networks.flatMap((entry) => {
    const network = caches.of(Network).get({ namespace, name: entry.networkId })
    const networkUid = network?.status?.ipv6Prefix === undefined ? undefined : network.metadata.uid
    return networkUid === undefined ? [] : [{ ...entry, networkUid }]
  })

function requireFirewall(parts: AdmissionParts, { zone, firewall }: ServerSpec): void {
  const [fault] = firewallFaults(firewall ?? NO_FIREWALL)
  if (fault !== undefined) throw badField(`spec.firewall.${fault.field}`, fault.detail)
  requireFilter(parts, zone, firewall)
}

function requireReadable(spec: ServerSpec): void {
  const { sshKeys, userDataSecretName } = spec
  requirePrintableTitle(spec)
  requireLabels(spec)
  for (const [index, text] of sshKeys.entries()) {
    const key = parsePublicKey(text)
    if (typeof key === 'string') throw badField(`spec.sshKeys.${index}`, key)
  }
  if (sshKeys.length === 0 && userDataSecretName === undefined)
    throw badField('spec.sshKeys', 'a server needs at least one SSH key, or user data: nobody could sign in')
}

function requireOffered({ bootStorageId, initScriptId, managedBy, sharedAddresses }: ServerSpec): void {
  if (managedBy !== undefined || sharedAddresses !== undefined)
    throw forbidden('spec.managedBy and spec.sharedAddresses are written by the platform only.')
  if (bootStorageId !== undefined) throw forbidden('spec.bootStorageId is written by the platform only.')
  if (initScriptId !== undefined)
    throw badField(
      'spec.initScriptId',
      'is set through the API only: put the text into a Secret and name it in spec.userDataSecretName',
    )
}

export const serverAdmission: AdmissionRules<ServerSpec, ServerStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('server.delete', async (before, parts) => {
    requireDeletable(factsOf(storedOf(before)))
    const { namespace = '', name: serverId } = before.metadata
    const accountId = accountOfNamespace(namespace)
    if (accountId !== undefined) await rehearse(parts, (tx) => requireNoBootHolds(tx, { accountId, serverId }))
  }),
  actionsOf,
  reads: [Plan, Template, Zone, CustomImage, Network],
  // A protected server is kept, even when a garbage collector deletes it.
  validatesCleanUp: true,
}
