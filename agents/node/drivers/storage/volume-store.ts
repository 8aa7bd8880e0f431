/** What the agent needs of storage on its host. Two implementations behind one contract suite: `qcow2.ts` and `simulated.ts`. */
import type { TemplateImage } from '../../images/recipe.ts'

export interface HeldVolume {
  readonly name: string
  readonly sizeGibibytes: number
  /** The template's version that it began as; it needs that version for as long as it lives. */
  readonly source?: { readonly name: string; readonly version: string }
}

export interface NewVolume {
  readonly name: string
  readonly sizeGibibytes: number
  readonly source?: TemplateImage
}

export interface VolumeStore {
  list(): Promise<readonly HeldVolume[]>
  /** Undefined when it is not here, or only half. */
  inspect(name: string): Promise<HeldVolume | undefined>
  /** Makes it, whole or not at all; free when it is here. */
  create(volume: NewVolume): Promise<void>
  /** Makes one that is here as large as that; free when it is so already, and never smaller. Never while a guest uses it. */
  grow(name: string, sizeGibibytes: number): Promise<void>
  /** Free when it is not here. Never while a guest uses it. */
  remove(name: string): Promise<void>
  /** Absolute path that a guest is given. */
  pathOf(name: string): string
}
