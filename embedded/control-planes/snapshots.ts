/** Snapshots of etcd in a folder: a file and what is known of it, which is written first, so that one that was cut
 *  short is taken again. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { z } from 'zod'
import { ControlPlaneSnapshot } from '../../kit/control-planes/control.ts'
import { syncToDisk, writeDurably } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import type { Client } from './https-client.ts'

const run = promisify(execFile)
const Part = z.object({ result: z.object({ blob: z.string().optional() }) })
const Status = z.object({ hash: z.number(), revision: z.number(), totalKey: z.number().min(1) })
const SILENCE_MILLISECONDS = 30_000

export const snapshotFile = (folder: string, id: string): string => join(folder, `${id}.db`)
const recordFile = (folder: string, id: string): string => join(folder, `${id}.json`)

/** Newest last. */
export async function listSnapshots(folder: string): Promise<readonly ControlPlaneSnapshot[]> {
  const names = await readdir(folder).catch(() => [])
  const records = names.filter((name) => name.endsWith('.json'))
  const found = await Promise.all(records.map((name) => readFile(join(folder, name), 'utf8')))
  return found
    .map((text) => ControlPlaneSnapshot.parse(JSON.parse(text)))
    .sort((one, other) => one.createdAt.localeCompare(other.createdAt))
}

export async function writeSnapshot(folder: string, snapshot: ControlPlaneSnapshot): Promise<void> {
  await makeFolder(folder, 0o700)
  await writeDurably(recordFile(folder, snapshot.id), JSON.stringify(snapshot))
}

export async function removeSnapshot(folder: string, id: string): Promise<void> {
  await rm(snapshotFile(folder, id), { force: true })
  await rm(recordFile(folder, id), { force: true })
}

export interface TakeOptions {
  readonly folder: string
  readonly id: string
  readonly etcdUrl: string
  readonly etcdutl: string
  readonly client: Client
}

/** Streams it from etcd, has it verified, and answers its size once it is on the disk. */
export async function takeSnapshot({ folder, id, etcdUrl, etcdutl, client }: TakeOptions): Promise<number> {
  const file = snapshotFile(folder, id)
  const partial = `${file}.partial`
  const response = await client.open(`${etcdUrl}/v3/maintenance/snapshot`, {
    method: 'POST',
    body: {},
    timeoutMilliseconds: SILENCE_MILLISECONDS,
  })
  if (response.statusCode !== 200) throw new Error(`etcd answered ${response.statusCode}`)
  const out = createWriteStream(partial, { mode: 0o600 })
  for await (const line of createInterface({ input: response })) {
    const { blob } = Part.parse(JSON.parse(line)).result
    if (blob !== undefined && !out.write(Buffer.from(blob, 'base64'))) await once(out, 'drain')
  }
  out.end()
  await finished(out)
  await verify(etcdutl, partial)
  await syncToDisk(partial)
  await rename(partial, file)
  return (await stat(file)).size
}

/** Throws unless etcd's own tool takes it for a whole snapshot with something in it. */
async function verify(etcdutl: string, file: string): Promise<void> {
  const { stdout } = await run(etcdutl, ['snapshot', 'status', file, '--write-out=json'])
  Status.parse(JSON.parse(stdout))
}
