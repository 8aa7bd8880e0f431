/** What the server controller reads of the world before it decides. */
import { isDeepStrictEqual } from 'node:util'
import { isUuid } from '../../domain/uuid.ts'
import { listKubernetesRequests } from '../../db/request/index.ts'
import { findServerGroup } from '../../db/server-group/index.ts'
import { accountExists, type ClaimsReading } from '../../db/server/index.ts'
import { type Key, Secret } from '../../kit/kube/object.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import {
  Instance,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../resources/instance/index.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { orUnavailable } from '../database.ts'
import { findEditor, requesterOf } from '../operation/direct-edit.ts'
import { activeOperation } from '../operation/stanza.ts'
import type { Parts } from '../parts.ts'
import { detectEdit } from './direct-edit.ts'
import { storageKey, uidOf, userDataKey } from './drafts.ts'
import type { InstanceObject, Observed, ServerObject } from './observed.ts'
import { obsoleteUserData } from './rebuild/index.ts'

export interface Readings extends Parts {
  readonly claimsOf: ClaimsReading
}

export async function observe({ caches, store, db, claimsOf }: Readings, server: ServerObject): Promise<Observed> {
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
      edit === undefined
        ? ''
        : (requesterOf(requests, edit.kind) ?? (await findEditor(store, Server, server, edit.field))),
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
 *  storage refuses is fenced for those alone whose disk lies there: a guest on a disk of the host may write on. */
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
