/** What the server's plan may decide: the effects of servers by name, each with its input. They are carried out by
 *  `effects.ts`. */
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

/** A migration, by the operation that began it. */
export interface MigrationRef extends ServerId {
  readonly operationId: string
}

/** Room for a server on another node. */
export type TargetReservation = Omit<TargetRequest, 'excludedNodes'> & {
  /** Shared storage that the node must reach: all of it. */
  readonly pools?: readonly string[]
  /** The node must reach some, whichever that is. */
  readonly isToShare?: boolean
}

/** A Secret and its copy. */
export type SecretCopy = readonly [source: Key, target: Key]

export interface MigrationEffects {
  readonly reserve: TargetReservation
  /** The server lives on its target from then on. */
  readonly switch: MigrationRef
  /** The room on the target is given back. */
  readonly release: MigrationRef
  readonly shareKeys: { readonly keys: SecretCopy; readonly userData?: SecretCopy }
  readonly bringUserData: { readonly userData: SecretCopy }
}

/** What a server has on a node that will not come back. */
export interface LostNode {
  readonly node: string
  /** Names of what the server has there. */
  readonly instance: string
  readonly volume: string | undefined
  readonly isAttested: boolean
}

export type SizeDemand = Omit<Parameters<typeof beginSizeChange>[1], 'excludedNodes'> & {
  /** Shared storage that the node must reach. */
  readonly pool?: string
}

/** Everything that the rows of a server in the zone's network follow from. */
export interface NetworkPorts {
  readonly zone: string
  readonly uid: string
  /** Where the server is, and where it is on its way to. */
  readonly nodes: readonly string[]
  readonly interfaces: readonly InterfaceFacts[]
  readonly firewall: FirewallFacts & { readonly generation: number }
  /** Its hosts only simulate guests, and have no network that could follow. */
  readonly isSimulated: boolean
}

/** Networks that a server is put into and taken out of. */
export interface Joining extends ServerId {
  readonly joining: readonly Omit<InterfaceDemand, 'networkUid'>[]
  /** Ids of networks. */
  readonly leaving: readonly string[]
}

interface OwnEffects extends AuditEffects {
  readonly claim: ServerDemand
  /** What it has and no claims say so. */
  readonly keep_in_use: ServerId & { readonly uses: readonly Use[] }
  readonly give_back: ServerId
  readonly renumber: Parameters<typeof renumberServer>[1]
  readonly resize: SizeDemand
  readonly sized: Parameters<typeof endSizeChange>[1]
  readonly forceRelease: LostNode
  /** The zone's network follows the server. */
  readonly program: NetworkPorts
  readonly join: Joining
  /** Interfaces that the guest has let go of give their addresses back. */
  readonly leave: { readonly accountId: string; readonly ids: readonly string[] }
}

export type ServerEffects = JoinedInputs<OwnEffects, MigrationEffects>
export type ServerAction = ActionWith<ServerEffects>
