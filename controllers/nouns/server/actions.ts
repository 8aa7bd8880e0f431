/** The actions of the server's plan: the effects of servers by name, each with its input. `effects.ts` implements
 *  them. */
import type {
  beginSizeChange,
  endSizeChange,
  renumberServer,
  ServerDemand,
  ServerId,
  TargetRequest,
} from '../../../db/server/index.ts'
import type { Use } from '../../../domain/claim/use.ts'
import type { InterfaceDemand } from '../../../db/network-interface/index.ts'
import type { Key } from '../../../kit/kube/object.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith, JoinedInputs } from '../../kit/effects.ts'
import type { FirewallFacts } from '../../network/ovn/firewall.ts'
import type { InterfaceFacts } from '../../network/ovn/interface.ts'

/** A migration, identified by the operation that started it. */
export interface MigrationRef extends ServerId {
  readonly operationId: string
}

/** Room for a server on another node. */
export type TargetReservation = Omit<TargetRequest, 'excludedNodes'> & {
  /** Shared storage that the node must reach, all of it. */
  readonly pools?: readonly string[]
  /** The node must reach any shared storage. */
  readonly isToShare?: boolean
}

/** A Secret and its copy. */
export type SecretCopy = readonly [source: Key, target: Key]

export interface MigrationEffects {
  readonly reserve: TargetReservation
  /** Makes the target the server's node. */
  readonly switch: MigrationRef
  /** Releases the room on the target. */
  readonly release: MigrationRef
  readonly shareKeys: { readonly keys: SecretCopy; readonly userData?: SecretCopy }
  readonly bringUserData: { readonly userData: SecretCopy }
}

/** Objects of a server on a node that will not return. */
export interface LostNode {
  readonly node: string
  /** Names of the server's objects there. */
  readonly instance: string
  readonly volume: string | undefined
  readonly isAttested: boolean
}

export type SizeDemand = Omit<Parameters<typeof beginSizeChange>[1], 'excludedNodes'> & {
  /** Shared storage that the node must reach. */
  readonly pool?: string
}

/** Everything that the rows of a server in the zone's network are derived from. */
export interface NetworkPorts {
  readonly zone: string
  readonly uid: string
  /** The node of the server, and the one that it moves to. */
  readonly nodes: readonly string[]
  readonly interfaces: readonly InterfaceFacts[]
  readonly firewall: FirewallFacts & { readonly generation: number }
  /** Its hosts only simulate guests, and have no network to program. */
  readonly isSimulated: boolean
}

/** Networks that a server joins and leaves. */
export interface Joining extends ServerId {
  readonly joining: readonly Omit<InterfaceDemand, 'networkUid'>[]
  /** Ids of networks. */
  readonly leaving: readonly string[]
}

interface OwnEffects extends AuditEffects {
  readonly claim: ServerDemand
  /** Records what it uses without having claims. */
  readonly keep_in_use: ServerId & { readonly uses: readonly Use[] }
  readonly give_back: ServerId
  readonly renumber: Parameters<typeof renumberServer>[1]
  readonly resize: SizeDemand
  readonly sized: Parameters<typeof endSizeChange>[1]
  readonly forceRelease: LostNode
  /** Programs the zone's network for the server. */
  readonly program: NetworkPorts
  readonly join: Joining
  /** Releases the addresses of interfaces that the guest no longer has. */
  readonly leave: { readonly accountId: string; readonly ids: readonly string[] }
}

export type ServerEffects = JoinedInputs<OwnEffects, MigrationEffects>
export type ServerAction = ActionWith<ServerEffects>
