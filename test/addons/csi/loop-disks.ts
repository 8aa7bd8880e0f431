/** Disks of a guest that is not there: loop devices that are found by serials, as those of storages are in a guest. */
import { execFile } from 'node:child_process'
import { mkdir, open, rm, symlink, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const GIBIBYTE = 1024 ** 3

interface LoopDisk {
  readonly file: string
  readonly device: string
  gibibytes: number
}

export class LoopDisks {
  readonly #folder: string
  readonly #disks = new Map<string, LoopDisk>()

  /** In that folder, which must be there. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Where the node looks. */
  get byId(): string {
    return join(this.#folder, 'by-id')
  }

  serials(): readonly string[] {
    return [...this.#disks.keys()]
  }

  /** What was written to a disk of that serial before is there again. */
  async add(serial: string, gibibytes: number): Promise<string> {
    await mkdir(this.byId, { recursive: true })
    const file = join(this.#folder, `${serial}.raw`)
    const opened = await open(file, 'a')
    await opened.close()
    await truncate(file, gibibytes * GIBIBYTE)
    const device = (await run('losetup', ['--find', '--show', file])).stdout.trim()
    this.#disks.set(serial, { file, device, gibibytes })
    await symlink(device, join(this.byId, `virtio-${serial}`))
    return device
  }

  async grow(serial: string, gibibytes: number): Promise<void> {
    const disk = this.#disks.get(serial)
    if (disk === undefined || disk.gibibytes === gibibytes) return
    await truncate(disk.file, gibibytes * GIBIBYTE)
    await run('losetup', ['--set-capacity', disk.device])
    disk.gibibytes = gibibytes
  }

  /** As a guest that has released it. Its data stay. */
  async remove(serial: string): Promise<void> {
    const disk = this.#disks.get(serial)
    if (disk === undefined) return
    await rm(join(this.byId, `virtio-${serial}`), { force: true })
    await run('losetup', ['--detach', disk.device])
    this.#disks.delete(serial)
  }

  async end(): Promise<void> {
    for (const serial of this.serials()) await this.remove(serial)
  }
}
