/** What the server controller reads before it decides. */
import { isDeepStrictEqual } from 'node:util'
import { canonicalRoute } from '../../../domain/network/rules.ts'
import { readUserData, runsProgramsOnly } from '../../../domain/server/user-data.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { listKubernetesRequests } from '../../../db/request/index.ts'
import { findServerGroup } from '../../../db/server-group/index.ts'
import { accountExists, type ClaimsReading } from '../../../db/server/index.ts'
import { type Key, Secret } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import {
  Instance,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../../resources/instance/index.ts'
import { isInZone, Plan, Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage, isUsableImage } from '../../../resources/custom-image/index.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { currentClaims } from '../../kit/current-claims.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { findEditor, requesterOf, SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { activeOperation, hasNoRequest } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import { detectEdit } from './direct-edit.ts'
import { bootStorageName, storageKey, uidOf, userDataKey } from './drafts.ts'
import { isGuestLeftToItsNode } from './recovery/force-release.ts'
import {
  areOnPools,
  type DiskVolumes,
  type InstanceObject,
  isDeleting,
  type NetworkRoute,
  type Observed,
  type ServerObject,
  type StorageObject,
} from './observed.ts'
import { obsoleteUserData } from './rebuild/index.ts'
import type { ProgrammedServers } from './network-effect.ts'

/** Routers by the networks of their specs, as `<namespace>/<network>`. */
export const NETWORKS_OF_ROUTER = 'networks of a router'

export interface Readings extends Parts {
  readonly claimsOf: ClaimsReading
  readonly programmed: ProgrammedServers
}

export async function observe(
  { caches, store, db, claimsOf, programmed }: Readings,
  server: ServerObject,
): Promise<Observed> {
  const {
    metadata: { namespace = '', name },
    spec,
  } = server
  const { accountId, claims: held } = await readClaims({ db, claimsOf }, namespace, name)
  const claims = await currentClaims({ caches, store }, server, held)
  const { instance: cached, ...otherInstances } = instancesByRole(
    caches
      .of(Instance)
      .by('server', uidOf(server))
      .filter((one) => !isGuestLeftToItsNode(caches, server, one)),
    claims,
  )
  const found = cached ?? (await findInstance(store, server, claims))
  const instance = found !== undefined && isGuestLeftToItsNode(caches, server, found) ? undefined : found
  const storage = caches.of(Storage).get(storageKey(server))
  const dataDisks = dataDisksOf(caches, claims)
  const nodes = nodesOf(caches, claims, otherInstances.strayInstances, areOnPools({ storage, dataDisks }))
  const edit = detectEdit(server, { instance, claims })
  const requests = await readRequests(db, server)
  return {
    accountId,
    claims,
    instance,
    ...otherInstances,
    plan: caches.of(Plan).get({ name: spec.plan })?.spec,
    zone: caches.of(Zone).get({ name: spec.zone })?.spec,
    isSystemKnown: await isSystemKnown({ caches, store }, server),
    sshUser: sshUserOf(caches, server),
    ...(await networksOf({ caches, store }, server, claims)),
    isGroupMissing: await isGroupMissing(db, accountId, { spec, claims }),
    storage,
    ...otherStorages(caches, server),
    spareStorages: isDeleting(server) ? spareStoragesOf(caches, server) : [],
    machine: caches.of(ManagedMachine).get({ namespace: instance?.metadata.namespace ?? '', name: uidOf(server) })
      ?.status,
    ...nodes,
    targetVolume:
      claims?.target === undefined || storage === undefined
        ? undefined
        : caches.of(Volume).get({ namespace: nodeNamespace(claims.target.node), name: uidOf(storage) }),
    dataDisks,
    hostFeatures:
      claims === undefined
        ? undefined
        : caches.of(NodeReport).get({ namespace: nodeNamespace(claims.placement.node), name: NODE_REPORT_NAME })?.spec
            .features,
    isHostReachable: claims !== undefined && !nodes.unreachableNodes.includes(claims.placement.node),
    ...(instance === undefined || activeOperation(server)?.kind === 'server.rebuild'
      ? await observeUserData({ caches, store }, server, claims?.placement.node)
      : { userData: undefined, hasUserDataCopy: true }),
    requests,
    routes: routesOf(caches, namespace, claims),
    programmedAs: programmed.get(uidOf(server)),
    ...(activeOperation(server)?.kind === 'server.rebuild'
      ? { obsoleteSecrets: await existing(store, obsoleteUserData(server, claims?.placement.node)) }
      : {}),
    editor:
      edit === undefined
        ? ''
        : server.spec.managedBy !== undefined
          ? SYSTEM_ACTOR
          : (requesterOf(requests, edit.kind) ?? (await findEditor(store, Server, server, edit.field))),
  }
}

const routesOf = (caches: Parts['caches'], namespace: string, claims: Observed['claims']): readonly NetworkRoute[] =>
  (claims?.interfaces ?? []).flatMap(({ networkId }) =>
    caches
      .of(Router)
      .by(NETWORKS_OF_ROUTER, `${namespace}/${networkId}`)
      .flatMap(({ spec }) => spec.staticRoutes.map((route) => ({ ...canonicalRoute(route), networkId }))),
  )

function sshUserOf(
  caches: Parts['caches'],
  { metadata: { namespace = '' }, spec: { template, customImageId } }: ServerObject,
): Observed['sshUser'] {
  const image = customImageId === undefined ? undefined : caches.of(CustomImage).get({ namespace, name: customImageId })
  const name = template ?? image?.status?.origin?.name
  if (name === undefined) return image && { name: undefined }
  const known = caches.of(Template).get({ name })
  return known && { name: known.spec.defaultUser }
}

/** The networks of the spec, for a server without claims. A network that is missing in this cache may exist all the
 *  same. */
async function networksOf(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  { metadata: { namespace = '' }, spec: { networks = [] } }: ServerObject,
  claims: Observed['claims'],
): Promise<Pick<Observed, 'networks'>> {
  if (claims !== undefined || networks.length === 0) return {}
  const found = await Promise.all(
    networks.map(async (entry) => {
      const key = { namespace, name: entry.networkId }
      const network = caches.of(Network).get(key) ?? (await store.get(Network, key))
      // The network's claims exist once its status shows them.
      const networkUid = network?.status?.ipv6Prefix === undefined ? undefined : network.metadata.uid
      return { ...entry, networkUid }
    }),
  )
  return {
    networks: {
      known: found.flatMap(({ networkUid, ...entry }) => (networkUid === undefined ? [] : [{ ...entry, networkUid }])),
      missing: found.flatMap(({ networkId, networkUid }) => (networkUid === undefined ? [networkId] : [])),
    },
  }
}

/** A custom image that is missing in this cache may exist all the same. */
async function isSystemKnown(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  { metadata: { namespace = '' }, spec: { zone, template: name, customImageId } }: ServerObject,
): Promise<boolean> {
  if (customImageId === undefined) {
    const template = name === undefined ? undefined : caches.of(Template).get({ name })
    return template !== undefined && isInZone(template, zone)
  }
  const key = { namespace, name: customImageId }
  const image = caches.of(CustomImage).get(key) ?? (await store.get(CustomImage, key))
  return image?.spec.zone === zone && isUsableImage(image)
}

/** Disks and addresses are released when there is no Instance, so the answer is read from the API server: another shard
 *  may have created one that this cache does not have yet. */
const findInstance = async (
  store: Parts['store'],
  server: ServerObject,
  claims: Observed['claims'],
): Promise<InstanceObject | undefined> =>
  activeOperation(server)?.kind === 'server.create'
    ? undefined
    : findOn(store, server, claims?.placement.node ?? server.status?.nodeName)

const findOn = async (
  store: Parts['store'],
  server: ServerObject,
  node: string | undefined,
): Promise<InstanceObject | undefined> =>
  node === undefined ? undefined : store.get(Instance, { namespace: nodeNamespace(node), name: uidOf(server) })

/** Boot storages of a server that is rebuilt: the new one has the operation's id as its name, and the operation's
 *  arguments name the old one. */
function otherStorages(caches: Parts['caches'], server: ServerObject): Pick<Observed, 'newStorage' | 'oldStorage'> {
  const operation = activeOperation(server)
  if (operation?.kind !== 'server.rebuild') return {}
  const { namespace = '', name } = server.metadata
  return {
    newStorage: caches.of(Storage).get({ namespace, name: operation.id }),
    oldStorage: caches.of(Storage).get({ namespace, name: operation.arguments?.['previous_boot_storage'] ?? name }),
  }
}

const spareStoragesOf = (caches: Parts['caches'], server: ServerObject): readonly StorageObject[] =>
  caches
    .of(Storage)
    .inNamespace(server.metadata.namespace ?? '')
    .filter(
      ({ spec, metadata }) =>
        spec.isBoot && spec.serverId === server.metadata.name && metadata.name !== bootStorageName(server),
    )

/** The role of each of the server's instances: there are two of them while it moves. */
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

function dataDisksOf(caches: Parts['caches'], claims: Observed['claims']): readonly DiskVolumes[] {
  if (claims === undefined) return []
  const on = (node: string | undefined, name: string) =>
    node === undefined ? undefined : caches.of(Volume).get({ namespace: nodeNamespace(node), name })
  return claims.disks.map(({ volume }) => ({
    volume,
    own: on(claims.placement.node, volume),
    target: on(claims.target?.node, volume),
  }))
}

const UNREACHABLE_STATES: readonly unknown[] = ['unreachable', 'fencing', 'fenced']

/** States of the nodes that have something of the server. An unknown node counts as unreachable. A node that was fenced
 *  only by its shared storage counts as fenced only for servers with their disk on that storage: a guest with a disk on
 *  the host may continue to write. */
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

/** Requests by kubectl are recorded by generation: only a new one can have some, and never the first of a server that a
 *  request created. */
async function readRequests(db: Parts['db'], server: ServerObject): Promise<Observed['requests']> {
  const { operation } = server.spec
  const isMadeByRequest = operation?.kind === 'server.create' && !hasNoRequest(operation)
  const after = server.status?.observedGeneration ?? (isMadeByRequest ? 1 : 0)
  const upTo = server.metadata.generation ?? 0
  return upTo > after ? orUnavailable(listKubernetesRequests(db, uidOf(server), { after, upTo })) : []
}

/** A server with claims is a member of its group. */
const isGroupMissing = async (
  db: Parts['db'],
  accountId: string | undefined,
  { spec: { serverGroupId: groupId }, claims }: Pick<ServerObject, 'spec'> & Pick<Observed, 'claims'>,
): Promise<boolean> =>
  accountId !== undefined &&
  groupId !== undefined &&
  claims === undefined &&
  (await orUnavailable(findServerGroup(db, { accountId, groupId }))) === undefined

/** A server with claims has an account. */
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

/** The node needs user data for the first boot only. */
async function observeUserData(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  server: ServerObject,
  node: string | undefined,
): Promise<Pick<Observed, 'userData' | 'hasUserDataCopy' | 'userDataFault'>> {
  const name = server.spec.userDataSecretName
  const kind = activeOperation(server)?.kind
  if (name === undefined || (kind !== 'server.create' && kind !== 'server.rebuild'))
    return { userData: undefined, hasUserDataCopy: true }
  const { namespace = '' } = server.metadata
  const copy = node === undefined ? undefined : await store.get(Secret, userDataKey(server, node))
  const secretData = (await store.get(Secret, { namespace, name }))?.data
  const template =
    server.spec.template === undefined ? undefined : caches.of(Template).get({ name: server.spec.template })
  const read =
    secretData?.['userData'] === undefined
      ? undefined
      : readUserData(Buffer.from(secretData['userData'], 'base64'), {
          isProgramsOnly: runsProgramsOnly(template?.spec.image.built),
        })
  const userData =
    read !== undefined && 'bytes' in read ? { ...secretData, userData: read.bytes.toString('base64') } : secretData
  return {
    userData,
    ...(read !== undefined && 'fault' in read ? { userDataFault: read.fault } : {}),
    hasUserDataCopy: copy !== undefined && (userData === undefined || isDeepStrictEqual(copy.data, userData)),
  }
}
