/** Managed machines, for the controllers of their owners: what wakes an owner, what it reads about its machines, what
 *  it plans, and how a configuration reaches the host of a machine. The controller of servers creates, places and
 *  deletes them as any server. */
import { listManagedServers } from '../../../db/server/index.ts'
import {
  IMAGE_VERSION_ARGUMENT,
  managedByOf,
  machineOwnerOf,
  type MachineOwnerType,
} from '../../../domain/managed-machine/rules.ts'
import { apiVersionOf, keyText, type ResourceType, Secret } from '../../../kit/kube/object.ts'
import { watch, type Watch } from '../../../kit/reconcile/reconciler.ts'
import {
  AGENT_FINALIZER,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../../resources/instance/index.ts'
import { MACHINE_ROLE_LABEL } from '../../../resources/kit/labels.ts'
import {
  MACHINE_DOCUMENT_BYTES_MAXIMUM,
  MACHINE_DOCUMENT_KEY,
  MachineDocument,
  type MachineDocumentParts,
  ManagedMachine,
  reportOf,
} from '../../../resources/managed-machine/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { writeSecret } from '../../kit/shared-key.ts'
import {
  type Delivery,
  type Machine,
  type MachineObject,
  newestImageOf,
  type Owner,
  type ServerObject,
} from './machine.ts'

export type {
  ConfigurationId,
  Delivery,
  Machine,
  MachineDemand,
  MachineEffects,
  Owner,
} from './machine.ts'
export {
  delivery,
  configurationFingerprint,
  isSameConfiguration,
  machineName,
  type MachinesPlan,
  planMachines,
  removal,
  serverOf,
  FIRST_ANSWER_SECONDS,
  REPLACE_AFTER_SECONDS,
  RETRY_AFTER_SECONDS,
} from './plan.ts'

/** Kinds that an owner's controller reads and writes for its machines. */
export const MACHINE_READS: readonly ResourceType[] = [Node, NodeReport, Storage, Volume]
export const MACHINE_WRITES: readonly ResourceType[] = [Server, ManagedMachine, Secret]

const OWNER_INDEX = 'owner of a managed machine'
const SERVER_INDEX = 'server of a managed machine'

export interface Machines {
  /** Wake the owner on any change of its machines. */
  readonly watches: readonly Watch[]
  /** From the caches, including those that are being deleted. */
  observe(owner: Pick<Owner, 'namespace' | 'id'>): readonly Machine[]
}

/** Names of Servers in the namespace of the owner that are missing and of which something is left: the claims of a
 *  machine, or a guest on a host. A deletion releases both before the Server goes. A second machine of that name would
 *  use the same claims, and run beside the guest. */
export async function findLostMachines(
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  {
    type,
    id,
    namespace,
    accountId,
  }: Pick<Owner, 'type' | 'id' | 'namespace'> & { readonly accountId: string | undefined },
): Promise<readonly string[]> {
  const claimed =
    accountId === undefined
      ? []
      : await orUnavailable(listManagedServers(db, { accountId, managedBy: managedByOf({ type, id }) }))
  const guests = caches
    .of(NodeReport)
    .list()
    .flatMap(({ status }) => status?.unnamed ?? [])
    .flatMap(({ server }) => (server?.namespace === namespace ? [server.name] : []))
  return [...new Set([...claimed, ...guests])].filter(
    (name) => caches.of(Server).get({ namespace, name }) === undefined,
  )
}

/** The machines of owners of that type. */
export function openMachines({ caches }: Pick<Parts, 'caches'>, type: MachineOwnerType): Machines {
  const servers = caches.of(Server)
  const objects = caches.of(ManagedMachine)
  const [volumes, storages, reports] = [caches.of(Volume), caches.of(Storage), caches.of(NodeReport)]
  const nodes = caches.of(Node)
  servers.addIndex(OWNER_INDEX, ({ metadata: { namespace }, spec: { managedBy } }) =>
    managedBy === undefined ? [] : [`${namespace}/${managedBy}`],
  )
  objects.addIndex(SERVER_INDEX, ({ spec }) => [spec.server.uid])
  const keysOf = (namespace: string, managedBy: string | undefined) => {
    const owner = machineOwnerOf(managedBy)
    return owner?.type === type ? [{ namespace, name: owner.id }] : []
  }
  const versions = ({ metadata, spec, status }: ServerObject) => {
    const { namespace = '', name } = metadata
    const node = status?.nodeName
    const storage = storages.get({ namespace, name: spec.bootStorageId ?? name })?.metadata.uid
    if (node === undefined || storage === undefined) return { imageVersion: undefined, newestImageVersion: undefined }
    const own = nodeNamespace(node)
    const report = reports.get({ namespace: own, name: NODE_REPORT_NAME })?.spec
    return {
      imageVersion: volumes.get({ namespace: own, name: storage })?.status?.origin?.version,
      newestImageVersion: newestImageOf(spec.template, report),
    }
  }
  return {
    watches: [
      watch(Server, ({ metadata: { namespace = '' }, spec }) => keysOf(namespace, spec.managedBy)),
      watch(ManagedMachine, ({ spec }) => keysOf(spec.server.namespace, spec.managedBy)),
      watch(Storage, () => []),
      watch(Volume, () => []),
      watch(NodeReport, () => []),
      watch(Node, () => []),
    ],
    observe: ({ namespace, id }) =>
      servers.by(OWNER_INDEX, `${namespace}/${managedByOf({ type, id })}`).map((server) => {
        const node = nodes.get({ name: server.status?.nodeName ?? '' })?.status
        return machineOf(server, objects.by(SERVER_INDEX, server.metadata.uid ?? ''), {
          ...versions(server),
          nodeState: node?.state,
          nodeSince: node?.conditions?.find((condition) => condition.type === 'Ready')?.lastTransitionTime,
        })
      }),
  }
}

function machineOf(
  { metadata, spec, status }: ServerObject,
  objects: readonly MachineObject[],
  ofHost: Pick<Machine, 'imageVersion' | 'newestImageVersion' | 'nodeState' | 'nodeSince'>,
): Machine {
  const node = status?.nodeName
  const known = objects.find((object) => nodeOf(object) === node && object.metadata.deletionTimestamp === undefined)
  const configuration = known?.spec.configuration
  const running = known?.status?.running
  const isRunning =
    running !== undefined &&
    running.generation === configuration?.generation &&
    running.fingerprint === configuration.fingerprint
  return {
    role: metadata.labels?.[MACHINE_ROLE_LABEL] ?? '',
    serverId: metadata.name,
    serverUid: metadata.uid ?? '',
    plan: spec.plan,
    state: status?.state ?? 'creating',
    stateDetail: status?.stateDetail ?? '',
    isDeleting: metadata.deletionTimestamp !== undefined || status?.state === 'deleting',
    createdAt: metadata.creationTimestamp ?? '',
    startedAt: [status?.startedAt ?? '', status?.operation?.finishedAt ?? ''].toSorted().at(-1) || undefined,
    desiredPower: spec.desiredPower,
    node,
    sharedAddresses: spec.sharedAddresses ?? [],
    publicIpv4: status?.publicIpv4,
    publicIpv6: status?.publicIpv6,
    publicIpv6Prefix: status?.publicIpv6Prefix,
    publicMacAddress: status?.macAddress,
    interfaces: status?.interfaces ?? [],
    delivered: configuration && { generation: configuration.generation, fingerprint: configuration.fingerprint },
    running,
    isHealthy: isRunning && known?.status?.isHealthy === true && status?.state === 'started',
    detail: known?.status?.detail ?? '',
    judgedSince: judgedSince(known, isRunning),
    report: reportOf(known?.status?.report),
    reportedAt: known?.status?.reportedAt,
    diskExchange: diskExchangeOf(spec, status),
    ...ofHost,
    objects,
  }
}

function diskExchangeOf(spec: ServerObject['spec'], status: ServerObject['status']): Machine['diskExchange'] {
  const { operation } = spec
  if (operation?.kind !== 'server.rebuild') return undefined
  const progress = status?.operation?.id === operation.id ? status.operation : undefined
  return {
    imageVersion: operation.arguments?.[IMAGE_VERSION_ARGUMENT] ?? '',
    isOver: progress?.finishedAt !== undefined,
    error: progress?.status === 'failed' ? (progress.error ?? 'It failed.') : '',
  }
}

/** A healthy machine that does not run the delivered configuration yet is judged from the time of the delivery. */
const judgedSince = (known: MachineObject | undefined, isRunning: boolean): string | undefined =>
  !isRunning && known?.status?.isHealthy === true
    ? (known.spec.configuration?.deliveredAt ?? known.status.reportedAt)
    : known?.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime

/** Writes a document for the host of the machine: the effect `deliver` of every owner calls it last. The Secret is
 *  owned by the ManagedMachine in the node's namespace. Throws when the document is invalid, is too large, or cannot be
 *  written. */
export async function deliverDocument(
  parts: Pick<Parts, 'store' | 'clock'>,
  { node, managedBy, server, generation, fingerprint }: Delivery,
  document: MachineDocumentParts,
): Promise<void> {
  const whole = MachineDocument.parse({ ...document, machine: server.uid, generation, fingerprint })
  const text = Buffer.from(JSON.stringify(whole))
  if (text.length > MACHINE_DOCUMENT_BYTES_MAXIMUM)
    throw new Error(
      `the configuration of ${managedBy} has ${text.length} bytes, the most is ${MACHINE_DOCUMENT_BYTES_MAXIMUM}`,
    )
  const key = { namespace: nodeNamespace(node), name: server.uid }
  const secret = { namespace: key.namespace, name: `machine-${server.uid}` }
  const metadata = { ...key, finalizers: [AGENT_FINALIZER] }
  const known = await parts.store.get(ManagedMachine, key)
  // The object is created first, without the new configuration, so that the Secret is deleted with it.
  const object = known ?? (await parts.store.apply(ManagedMachine, { metadata, spec: { server, managedBy } }))
  if (object.metadata.deletionTimestamp !== undefined) return
  await writeSecret(
    parts,
    {
      ...secret,
      ownerReferences: [
        {
          apiVersion: apiVersionOf(ManagedMachine),
          kind: ManagedMachine.kind,
          name: key.name,
          uid: object.metadata.uid ?? fail(keyText(key)),
        },
      ],
    },
    { [MACHINE_DOCUMENT_KEY]: text.toString('base64') },
  )
  await parts.store.apply(ManagedMachine, {
    metadata,
    spec: {
      server,
      managedBy,
      configuration: {
        generation,
        fingerprint,
        secretName: secret.name,
        deliveredAt: parts.clock.now().toISOString(),
      },
    },
  })
}

function fail(key: string): never {
  throw new Error(`ManagedMachine ${key} was never stored`)
}
