/** Managed machines, as the controllers of their owners observe them. */
import type {
  ManagedMachineSpec,
  ManagedMachineStatus,
  MachineReport,
} from '../../../resources/managed-machine/index.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import type { NodeReportSpec } from '../../../resources/instance/index.ts'
import type { NodeStatus } from '../../../resources/node/index.ts'
import type { ServerSpec, ServerState, ServerStatus } from '../../../resources/server/index.ts'
import { DATABASE_TEMPLATE, MANAGED_TEMPLATE, type MachineOwnerType } from '../../../domain/managed-machine/rules.ts'
import type { PlainAction } from '../../kit/effects.ts'

/** The owner of machines: the object that they run for. */
export interface Owner {
  readonly type: MachineOwnerType
  /** Name of the object, which is its id in the API. */
  readonly id: string
  readonly uid: string
  readonly namespace: string
  readonly accountId: string
  readonly zone: string
  /** Kind of the object. */
  readonly resource: ResourceType
}

/** Identifies a configuration: the generation of the owner's configuration, and a digest of everything that the
 *  document is built from. */
export interface ConfigurationId {
  readonly generation: number
  readonly fingerprint: string
}

/** The demand of an owner for one machine. It contains no secret. */
export interface MachineDemand {
  /** Which of the owner's machines it is: lower-case letters and digits, at most 16, always the same. */
  readonly role: string
  readonly hostname: string
  readonly plan: string
  /** The template that it boots; that of edges and load balancers when absent. */
  readonly template?: string
  readonly publicIpv4: boolean
  /** Private networks that it is attached to. */
  readonly networkIds: readonly string[]
  readonly sharedAddresses: NonNullable<ServerSpec['sharedAddresses']>
  /** The desired configuration; undefined while it is incomplete. */
  readonly configuration?: ConfigurationId | undefined
  /** Its customer may switch it off, and it then stays off. */
  readonly keepsPower?: boolean
  /** Poor health does not cause its replacement. */
  readonly isPatient?: boolean
  /** Labels of its server; none when absent. */
  readonly labels?: Readonly<Record<string, string>>
  /** Keys that may sign in, as its server shows them; none when absent. */
  readonly sshKeys?: readonly string[]
  /** A newer image does not cause its replacement: its owner gives it another root disk. */
  readonly keepsImage?: boolean
}

/** An observed machine, including one that is being deleted. */
export interface Machine {
  /** Empty when it is not known. */
  readonly role: string
  readonly serverId: string
  readonly serverUid: string
  readonly plan: string
  readonly state: ServerState
  /** Why it is in that state, for people. */
  readonly stateDetail: string
  readonly isDeleting: boolean
  /** RFC 3339. */
  readonly createdAt: string
  /** RFC 3339: when it was last started, moved or recovered; undefined when it never was. */
  readonly startedAt?: string | undefined
  readonly desiredPower: ServerSpec['desiredPower']
  readonly node: string | undefined
  /** State of that node; undefined when it is not known. */
  readonly nodeState?: NodeStatus['state'] | undefined
  /** RFC 3339: since when that node is ready, or is not. */
  readonly nodeSince?: string | undefined
  readonly sharedAddresses: NonNullable<ServerSpec['sharedAddresses']>
  readonly publicIpv4: string | undefined
  readonly publicIpv6: string | undefined
  readonly publicIpv6Prefix: string | undefined
  readonly publicMacAddress: string | undefined
  readonly interfaces: NonNullable<ServerStatus['interfaces']>
  /** The configuration that its host is to deliver to it. */
  readonly delivered: ConfigurationId | undefined
  /** The configuration that it reports to run. */
  readonly running: ConfigurationId | undefined
  /** It runs what was delivered, and all of its services run. */
  readonly isHealthy: boolean
  /** Why it is not healthy, for people. */
  readonly detail: string
  /** RFC 3339: since when `isHealthy` has its value; undefined before it has answered its current host. */
  readonly judgedSince: string | undefined
  readonly report: MachineReport | undefined
  readonly reportedAt: string | undefined
  /** Version of its image; undefined until its host has reported it. */
  readonly imageVersion: string | undefined
  /** The image from which its host creates new machines. */
  readonly newestImageVersion: string | undefined
  /** Undefined when the last operation of its server was another one. */
  readonly diskExchange: DiskExchange | undefined
  /** Its ManagedMachine objects, one for each node. */
  readonly objects: readonly MachineObject[]
}

export type MachineObject = KubeObject<ManagedMachineSpec, ManagedMachineStatus>
export type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** The image from which the host creates machines of that template; undefined where hosts do not report it. Versions of
 *  different templates are unrelated. */
export function newestImageOf(
  template: string | undefined,
  report: Pick<NodeReportSpec, 'managedImageVersion' | 'databaseImageVersion'> | undefined,
): string | undefined {
  if (template === MANAGED_TEMPLATE) return report?.managedImageVersion
  return template === DATABASE_TEMPLATE ? report?.databaseImageVersion : undefined
}

/** The last replacement of its root disk, from the operation of its server. */
export interface DiskExchange {
  /** The image that the new root disk was to be created from; empty when it is not known. */
  readonly imageVersion: string
  readonly isOver: boolean
  /** Why it failed; empty otherwise. */
  readonly error: string
}

/** The effect that every owner implements: it builds the document, and calls `deliverDocument`. */
export interface MachineEffects {
  readonly deliver: Delivery
}

export interface Delivery extends ConfigurationId {
  readonly role: string
  readonly node: string
  readonly managedBy: string
  readonly server: ManagedMachineSpec['server']
}

export type MachineAction = PlainAction | { readonly do: 'effect'; readonly name: 'deliver'; readonly input: Delivery }
