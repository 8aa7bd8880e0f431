/** What the database controller knows of the world when it decides, and what it may decide. */
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
  /** Its machine, also one that is on its way out. */
  readonly machines: readonly Machine[]
  /** That of its data. */
  readonly storage: StorageObject | undefined
  /** Boot storages of its machine that it does not boot from any more: of an exchange that its host did not survive. */
  readonly spareDisks: readonly Key[]
  /** Undefined in a zone that has no store for it. */
  readonly archive: ArchiveState | undefined
  /** Why it has none, for people; empty otherwise. */
  readonly archiveObstacle: string
  /** Of what it is restored from, until it is; undefined when that is gone, and for one that begins empty. */
  readonly origin: ArchiveRow | undefined
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

/** The effects of databases by name, each with its input. */
export type DatabaseEffects = AuditEffects &
  MachineEffects & {
    readonly claim: DatabaseId & {
      readonly zone: string
      readonly name: string
      readonly networkId: string
      /** What it is restored from. */
      readonly originId?: string
    }
    readonly rename: DatabaseId & { readonly name: string }
    /** Gives it a new certificate for that address. */
    readonly certify: DatabaseId & { readonly host: string }
    /** Makes its archive, or tells the store of it again. */
    readonly archive: DatabaseId & ArchivedSpec
    /** Begins the exchange of its root disk. */
    readonly upgrade: { readonly serverId: string; readonly imageVersion: string }
    /** Gives back all that it has claimed. Its archive stays for so many days. */
    readonly release: DatabaseId & { readonly origin: DatabaseOrigin; readonly keptDays: number }
  }
export type DatabaseEffect = ActionWith<DatabaseEffects>

/** What PostgreSQL was asked for a database, and whether it was granted. */
export const CLAIMED = 'Claimed'
