/** What the database controller observes before it decides, and its actions. */
import type { DatabaseOrigin } from '../../../domain/database/rules.ts'
import type { ArchiveRow, DatabaseClaim, DatabaseId } from '../../../db/database/index.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { Key, KubeObject } from '../../../kit/kube/object.ts'
import type { DatabaseSpec, DatabaseStatus } from '../../../resources/database/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { Machine, MachineEffects } from '../managed-machine/index.ts'
import type { ArchivedSpec, ArchiveState } from './archive.ts'

export type DatabaseObject = KubeObject<DatabaseSpec, DatabaseStatus>
export type StorageObject = KubeObject<StorageSpec, StorageStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: DatabaseClaim | undefined
  /** Ranges of its network; undefined until that has some. */
  readonly networks: readonly string[] | undefined
  /** Its machine, including one that is being deleted. */
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing without an order: claims or guests of them are left. */
  readonly lost: readonly string[]
  /** The storage of its data. */
  readonly storage: StorageObject | undefined
  /** That storage was made and does not exist: `removed` by an order, or `lost`. */
  readonly missingStorage: 'removed' | 'lost' | undefined
  /** Boot storages that its machine no longer boots from: left by a replacement whose host was lost. */
  readonly spareDisks: readonly Key[]
  /** Undefined in a zone that has no store for it. */
  readonly archive: ArchiveState | undefined
  /** Why it has no archive, for people; empty otherwise. */
  readonly archiveObstacle: string
  /** The archive of the database that it is restored from, until it is; undefined when that no longer exists, and for
   *  one that starts empty. */
  readonly origin: ArchiveRow | undefined
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** The effects of databases by name, each with its input. */
export type DatabaseEffects = AuditEffects &
  MachineEffects & {
    readonly claim: DatabaseId & {
      readonly zone: string
      readonly name: string
      readonly networkId: string
      /** The database that it is restored from. */
      readonly originId?: string
    }
    readonly rename: DatabaseId & { readonly name: string }
    /** Issues a new certificate for that address. */
    readonly certify: DatabaseId & { readonly host: string }
    /** Creates its archive, or configures the store with it again. */
    readonly archive: DatabaseId & ArchivedSpec
    /** Starts the replacement of its root disk. */
    readonly upgrade: { readonly serverId: string; readonly imageVersion: string }
    /** Releases all that it has claimed. Its archive stays for `keptDays` days. */
    readonly release: DatabaseId & { readonly origin: DatabaseOrigin; readonly keptDays: number }
  }
export type DatabaseEffect = ActionWith<DatabaseEffects>

/** Whether PostgreSQL granted the claims of the database. */
export const CLAIMED = 'Claimed'
