/** The changes of a server. Functions of REST create, restart, rebuild and move servers, and attach them to networks:
 *  what these need is in PostgreSQL, in Secrets, or not in the spec. They ask the same rules. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../domain/defined.ts'
import { badField, forbidden, quotaExceeded } from '../domain/problem.ts'
import { FIREWALL_RULES_MAXIMUM, firewallFaults, NO_FIREWALL } from '../domain/server/firewall.ts'
import {
  requireDeletable,
  requireIdle,
  requireStartable,
  requireStoppable,
  requireStopped,
  type ServerFacts,
} from '../domain/server/rules.ts'
import { parsePublicKey } from '../domain/ssh-key/rules.ts'
import { requireDiskSize } from '../domain/storage/rules.ts'
import {
  attachInterface,
  type InterfaceDemand,
  leaveNetwork,
  withdrawInterface,
} from '../db/network-interface/index.ts'
import { acceptSizeChange, claimServer, endSizeChange, releaseServer, type ServerDemand } from '../db/server/index.ts'
import { findServerGroup } from '../db/server-group/index.ts'
import { requireNoBootHolds } from '../db/storage-hold/index.ts'
import type { BodyOf, QueryOf } from '../kit/http/route.ts'
import { capabilitiesOf, Plan, Template, Zone } from '../resources/catalog/index.ts'
import { CustomImage } from '../resources/custom-image/index.ts'
import { Labels, Printable } from '../resources/kit/shapes.ts'
import { Network } from '../resources/network/index.ts'
import * as routes from '../resources/server/index.ts'
import { factsOf, Server, type ServerSpec } from '../resources/server/index.ts'
import { requireReadableSchedule, requireScheduleZone } from './kit/backups.ts'
import { type Change, changesOf, fromBody, type Patch, type Target } from './kit/define.ts'
import { networkDemand } from './kit/machine.ts'
import { requireReadable } from './kit/readable.ts'
import { nextPlanOf, type Size, sizeOf, systemOf } from './kit/system.ts'
import { type World, worldOf } from './kit/world.ts'
import { withoutNetworks } from './kit/zone.ts'

const serverOf = ({ accountId, id }: Target) => ({ accountId, serverId: id })

/** Everything that a new server claims. */
export const demandOf = (
  { spec, ...target }: Target & { readonly spec: Omit<ServerSpec, 'operation'> },
  { plan, region, storageGibibytes }: Size,
  networks: readonly InterfaceDemand[],
): ServerDemand => ({
  ...serverOf(target),
  hostname: spec.hostname,
  zone: spec.zone,
  region,
  publicIpv4: spec.publicIpv4,
  cores: plan.cores,
  memoryMebibytes: plan.memoryMebibytes,
  storageGibibytes,
  ...defined({ serverGroupId: spec.serverGroupId, cpuPool: plan.cpuPool }),
  ...(networks.length === 0 ? {} : { networks }),
})

/** Throws 422 for a firewall with too many rules, and 409 when nothing in the zone would enforce it. A disabled one has
 *  no effect anywhere. */
export function requireFilter(world: World, { zone, firewall }: Pick<ServerSpec, 'zone' | 'firewall'>): void {
  const rules = firewall?.rules.length ?? 0
  if (rules > FIREWALL_RULES_MAXIMUM)
    throw quotaExceeded({ name: 'firewall_rules', limit: FIREWALL_RULES_MAXIMUM, used: 0, requested: rules })
  const object = world.find(Zone, { name: zone })
  const capabilities: readonly string[] = object === undefined ? [] : capabilitiesOf(object)
  if (firewall?.enabled !== true || object === undefined || capabilities.includes('private_networks')) return
  throw withoutNetworks(object, `Nothing in zone ${zone} filters packets of servers`, 'private_networks')
}

function requireKeys({ sshKeys, userDataSecretName }: ServerSpec): void {
  for (const [index, text] of sshKeys.entries()) {
    const key = parsePublicKey(text)
    if (typeof key === 'string') throw badField(`sshKeys.${index}`, key)
  }
  if (sshKeys.length === 0 && userDataSecretName === undefined)
    throw badField('sshKeys', 'a server needs at least one SSH key, or user data: nobody could sign in')
}

/** Throws for fields that a new server gets by the platform or by REST only. */
function requireOffered({ bootStorageId, initScriptId, managedBy, sharedAddresses }: ServerSpec): void {
  if (managedBy !== undefined || sharedAddresses !== undefined)
    throw forbidden('spec.managedBy and spec.sharedAddresses are written by the platform only.')
  if (bootStorageId !== undefined) throw forbidden('spec.bootStorageId is written by the platform only.')
  if (initScriptId !== undefined)
    throw badField(
      'initScriptId',
      'is set through the API only: put the text into a Secret and name it in spec.userDataSecretName',
    )
}

/** Fields that never change, or by operations of the platform and REST only. */
const REMADE = [
  'bootStorageId',
  'hostname',
  'zone',
  'template',
  'customImageId',
  'userDataSecretName',
  'initScriptId',
  'publicIpv4',
  'sharedAddresses',
  'backupSchedule',
] as const satisfies readonly (keyof ServerSpec)[]

const isResized = (after: ServerSpec, before: ServerSpec): boolean =>
  after.plan !== before.plan || after.storageGibibytes !== before.storageGibibytes

type Entry = NonNullable<ServerSpec['networks']>[number]

const entryIn = ({ networks = [] }: ServerSpec, { networkId }: Entry): Entry | undefined =>
  networks.find((entry) => entry.networkId === networkId)
/** The networks of one spec that the other lacks. */
const missing = ({ networks = [] }: ServerSpec, other: ServerSpec): readonly Entry[] =>
  networks.filter((entry) => entryIn(other, entry) === undefined)
const changedEntry = ({ networks = [] }: ServerSpec, before: ServerSpec): number =>
  networks.findIndex((entry) => !isDeepStrictEqual(entryIn(before, entry) ?? entry, entry))

/** An edit that exchanges networks asks for both: what it leaves makes room for what it joins. Networks of the same
 *  manifest may be created later: they are waited for. */
const networking: Omit<Change<ServerSpec, ServerFacts>, 'when' | 'operation'> = {
  sets: ['networks'],
  allow: ({ facts }) => requireIdle(facts),
  async claim(tx, { spec, before = spec, ...target }, { caches, clock, random }) {
    const demands = missing(spec, before).flatMap((entry) => networkDemand(worldOf(caches), target.accountId, entry))
    for (const { networkId } of missing(before, spec)) await leaveNetwork(tx, { ...serverOf(target), networkId })
    for (const demand of demands)
      await attachInterface(tx, { ...serverOf(target), ...demand }, { now: clock.now(), random })
  },
}

/** What is asked for besides the desired power. */
export const stopOptions = (options: BodyOf<typeof routes.stopServer>) => ({
  stop_type: options.stop_type,
  timeout_seconds: String(options.timeout_seconds),
  timeout_action: options.timeout_action,
})

/** The stanza of an operation that stops the guest as it is asked to. */
export const stopStanza = (options: Readonly<Record<string, string>>) => ({
  graceSeconds: options['stop_type'] === 'soft' ? Number(options['timeout_seconds']) : 0,
  arguments: options,
})

export const serverChanges = changesOf(Server, {
  name: 'server',
  title: 'server',
  finalizedWhen: 'the host side of the server is removed',
  factsOf,
  reads: [Plan, Template, Zone, CustomImage, Network],
  // The audit log has the names of their operations.
  audited: { desiredPower: () => ({}), metadataEnabled: () => ({}), firewall: () => ({}), networks: () => ({}) },
  readable({ title, labels, firewall, ...spec }) {
    requireReadable('title', Printable, title)
    requireReadable('labels', Labels.optional(), labels)
    const [fault] = firewallFaults(firewall ?? NO_FIREWALL)
    if (fault !== undefined) throw badField(`firewall.${fault.field}`, fault.detail)
    requireReadableSchedule(spec)
  },
  create: {
    name: 'create',
    operation: 'server.create',
    needs: 'standing',
    allow({ spec }, world) {
      requireKeys(spec)
      requireOffered(spec)
      requireFilter(world, spec)
      requireScheduleZone(world, spec)
    },
    /** For kubectl: REST and the controller claim similar servers together. Groups and networks of the same manifest
     *  may be created later: they are waited for. */
    async claim(tx, { spec: { serverGroupId: groupId, ...spec }, ...target }, { caches, clock, random }) {
      const { accountId } = target
      const world = worldOf(caches)
      const size = sizeOf(world, spec, systemOf(world, { accountId, now: clock.now() }, spec))
      const group = groupId === undefined ? undefined : await findServerGroup(tx, { accountId, groupId })
      const networks = (spec.networks ?? []).flatMap((entry) => networkDemand(world, accountId, entry))
      const demand = demandOf(
        { ...target, spec: { ...spec, ...defined({ serverGroupId: group?.id }) } },
        size,
        networks,
      )
      await claimServer(tx, demand, { now: clock.now(), random })
    },
    release: (tx, target) => releaseServer(tx, serverOf(target)),
    detail: ({ hostname, zone, plan }) => ({ hostname, zone, plan }),
    by: { route: routes.createServer },
  },
  changes: {
    remake: {
      sets: REMADE,
      action: 'update',
      allow({ spec, before }) {
        const field = REMADE.find((each) => !isDeepStrictEqual(spec[each], before?.[each])) ?? 'hostname'
        throw badField(field, 'cannot be changed')
      },
    },
    change_plan: {
      sets: ['plan', 'storageGibibytes'],
      operation: 'server.change_plan',
      needs: 'standing',
      allow({ accountId, spec, before, facts, options }, world) {
        const held = facts.storageGibibytes
        const { storageGibibytes: wanted } = spec
        if (wanted !== undefined && wanted !== before?.storageGibibytes && wanted < held)
          throw badField('storageGibibytes', `the boot storage has ${held} GiB and never shrinks`)
        requireDiskSize(wanted ?? 0, 'storageGibibytes')
        const plan = nextPlanOf(world, accountId, spec, held)
        const isGrown = options?.['grow_storage'] === 'true' && plan.storageGibibytes > held
        if (options !== undefined && spec.plan === before?.plan && !isGrown)
          throw badField('plan', 'is the plan of the server')
        requireStopped(facts)
      },
      async claim(tx, { spec, options, ...target }, { caches, clock, changeId: operationId }) {
        const { cores, memoryMebibytes, cpuPool, ...plan } = nextPlanOf(worldOf(caches), target.accountId, spec, 0)
        const grown = options?.['grow_storage'] === 'true' ? plan.storageGibibytes : 0
        const storageGibibytes = options === undefined ? (spec.storageGibibytes ?? plan.storageGibibytes) : grown
        const size = { cores, memoryMebibytes, storageGibibytes, cpuPool }
        const { after } = await acceptSizeChange(tx, { ...serverOf(target), operationId, ...size }, clock.now())
        return { spec: { storageGibibytes: after.storageGibibytes } }
      },
      release: (tx, { changeId: operationId, ...target }) =>
        endSizeChange(tx, { ...serverOf(target), operationId, isDone: false }),
      stanza({ spec, facts, options }) {
        const isStarted = options === undefined ? spec.desiredPower === 'running' : options['start'] === 'true'
        return {
          gibibytes: facts.storageGibibytes,
          arguments: {
            previous_plan: facts.plan,
            previous_storage_gibibytes: String(facts.storageGibibytes),
            ...(isStarted ? { start: 'true' } : {}),
          },
        }
      },
      by: {
        ...fromBody(
          routes.changeServerPlan,
          ({ plan, start }): Patch<ServerSpec> => ({ plan, ...(start === true ? { desiredPower: 'running' } : {}) }),
        ),
        options: ({ grow_storage, start }: BodyOf<typeof routes.changeServerPlan>) => ({
          grow_storage: String(grow_storage),
          start: String(start === true),
        }),
      },
    },
    // A start may be combined with another size.
    start: {
      sets: ['desiredPower'],
      when: (after, before) => after.desiredPower === 'running' && !isResized(after, before),
      operation: 'server.start',
      allow: ({ facts }) => requireStartable(facts),
      by: fromBody(routes.startServer, (): Patch<ServerSpec> => ({ desiredPower: 'running' })),
    },
    stop: {
      sets: ['desiredPower'],
      when: (after, before) => after.desiredPower === 'stopped' && !isResized(after, before),
      operation: 'server.stop',
      allow: ({ facts }) => requireStoppable(facts),
      stanza: ({ options }) => (options === undefined ? {} : stopStanza(options)),
      by: {
        ...fromBody(routes.stopServer, (): Patch<ServerSpec> => ({ desiredPower: 'stopped' })),
        options: stopOptions,
      },
    },
    metadata: {
      sets: ['metadataEnabled'],
      operation: 'server.metadata',
      allow: ({ facts }) => requireIdle(facts),
      by: { route: routes.setServerMetadataSetting },
    },
    firewall: {
      sets: ['firewall'],
      operation: 'server.firewall',
      allow({ facts, spec }, world) {
        requireIdle(facts)
        requireFilter(world, spec)
      },
      by: { route: routes.setServerFirewall },
    },
    readdress: {
      sets: ['networks'],
      when: (after, before) => changedEntry(after, before) !== -1,
      action: 'update',
      allow({ spec, before = spec }) {
        throw badField(`networks.${changedEntry(spec, before)}`, 'cannot be changed: take the server out first')
      },
    },
    attach_network: {
      ...networking,
      when: (after, before) => missing(after, before).length > 0,
      operation: 'server.attach_network',
      async release(tx, { changes, ...target }, stored) {
        const networkId = changes[0]?.after
        if (typeof networkId !== 'string') return
        const isWritten = stored?.spec.networks?.some((entry) => entry.networkId === networkId) === true
        await withdrawInterface(tx, { ...serverOf(target), networkId }, isWritten)
      },
      by: { route: routes.attachServerNetwork },
    },
    detach_network: {
      ...networking,
      when: (after, before) => missing(before, after).length > 0,
      operation: 'server.detach_network',
      claimed: 'by operation',
      by: { route: routes.detachServerNetwork },
    },
    describe: {
      sets: ['title', 'labels', 'isProtected'],
      action: 'update',
      by: fromBody(
        routes.updateServer,
        ({ title, labels, is_protected }, spec: ServerSpec): Patch<ServerSpec> => ({
          title: title ?? spec.title,
          labels: labels ?? spec.labels,
          isProtected: is_protected ?? spec.isProtected,
        }),
      ),
    },
    keys: { sets: ['sshKeys'], action: 'update', allow: ({ spec }) => requireKeys(spec) },
    ha_policy: { sets: ['haPolicy'], by: { route: routes.setServerHaPolicy } },
    migration_policy: { sets: ['migrationPolicy'], by: { route: routes.setServerMigrationPolicy } },
  },
  remove: {
    name: 'delete',
    operation: 'server.delete',
    allow: ({ facts }) => requireDeletable(facts),
    /** Claims nothing. The boot storage stays locked until the intent of the deletion exists. */
    claim: (tx, target) => requireNoBootHolds(tx, serverOf(target)),
    by: {
      route: routes.deleteServer,
      arguments: ({ delete_storages }: QueryOf<typeof routes.deleteServer>) =>
        delete_storages === 'true' ? { delete_storages } : {},
    },
  },
})
