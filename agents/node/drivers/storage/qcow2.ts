/** Volumes as qcow2 files on the host's disk: overlays of their template's disk, which keeps its place for as long as they live. */
import { mkdir, open, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { syncFolder, writeDurably } from '../../durable-file.ts'
import { runProgram } from '../../run-program.ts'
import type { HeldVolume, VolumeStore } from './volume-store.ts'

const DISK = '.qcow2'
const RECORD = '.json'
const UNFINISHED = '.new'
const CREATE_TIMEOUT_MILLISECONDS = 300_000

const Record = z.strictObject({ name: z.string(), sizeGibibytes: z.int(), source: z.strictObject({ name: z.string(), version: z.string() }).optional() })

/** Removes what an agent that was killed left unfinished. */
export async function openQcow2Volumes(folder: string): Promise<VolumeStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const root = await realpath(folder)
  for (const name of await readdir(root)) if (name.endsWith(UNFINISHED)) await rm(join(root, name))
  const pathOf = (name: string) => join(root, `${name}${DISK}`)
  const recordOf = (name: string) => join(root, `${name}${RECORD}`)

  async function inspect(name: string): Promise<HeldVolume | undefined> {
    const text = await readFile(recordOf(name), 'utf8').catch(() => undefined)
    return text === undefined ? undefined : (Record.parse(JSON.parse(text)) as HeldVolume) // exact optional fields are beyond zod's types
  }

  return {
    inspect, pathOf,
    async list() {
      const names = (await readdir(root)).filter((file) => file.endsWith(RECORD)).map((file) => file.slice(0, -RECORD.length))
      return (await Promise.all(names.map(inspect))).filter((volume) => volume !== undefined)
    },
    async create({ name, sizeGibibytes, source }) {
      if (await inspect(name) !== undefined) return
      const unfinished = `${pathOf(name)}${UNFINISHED}`
      const backing = source?.disk === undefined ? [] : ['-b', source.disk, '-F', 'qcow2']
      await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', ...backing, unfinished, `${sizeGibibytes}G`], { timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS })
      const file = await open(unfinished, 'r')
      await file.sync().finally(() => file.close())
      await rename(unfinished, pathOf(name))
      // The record says that the disk is there: written last, removed first.
      await writeDurably(recordOf(name), JSON.stringify({ name, sizeGibibytes, ...(source === undefined ? {} : { source: { name: source.name, version: source.version } }) }))
    },
    async grow(name, sizeGibibytes) {
      const volume = await inspect(name)
      if (volume === undefined || volume.sizeGibibytes >= sizeGibibytes) return
      // Once more after a crash is the same again: the record follows the disk.
      await runProgram('qemu-img', ['resize', '-q', '-f', 'qcow2', pathOf(name), `${sizeGibibytes}G`], { timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS })
      const file = await open(pathOf(name), 'r')
      await file.sync().finally(() => file.close())
      await writeDurably(recordOf(name), JSON.stringify({ ...volume, sizeGibibytes }))
    },
    async remove(name) {
      for (const path of [recordOf(name), pathOf(name), `${pathOf(name)}${UNFINISHED}`]) await rm(path, { force: true })
      await syncFolder(root)
    },
  }
}
