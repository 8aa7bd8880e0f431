/** Managed machines as controllers of their owners see them. */
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

/** What has machines: the object that they are run for. */
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

/** Which configuration it is: the generation of the owner's, and a digest of all that the document is made from. */
export interface ConfigurationId {
  readonly generation: number
  readonly fingerprint: string
}

/** What an owner wants of one machine. It holds no secret. */
export interface MachineDemand {
  /** Which of the owner's machines it is: lower-case letters and digits, at most 16, always the same. */
  readonly role: string
  readonly hostname: string
  readonly plan: string
  /** What it boots; that of edges and load balancers when absent. */
  readonly template?: string
  readonly publicIpv4: boolean
  /** Private networks that it is in. */
  readonly networkIds: readonly string[]
  readonly sharedAddresses: NonNullable<ServerSpec['sharedAddresses']>
  /** What it shall run; undefined while that cannot be said yet. */
  readonly configuration?: ConfigurationId | undefined
  /** Its customer may switch it off, and it stays so. */
  readonly keepsPower?: boolean
  /** It is not exchanged for not being healthy. */
  readonly isPatient?: boolean
  /** Of its server; none when absent. */
  readonly labels?: Readonly<Record<string, string>>
  /** Who may sign in, as its server shows it; nobody when absent. */
  readonly sshKeys?: readonly string[]
  /** A newer image is no reason to exchange it: its owner gives it another root disk. */
  readonly keepsImage?: boolean
}

/** A machine as it is, also one that is on its way out. */
export interface Machine {
  /** Empty when nobody says. */
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
  /** RFC 3339: when it was started, moved or recovered last; undefined when it never was. */
  readonly startedAt?: string | undefined
  readonly desiredPower: ServerSpec['desiredPower']
  readonly node: string | undefined
  /** Of that node; undefined when nothing is known of it. */
  readonly nodeState?: NodeStatus['state'] | undefined
  /** RFC 3339: since when that node is ready, or is not. */
  readonly nodeSince?: string | undefined
  readonly sharedAddresses: NonNullable<ServerSpec['sharedAddresses']>
  readonly publicIpv4: string | undefined
  readonly publicIpv6: string | undefined
  readonly publicIpv6Prefix: string | undefined
  readonly publicMacAddress: string | undefined
  readonly interfaces: NonNullable<ServerStatus['interfaces']>
  /** What its host is to deliver to it. */
  readonly delivered: ConfigurationId | undefined
  /** What it says that it runs. */
  readonly running: ConfigurationId | undefined
  /** It runs what was delivered, and all of its services run. */
  readonly isHealthy: boolean
  /** Why it is not healthy, for people. */
  readonly detail: string
  /** RFC 3339: since when `isHealthy` is what it is; undefined before it has answered its host of now. */
  readonly judgedSince: string | undefined
  readonly report: MachineReport | undefined
  readonly reportedAt: string | undefined
  /** Of its image; undefined until its host has said so. */
  readonly imageVersion: string | undefined
  /** The image that its host makes new machines from. */
  readonly newestImageVersion: string | undefined
  /** Undefined when the last operation of its server is another one. */
  readonly diskExchange: DiskExchange | undefined
  /** What its hosts have of it, by node. */
  readonly objects: readonly MachineObject[]
}

export type MachineObject = KubeObject<ManagedMachineSpec, ManagedMachineStatus>
export type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** The image that the host makes machines of that template from; undefined where hosts do not say. Versions of
 *  different templates have nothing to do with each other. */
export function newestImageOf(
  template: string | undefined,
  report: Pick<NodeReportSpec, 'managedImageVersion' | 'databaseImageVersion'> | undefined,
): string | undefined {
  if (template === MANAGED_TEMPLATE) return report?.managedImageVersion
  return template === DATABASE_TEMPLATE ? report?.databaseImageVersion : undefined
}

/** The last exchange of its root disk, as the operation of its server says it. */
export interface DiskExchange {
  /** The image that the new root disk was to be made from; empty when nobody said. */
  readonly imageVersion: string
  readonly isOver: boolean
  /** Why it failed; empty otherwise. */
  readonly error: string
}

/** The effect that every owner brings along: it makes the document, and hands it to `deliverDocument`. */
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
