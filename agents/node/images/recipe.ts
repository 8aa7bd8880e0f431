/** What a template is on a host: a folder of its own per version, complete or absent, shared by all agents of the host.
 *  Versions are never removed while agents run: volumes are overlays on their disks and guests start from their
 *  kernels. */
import type { GuestBoot } from '../drivers/hypervisor/hypervisor.ts'

export interface TemplateImage {
  readonly name: string
  /** Names the build; volumes remember which one they were made from. */
  readonly version: string
  /** Undefined for a disk that brings its own boot loader. */
  readonly boot: GuestBoot | undefined
  /** Absolute path of the qcow2 file that boot volumes begin as; absent for a system that lives in memory. */
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

/** The image cannot be had on this host, for a reason that a person can act on. */
export class ImageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ImageUnavailable'
  }
}
