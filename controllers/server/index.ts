/** The server controller: what wakes it, what it reads, and its effects in PostgreSQL. What it decides is `plan.ts`. */
import { isDeepStrictEqual } from 'node:util'
import { isUuid } from '../../domain/uuid.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { hasIntent, takeIntent } from '../../db/change/index.ts'
import { openGroupCommit } from '../../db/group-commit.ts'
import { listKubernetesRequests } from '../../db/request/index.ts'
import { findServerGroup } from '../../db/server-group/index.ts'
import {
  accountExists,
  batchKeyOf,
  beginSizeChange,
  claimServers,
  type ClaimsReading,
  endSizeChange,
  findServerClaims,
  openClaimsReading,
  releaseServer,
  renumberServer,
  type ServerDemand,
  type ServerId,
} from '../../db/server/index.ts'
import { type Key, keyOf, Secret } from '../../kit/kube/object.ts'
import { type Effect, type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import {
  Instance,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../resources/instance/index.ts'
import { LAST_CHANGE_ANNOTATION, SERVER_FINALIZER } from '../../resources/labels.ts'
import { Node } from '../../resources/node/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { auditEffect } from '../audit.ts'
import { orUnavailable } from '../database.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { grantedCondition, withRefusalCondition } from '../refusal.ts'
import { detectEdit, editorOf, requesterOf } from './direct-edit.ts'
import { RESIZED } from './change-plan.ts'
import { storageKey, uidOf, userDataKey } from './drafts.ts'
import { forceReleaseEffect } from './recovery/force-release.ts'
import { migrationEffects, nodesWithoutPool } from './migration/effects.ts'
import { plan } from './plan.ts'
import { obsoleteUserData } from './rebuild/index.ts'
import { RENUMBERED } from './renumber.ts'
import { activeOperation } from '../operation/stanza.ts'
import type { InstanceObject, Observed, ServerObject } from './observed.ts'

const ZONE_INDEX = 'zone'

export function serverReconciler(parts: Parts): Reconciler<ServerSpec, ServerStatus, Observed> {
  const { caches } = parts
  const readings = { ...parts, claimsOf: openClaimsReading(parts.db) }
  const instances = caches.of(Instance)
  const servers = caches.of(Server)
  servers.addIndex(ZONE_INDEX, ({ spec }) => [spec.zone])
  instances.addIndex('server', ({ spec }) => [spec.server.uid])
  const serverOf = ({ spec }: InstanceObject): Key => ({ namespace: spec.server.namespace, name: spec.server.name })
  return {
    name: 'server',
    type: Server,
    finalizer: SERVER_FINALIZER,
    watches: [
      watch(Instance, (instance) => [serverOf(instance)]),
      watch(Storage, ({ metadata: { namespace = '' }, spec }) =>
        spec.isBoot && spec.serverId !== undefined ? [{ namespace, name: spec.serverId }] : [],
      ),
      watch(Volume, ({ spec: { storage } }) => serverOfStorage(caches, storage)),
      watch(Node, ({ metadata }) => instances.inNamespace(nodeNamespace(metadata.name)).map(serverOf)),
      watch(NodeReport, ({ metadata: { namespace = '' } }) => instances.inNamespace(namespace).map(serverOf)),
      // Whether a prefix can be exchanged follows from the state of its pool.
      watch(PublicPool, ({ spec }) =>
        spec.use === 'server_ipv6_prefix' ? servers.by(ZONE_INDEX, spec.zone).map(keyOf) : [],
      ),
      ...[watch(Zone, () => []), watch(Plan, () => []), watch(Template, () => [])],
    ],
    observe: (server) => observe(readings, server),
    plan,
    effects: {
      claim: claimEffect(parts),
      give_back: giveBackEffect(parts),
      renumber: renumberEffect(parts),
      resize: resizeEffect(parts),
      sized: sizedEffect(parts),
      audit: auditEffect(parts),
      ...migrationEffects(parts),
      forceRelease: forceReleaseEffect(parts),
    },
  }
}

interface Readings extends Parts {
  readonly claimsOf: ClaimsReading
}

async function observe({ caches, store, db, claimsOf }: Readings, server: ServerObject): Promise<Observed> {
  const {
    metadata: { namespace = '', name },
    spec,
  } = server
  const { accountId, claims } = await readClaims({ db, claimsOf }, namespace, name)
  const { instance: cached, ...otherInstances } = instancesByRole(
    caches.of(Instance).by('server', uidOf(server)),
    claims,
  )
  const instance = cached ?? (await findInstance(store, server, claims))
  const template = spec.template === undefined ? undefined : caches.of(Template).get({ name: spec.template })
  const storage = caches.of(Storage).get(storageKey(server))
  const nodes = nodesOf(caches, claims, otherInstances.strayInstances, storage?.status?.pool !== undefined)
  const edit = detectEdit(server, instance)
  const requests = await readRequests(db, server)
  return {
    accountId,
    claims,
    instance,
    ...otherInstances,
    plan: caches.of(Plan).get({ name: spec.plan })?.spec,
    zone: caches.of(Zone).get({ name: spec.zone })?.spec,
    isTemplateKnown:
      template !== undefined && (template.spec.zones.length === 0 || template.spec.zones.includes(spec.zone)),
    isGroupMissing: await isGroupMissing(db, accountId, { spec, claims }),
    storage,
    ...otherStorages(caches, server),
    ...nodes,
    targetVolume:
      claims?.target === undefined || storage === undefined
        ? undefined
        : caches.of(Volume).get({ namespace: nodeNamespace(claims.target.node), name: uidOf(storage) }),
    hostFeatures:
      claims === undefined
        ? undefined
        : caches.of(NodeReport).get({ namespace: nodeNamespace(claims.placement.node), name: NODE_REPORT_NAME })?.spec
            .features,
    isHostReachable: claims !== undefined && !nodes.unreachableNodes.includes(claims.placement.node),
    ...(instance === undefined || activeOperation(server)?.kind === 'server.rebuild'
      ? await readUserData(store, server, claims?.placement.node)
      : { userData: undefined, hasUserDataCopy: true }),
    requests,
    ...(activeOperation(server)?.kind === 'server.rebuild'
      ? { obsoleteSecrets: await existing(store, obsoleteUserData(server, claims?.placement.node)) }
      : {}),
    editor:
      edit === undefined ? '' : (requesterOf(requests, edit.kind) ?? (await findEditor(store, server, edit.field))),
  }
}

/** That there is none must be true: disks and addresses are given up for it. Another shard may have made one that has
 *  not been heard of here. */
const findInstance = async (
  store: Parts['store'],
  server: ServerObject,
  claims: Observed['claims'],
): Promise<InstanceObject | undefined> =>
  claims === undefined || activeOperation(server)?.kind === 'server.create'
    ? undefined
    : store.get(Instance, { namespace: nodeNamespace(claims.placement.node), name: uidOf(server) })

const serverOfStorage = (
  caches: Parts['caches'],
  { namespace, name }: Key & { readonly namespace: string },
): readonly Key[] => {
  const serverId = caches.of(Storage).get({ namespace, name })?.spec.serverId
  return serverId === undefined ? [] : [{ namespace, name: serverId }]
}

/** Of a server that is rebuilt: the new boot storage has the name of the operation, and the old one is named by it. */
function otherStorages(caches: Parts['caches'], server: ServerObject): Pick<Observed, 'newStorage' | 'oldStorage'> {
  const operation = activeOperation(server)
  if (operation?.kind !== 'server.rebuild') return {}
  const { namespace = '', name } = server.metadata
  return {
    newStorage: caches.of(Storage).get({ namespace, name: operation.id }),
    oldStorage: caches.of(Storage).get({ namespace, name: operation.arguments?.['previous_boot_storage'] ?? name }),
  }
}

/** Which of the server's instances is which: there are two of them while it moves. */
function instancesByRole(
  instances: readonly InstanceObject[],
  claims: Observed['claims'],
): Pick<Observed, 'instance' | 'targetInstance' | 'strayInstances'> {
  if (claims === undefined) return { instance: instances[0], strayInstances: instances.slice(1) }
  const on = (node: string | undefined) =>
    node === undefined ? undefined : instances.find(({ metadata }) => metadata.namespace === nodeNamespace(node))
  const [instance, targetInstance] = [on(claims.placement.node), on(claims.target?.node)]
  return {
    instance,
    targetInstance,
    strayInstances: instances.filter((other) => other !== instance && other !== targetInstance),
  }
}

const UNREACHABLE_STATES: readonly unknown[] = ['unreachable', 'fencing', 'fenced']

/** How the nodes are that have something of the server. One that is unknown does not answer. One that only its shared
 *  storage refuses is
 *  fenced for those alone whose disk lies there: a guest on a disk of the host may write on. */
function nodesOf(
  caches: Parts['caches'],
  claims: Observed['claims'],
  strays: readonly InstanceObject[] = [],
  isOnPool = false,
): Required<Pick<Observed, 'unreachableNodes' | 'fencedNodes'>> {
  const names = new Set([
    ...(claims === undefined
      ? []
      : [claims.placement.node, ...(claims.target === undefined ? [] : [claims.target.node])]),
    ...strays.map(nodeOf),
  ])
  const known = [...names].map((name) => ({ name, node: caches.of(Node).get({ name }) }))
  return {
    unreachableNodes: known
      .filter(({ node }) => node === undefined || UNREACHABLE_STATES.includes(node.status?.state))
      .map(({ name }) => name),
    fencedNodes: known
      .filter(
        ({ node }) => node?.status?.state === 'fenced' && (isOnPool || node.status.fence?.method !== 'storage_block'),
      )
      .map(({ name }) => name),
  }
}

/** Only a new generation can have been asked for. */
async function readRequests(db: Parts['db'], server: ServerObject): Promise<Observed['requests']> {
  const [after, upTo] = [server.status?.observedGeneration ?? 0, server.metadata.generation ?? 0]
  return upTo > after ? orUnavailable(listKubernetesRequests(db, uidOf(server), { after, upTo })) : []
}

/** Without the webhook, what the object itself says. Cached objects have no managedFields. */
const findEditor = async (store: Parts['store'], server: ServerObject, field: string): Promise<string> =>
  editorOf((await store.get(Server, keyOf(server)))?.metadata ?? server.metadata, field)

/** Who has claims is a member. */
const isGroupMissing = async (
  db: Parts['db'],
  accountId: string | undefined,
  { spec: { serverGroupId: groupId }, claims }: Pick<ServerObject, 'spec'> & Pick<Observed, 'claims'>,
): Promise<boolean> =>
  accountId !== undefined &&
  groupId !== undefined &&
  claims === undefined &&
  (await orUnavailable(findServerGroup(db, { accountId, groupId }))) === undefined

/** Who has claims has an account. */
async function readClaims(
  { db, claimsOf }: Pick<Readings, 'db' | 'claimsOf'>,
  namespace: string,
  serverId: string,
): Promise<Pick<Observed, 'accountId' | 'claims'>> {
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || !isUuid(accountId)) return { accountId: undefined, claims: undefined }
  const claims = await orUnavailable(claimsOf({ accountId, serverId }))
  return {
    accountId: claims !== undefined || (await orUnavailable(accountExists(db, accountId))) ? accountId : undefined,
    claims,
  }
}

const existing = async (store: Parts['store'], keys: readonly Key[]): Promise<readonly Key[]> =>
  (await Promise.all(keys.map(async (key) => ((await store.get(Secret, key)) === undefined ? [] : [key])))).flat()

/** The first boot needs the user data on the node; later nobody looks. */
async function readUserData(
  store: Parts['store'],
  server: ServerObject,
  node: string | undefined,
): Promise<Pick<Observed, 'userData' | 'hasUserDataCopy'>> {
  const name = server.spec.userDataSecretName
  const kind = activeOperation(server)?.kind
  if (name === undefined || (kind !== 'server.create' && kind !== 'server.rebuild'))
    return { userData: undefined, hasUserDataCopy: true }
  const { namespace = '' } = server.metadata
  const copy = node === undefined ? undefined : await store.get(Secret, userDataKey(server, node))
  const userData = (await store.get(Secret, { namespace, name }))?.data
  return {
    userData,
    hasUserDataCopy: copy !== undefined && (userData === undefined || isDeepStrictEqual(copy.data, userData)),
  }
}

/** What was claimed becomes visible by itself. Servers of an account wait for its quotas anyway: those that are alike
 *  are claimed together. */
function claimEffect({ store, db, clock, random }: Parts): Effect {
  const claim = openGroupCommit(db, (tx, demands: readonly ServerDemand[]) =>
    claimServers(tx, demands, { now: clock.now(), random }),
  )
  return withRefusalCondition('Claimed', async (input, server) => {
    await requireNewest(store, Server, server)
    const demand = input as unknown as ServerDemand // the plan of this folder writes it
    await orUnavailable(claim(batchKeyOf(demand), demand))
    return grantedCondition('Claimed')
  })
}

/** Free when the server has a prefix that it can keep. */
const renumberEffect = ({ db }: Parts): Effect =>
  withRefusalCondition(RENUMBERED, async (input) => {
    await orUnavailable(
      db.transaction().execute((tx) => renumberServer(tx, input as unknown as Parameters<typeof renumberServer>[1])),
    ) // the plan of this folder writes it
    return grantedCondition(RENUMBERED)
  })

/** What was claimed becomes visible by itself. */
const resizeEffect = ({ store, caches, db, clock }: Parts): Effect =>
  withRefusalCondition(RESIZED, async (input, server) => {
    await requireNewest(store, Server, server)
    // the plan of this folder writes it
    const { pool, ...change } = input as unknown as Parameters<typeof beginSizeChange>[1] & { readonly pool?: string }
    await orUnavailable(
      db
        .transaction()
        .execute((tx) =>
          beginSizeChange(tx, { ...change, excludedNodes: nodesWithoutPool(caches, pool) }, clock.now()),
        ),
    )
    return grantedCondition(RESIZED)
  })

const sizedEffect =
  ({ db }: Parts): Effect =>
  async (input) => {
    await orUnavailable(
      db.transaction().execute((tx) => endSizeChange(tx, input as unknown as Parameters<typeof endSizeChange>[1])),
    ) // the plan of this folder writes it
    return undefined
  }

/** With the server goes the only sign that its last change was made: an intent that waits for that sign is settled
 *  here. Free when nothing is held
 *  or owed, so that the turns after it come to the end. */
const giveBackEffect =
  ({ store, db, clock, random }: Parts): Effect =>
  async (input, server) => {
    await requireNewest(store, Server, server)
    const id = input as unknown as ServerId // the plan of this folder writes it
    const change = server.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
    const isOwed = change !== undefined && (await orUnavailable(hasIntent(db, change)))
    if (!isOwed && (await orUnavailable(findServerClaims(db, id))) === undefined) return undefined
    await orUnavailable(
      db.transaction().execute(async (tx) => {
        await releaseServer(tx, id)
        const entry = change === undefined ? undefined : await takeIntent(tx, change)
        if (entry !== undefined) await appendAudit(tx, entry, { clock, random })
      }),
    )
    return undefined
  }
