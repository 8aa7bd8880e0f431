/** A template on a host: one folder for each version, complete or absent, shared by all agents of the host. Versions
 *  are never removed while agents run, because volumes are overlays on their disks and guests start from their kernels.
 */
import type { GuestBoot } from '../drivers/hypervisor/hypervisor.ts'

export interface TemplateImage {
  readonly name: string
  /** Identifies the build; volumes record the version that they were created from. */
  readonly version: string
  /** Undefined for a disk that has its own boot loader. */
  readonly boot: GuestBoot | undefined
  /** Absolute path of the backing file of boot volumes, in qcow2; absent for a system that runs in memory. */
  readonly disk?: string
}

/** The file `manifest.json` of a version's folder: paths are relative to it. */
export interface TemplateManifest {
  readonly kernel: string
  readonly initialRamdisk: string
  readonly commandLine: string
  readonly disk?: string
}

export const MANIFEST_FILE = 'manifest.json'

/** The image is not available on this host, for a reason that a person can act on. */
export class ImageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImageUnavailable'
  }
}
