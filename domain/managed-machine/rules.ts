/** Managed machines: servers that the platform runs for a customer. The customer sees the resource that they run for.
 *  Of the servers themselves, the customer sees only those of Kubernetes: nodes, which follow their pool, and dev
 *  clusters. */
import { conflict, type Problem } from '../problem.ts'

/** The types that can have managed machines. */
export const MACHINE_OWNERS = ['edge', 'load_balancer', 'database', 'node_pool', 'dev_cluster'] as const
export type MachineOwnerType = (typeof MACHINE_OWNERS)[number]

export interface MachineOwner {
  readonly type: MachineOwnerType
  readonly id: string
}

/** The template of the machines of edges and load balancers. */
export const MANAGED_TEMPLATE = 'managed-machine'
/** That of the machines of databases: the same with PostgreSQL. */
export const DATABASE_TEMPLATE = 'managed-database'
/** That of the nodes of Kubernetes clusters: the same with containerd and a kubelet. */
export const KUBERNETES_NODE_TEMPLATE = 'kubernetes-node'
/** That of dev clusters: the same as nodes have, with a control plane and an ingress. */
export const DEV_CLUSTER_TEMPLATE = 'dev-cluster'
/** Customers cannot create servers from these. */
export const MANAGED_TEMPLATES = [
  MANAGED_TEMPLATE,
  DATABASE_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
] as const
export type ManagedTemplate = (typeof MANAGED_TEMPLATES)[number]
export const isManagedTemplate = (name: string): boolean => MANAGED_TEMPLATES.some((template) => template === name)
/** The command that brings the image of the template to a host. */
export const MANAGED_IMAGE_COMMAND = 'sudo npm run image:managed'
export const DATABASE_IMAGE_COMMAND = 'sudo npm run image:database'
export const KUBERNETES_IMAGE_COMMAND = 'sudo npm run image:kubernetes'
export const DEV_CLUSTER_IMAGE_COMMAND = 'sudo npm run image:dev-cluster'

/** For a rebuild on trial: the image of its new boot storage. The old one is kept until the machine has become healthy,
 *  and is restored when it does not. */
export const IMAGE_VERSION_ARGUMENT = 'image_version'

const ID_START = 'machine-'
/** Of the machines that customers see. */
const SEEN_STARTS = { node_pool: `${ID_START}node-`, dev_cluster: `${ID_START}dev-` } as const
const startOf = (type: MachineOwnerType | undefined): string =>
  type === 'node_pool' || type === 'dev_cluster' ? SEEN_STARTS[type] : ID_START

/** The name of the Server of a machine: nobody else chooses such a name. */
export const machineIdOf = (uuid: string, type?: MachineOwnerType): string => `${startOf(type)}${uuid}`
/** Whether customers never see a server of this name. They see nodes, because they see the cluster and its volumes are
 *  attached to the nodes; and they see dev clusters, which consist of little else. */
export const isHiddenMachineId = (id: string): boolean =>
  isMachineId(id) && !Object.values(SEEN_STARTS).some((start) => id.startsWith(start))
/** Whether a server, or a storage, of this name belongs to a managed machine. */
export const isMachineId = (id: string): boolean => id.startsWith(ID_START)
/** The same for anything with a type and an id, such as the target of an operation. */
export const isHiddenTarget = ({ type, id }: { readonly type: string; readonly id: string }): boolean =>
  type === 'server' ? isHiddenMachineId(id) : isMachineId(id)
/** As patterns of SQL's `like`: all machines, and the servers among them that customers see. */
export const MACHINE_ID_PATTERN = `${ID_START}%`
export const SEEN_MACHINE_ID_PATTERNS: readonly string[] = Object.values(SEEN_STARTS).map((start) => `${start}%`)

export const MANAGED_BY_LENGTH_MAXIMUM = 280
/** `edge:<id>`, in the form of `managed_by`. */
export const managedByOf = ({ type, id }: MachineOwner): string => `${type}:${id}`

/** Undefined for a text in another form. */
export function machineOwnerOf(managedBy: string | undefined): MachineOwner | undefined {
  const type = MACHINE_OWNERS.find((one) => managedBy?.startsWith(`${one}:`) === true)
  return type === undefined || managedBy === undefined ? undefined : { type, id: managedBy.slice(type.length + 1) }
}

/** 409 that names the owner of a managed machine or its disk, where it is known. */
export function machineInUse(managedBy: string | undefined): Problem {
  const resource = machineOwnerOf(managedBy)
  return resource === undefined
    ? conflict('in_use', 'It is part of a managed resource: change or delete that.')
    : conflict(
        'in_use',
        `The server belongs to the ${resource.type.replace('_', ' ')} ${resource.id}: change or delete that.`,
        {
          resource,
        },
      )
}

/** Actions of customers on the server of one: start and stop it, delete it, recreate it, or anything else. */
export type MachineChange = 'power' | 'delete' | 'remake' | 'other'

/** The server of a dev cluster is the cluster: actions that would delete it, or move its API elsewhere, are done on the
 *  cluster. A node can be started and stopped, and a deleted one is replaced; everything else follows from its pool. */
const CUSTOMERS_MAY: Partial<Record<MachineOwnerType, readonly MachineChange[]>> = {
  dev_cluster: ['power', 'other'],
  node_pool: ['power', 'delete'],
}

/** Throws 409 for resources that customers must not change. */
export function requireOwnMachine(managedBy: string | undefined, change: MachineChange): void {
  if (managedBy === undefined) return
  const type = machineOwnerOf(managedBy)?.type
  if (type === undefined || CUSTOMERS_MAY[type]?.includes(change) !== true) throw machineInUse(managedBy)
}
