/** What the storage controller knows of the world when it decides. */
import type { MigrationProgress } from '../../resources/server/index.ts'
import type { VolumeObject } from './volumes.ts'

export interface Observed {
  /** Undefined when the server has no room on any node. */
  readonly node: string | undefined
  /** Of that node. */
  readonly zone?: string | undefined
  /** Where the server is on its way to. */
  readonly target?:
    | { readonly node: string; readonly zone: string; readonly operationId: string; readonly pools: readonly string[] }
    | undefined
  /** How far it is, as its server says. */
  readonly migration?: Pick<MigrationProgress, 'operationId' | 'state'> | undefined
  /** Secret of both nodes that a move shares. */
  readonly moveSecretName?: string | undefined
  readonly region: string | undefined
  /** All of this storage, on whatever node. */
  readonly volumes: readonly VolumeObject[]
  /** Nodes where an instance has the disk. */
  readonly usedOn: readonly string[]
  /** Of the nodes that hold it: those that are proven to run nothing any more, or are given up with the server. */
  readonly lostNodes?: readonly string[]
  /** Its server is released by force, with whatever is left of it. */
  readonly isReleased?: boolean
  /** One that is not lost and reaches the shared storage of the server's node. */
  readonly successorNode?: string | undefined
  /** The server's node has no guest of it, and shall have none. */
  readonly isGuestOff: boolean
  /** Shared storage of the server's node. */
  readonly pools: readonly string[]
  /** The server stays, or its guest still has the disk. */
  readonly isInUse: boolean
}
