/** The desired children of a server: boot storage, instance and the copy of its user data. */
import { isDeepStrictEqual } from 'node:util'
import type { ServerClaims } from '../../../db/server/index.ts'
import { defined } from '../../../domain/defined.ts'
import { apiVersionOf, type Key, type KubeObject, Secret } from '../../../kit/kube/object.ts'
import type { ServerAction } from './actions.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { AGENT_FINALIZER, Instance, type InstanceSpec, nodeNamespace } from '../../../resources/instance/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { serialOf, Storage, type StorageSpec } from '../../../resources/storage/index.ts'
import { ACCOUNT_LABEL, OPERATION_ANNOTATION, SERVER_LABEL } from '../../../resources/kit/labels.ts'
import { publicInterface } from './addresses.ts'
import { privateInterfaces } from './networks.ts'
import type { InstanceObject, Observed, ServerObject, StorageObject } from './observed.ts'

/** What only the flow of operations decides about an instance. */
export interface Power {
  readonly power: 'running' | 'stopped'
  readonly incarnation: number
  readonly stop?: InstanceSpec['stop'] | undefined
  readonly receive?: InstanceSpec['receive'] | undefined
  readonly send?: InstanceSpec['send'] | undefined
  readonly operationId: string
}

/** A node that has the server's instance or is to get it. */
export interface Place {
  readonly node: string
  readonly instance: InstanceObject | undefined
}

/** The uid of an object that was read from Kubernetes; an object without one was never stored, which is a bug. */
export const uidOf = (object: KubeObject): string => {
  if (object.metadata.uid === undefined) throw new Error(`${object.kind} ${object.metadata.name} was never stored`)
  return object.metadata.uid
}
const namespaceOf = (object: KubeObject): string => object.metadata.namespace ?? ''

const LABEL_LENGTH_MAXIMUM = 63

/** For people: the platform finds children by their spec. A name that is too long for a label is left out. */
const childLabels = (server: ServerObject, observed: Observed): Record<string, string> => ({
  ...(observed.accountId === undefined ? {} : { [ACCOUNT_LABEL]: observed.accountId }),
  ...(server.metadata.name.length > LABEL_LENGTH_MAXIMUM ? {} : { [SERVER_LABEL]: server.metadata.name }),
})

/** The first boot storage has the name of its server; a rebuilt server has another. */
export const bootStorageName = ({ spec, metadata }: ServerObject): string => spec.bootStorageId ?? metadata.name
/** The key of the boot storage. */
export const storageKey = (server: ServerObject): Key => ({
  namespace: namespaceOf(server),
  name: bootStorageName(server),
})
/** The key of the server's instance on the node. */
export const instanceKey = (server: ServerObject, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: uidOf(server),
})
/** The Secret with the key that both ends of a move share. */
export const migrationKeyKey = (server: ServerObject, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `move-${uidOf(server)}`,
})
/** The copy of the user data that the agent of the node may read. */
export const userDataKey = (server: ServerObject, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `user-data-${uidOf(server)}`,
})

/** The boot storage, or the one of this name that replaces it. */
export function ensureStorage(
  server: ServerObject,
  observed: Observed,
  claims: ServerClaims,
  name = bootStorageName(server),
): ServerAction {
  // What the owner has changed on an existing storage stays; a rebuild keeps its backup schedule.
  const before = observed.storage?.spec
  const previous = observed.storage?.metadata.name === name ? before : undefined
  const backupSchedule = before === undefined ? server.spec.backupSchedule : before.backupSchedule
  const spec: StorageSpec = {
    zone: before?.zone ?? server.spec.zone,
    title: previous?.title ?? server.spec.title,
    sizeGibibytes: claims.placement.storageGibibytes,
    tier: 'standard',
    isBoot: true,
    serverId: server.metadata.name,
    labels: {},
    isProtected: previous?.isProtected ?? false,
    ...defined({ backupSchedule }),
    ...sourceOf(server),
  }
  // If the server is ever deleted without its controller, the cluster's garbage collector deletes the storage.
  const ownerReferences = [
    {
      apiVersion: apiVersionOf(Server),
      kind: Server.kind,
      name: server.metadata.name,
      uid: uidOf(server),
      controller: true,
    },
  ]
  return {
    do: 'ensure',
    type: Storage,
    draft: {
      metadata: {
        ...storageKey(server),
        name,
        labels: childLabels(server, observed),
        ownerReferences,
        finalizers: [finalizerOf(Storage)],
      },
      spec,
    },
  }
}

const sourceOf = ({ spec: { template, customImageId } }: ServerObject): Pick<StorageSpec, 'source'> =>
  customImageId !== undefined
    ? { source: { kind: 'image', id: customImageId } }
    : template !== undefined
      ? { source: { kind: 'template', id: template } }
      : {}

/** `observed.userData` must have been read. */
export function ensureUserData(server: ServerObject, observed: Observed, node: string): ServerAction {
  const metadata = { ...userDataKey(server, node), labels: childLabels(server, observed) }
  return { do: 'ensure', type: Secret, draft: { metadata, spec: undefined, data: observed.userData ?? {} } }
}

/** Undefined when the instance is exactly as desired already. `place` is the server's node unless another one is
 *  given. */
export function ensureInstance(
  server: ServerObject,
  observed: Observed,
  claims: ServerClaims,
  storage: StorageObject,
  power: Power,
  place: Place = { node: claims.placement.node, instance: observed.instance },
): ServerAction | undefined {
  const spec = instanceSpec(server, observed, claims, storage, power)
  const current = place.instance
  if (
    current !== undefined &&
    isDeepStrictEqual(plain(current.spec), plain(spec)) &&
    madeFor(current) === power.operationId
  )
    return undefined
  const metadata = {
    ...instanceKey(server, place.node),
    labels: childLabels(server, observed),
    annotations: { [OPERATION_ANNOTATION]: power.operationId },
    finalizers: [AGENT_FINALIZER],
  }
  return { do: 'ensure', type: Instance, draft: { metadata, spec } }
}

/** The operation for which the newest incarnation was created. */
export const madeFor = (instance: InstanceObject): string => instance.metadata.annotations?.[OPERATION_ANNOTATION] ?? ''

/** The current power, for updates of everything else. */
export const powerOf = (instance: InstanceObject): Power => ({
  power: instance.spec.power,
  incarnation: instance.spec.incarnation,
  stop: instance.spec.stop,
  receive: instance.spec.receive,
  send: instance.spec.send,
  operationId: madeFor(instance),
})

function instanceSpec(
  server: ServerObject,
  observed: Observed,
  claims: ServerClaims,
  storage: StorageObject,
  power: Power,
): InstanceSpec {
  const { spec, metadata } = server
  const volume = uidOf(storage)
  return {
    server: { namespace: namespaceOf(server), name: metadata.name, uid: uidOf(server) },
    hostname: spec.hostname,
    power: power.power,
    incarnation: power.incarnation,
    ...defined({ stop: power.stop }),
    cores: claims.placement.cores,
    memoryMebibytes: claims.placement.memoryMebibytes,
    disks: [
      { volume, serial: serialOf(storage.metadata.name) },
      ...claims.disks.map(({ storageId, volume: data, slot }) => ({
        volume: data,
        serial: serialOf(storageId),
        slot,
      })),
    ],
    ...(claims.forcedVolumes.length === 0 ? {} : { forcedVolumes: [...claims.forcedVolumes] }),
    interfaces: [publicInterface(claims), ...privateInterfaces(server, claims)],
    template: spec.template ?? '',
    ...defined({ receive: power.receive, send: power.send }),
    metadata: {
      isEnabled: spec.metadataEnabled,
      id: metadata.name,
      title: spec.title,
      zone: spec.zone,
      region: observed.zone?.region ?? '',
      plan: spec.plan,
      publicKeys: spec.sshKeys,
      labels: spec.labels,
      ...(spec.userDataSecretName === undefined
        ? {}
        : { userDataSecretName: userDataKey(server, claims.placement.node).name }),
    },
  }
}

/** The value after a round trip through JSON, so that absent and undefined are the same. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Removes the instances; does nothing for those that are being deleted. */
export const removeInstances = (instances: readonly InstanceObject[] = []): readonly ServerAction[] =>
  instances
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata: { namespace = '', name } }) => ({ do: 'remove', type: Instance, key: { namespace, name } }))
