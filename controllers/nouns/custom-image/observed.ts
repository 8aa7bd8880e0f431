/** What the custom image controller observes before it decides, and its effects. */
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { CustomImageSpec, CustomImageStatus } from '../../../resources/custom-image/index.ts'
import type { ImageSpec, ImageStatus } from '../../../resources/instance/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { SharedBackups } from '../../kit/backup-key.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { SecretPlace } from '../../kit/shared-key.ts'

export type CustomImageObject = KubeObject<CustomImageSpec, CustomImageStatus>
export type ImageObject = KubeObject<ImageSpec, ImageStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  /** Its part of the quota is claimed. */
  readonly isClaimed: boolean
  /** GiB that it has claimed of the quota. */
  readonly claimedGibibytes?: number
  readonly isZoneKnown: boolean
  /** Nodes of the zone that can be reached. */
  readonly nodes: readonly string[]
  /** The Images on nodes. */
  readonly images: readonly ImageObject[]
  /** The disk that it is created from; undefined when it is created from something else. */
  readonly disk?: DiskSource | undefined
  /** The image of another zone that it is a copy of, while that exists. */
  readonly origin?: { readonly images: readonly ImageObject[]; readonly nodes: readonly string[] } | undefined
  /** Size of its source, in GiB, where that is known. */
  readonly sourceGibibytes?: number | undefined
  /** Another image is being created as a copy of it. */
  readonly isCopied?: boolean
  /** Least memory of servers with the system of its source. */
  readonly minMemoryMebibytes?: number | undefined
  /** Edits that people asked the Kubernetes API for since the last reconcile. */
  readonly edits?: readonly KubernetesRequest[]
  /** Servers and storages that are being created from it; undefined unless it is being deleted. */
  readonly users?: readonly string[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** `waiting` ends by itself; `refused` does not. */
export type DiskSource =
  | {
      readonly is: 'known'
      readonly node: string
      readonly content: Pick<ImageSpec, 'volume' | 'snapshot' | 'backup' | 'origin'>
    }
  | { readonly is: 'waiting'; readonly for: string }
  | { readonly is: 'refused'; readonly why: string }

export interface ImageId {
  readonly accountId: string
  readonly imageId: string
}

export interface ImageClaim extends ImageId {
  readonly sizeGibibytes: number
}

/** The effects of custom images by name, each with its input. */
export interface CustomImageEffects extends AuditEffects {
  readonly claim: ImageClaim
  /** Claims the size that it turned out to have. */
  readonly recordSize: ImageClaim
  readonly giveBack: ImageId
  /** The key of the account's backups, for the node that reads one. */
  readonly shareBackupKey: SharedBackups
  /** The key that both nodes of a copy share. */
  readonly shareKey: { readonly keys: readonly [SecretPlace, SecretPlace] }
}
export type CustomImageAction = ActionWith<CustomImageEffects>
