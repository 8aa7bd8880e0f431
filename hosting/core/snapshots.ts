/** Snapshots of etcd in a folder: a file and its record. The record is written first, so that an interrupted snapshot
 *  is taken again. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { ControlPlaneSnapshot } from '../../integrations/control-planes/control.ts'
import { readLines, TooLong } from '../../kit/http/bounded.ts'
import { writeDurably, writeParts } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { ETCD_QUOTA_BYTES } from './flags.ts'
import type { Client } from './https-client.ts'

const run = promisify(execFile)
const Part = z.object({ result: z.object({ blob: z.string().optional() }) })
const Status = z.object({ hash: z.number(), revision: z.number(), totalKey: z.number().min(1) })
/** Length of the checksum that etcd appends. */
const SUM_BYTES = 32
const SILENCE_MILLISECONDS = 30_000
/** Limit of one part of a snapshot: etcd sends parts of 32 KiB in base64. */
const LINE_BYTES_MAXIMUM = 1024 ** 2

/** Limit of a complete snapshot: etcd accepts no writes beyond its quota, except for those in progress. */
const SNAPSHOT_BYTES_MAXIMUM = 1.25 * ETCD_QUOTA_BYTES

export const snapshotFile = (folder: string, id: string): string => join(folder, `${id}.db`)
const recordFile = (folder: string, id: string): string => join(folder, `${id}.json`)

/** The record of a snapshot. */
export const KeptSnapshot = ControlPlaneSnapshot.extend({
  /** Digest of the file. Null before it is taken, and for snapshots of older hosts, which did not compute it; those are
   *  not stored elsewhere. */
  sha256: z.string().nullable().default(null),
  /** It was deleted here and may still be in the object storage. */
  isForgotten: z.boolean().default(false),
})
export type KeptSnapshot = z.infer<typeof KeptSnapshot>

/** Newest last, including deleted ones that may still be in the object storage. */
export async function listSnapshots(folder: string): Promise<readonly KeptSnapshot[]> {
  const names = await readdir(folder).catch(() => [])
  const records = names.filter((name) => name.endsWith('.json'))
  const found = await Promise.all(records.map((name) => readFile(join(folder, name), 'utf8')))
  return found
    .map((text) => KeptSnapshot.parse(JSON.parse(text)))
    .sort((one, other) => one.createdAt.localeCompare(other.createdAt))
}

export async function writeSnapshot(folder: string, snapshot: KeptSnapshot): Promise<void> {
  await makeFolder(folder, 0o700)
  await writeDurably(recordFile(folder, snapshot.id), JSON.stringify(snapshot))
}

export async function removeSnapshot(folder: string, id: string): Promise<void> {
  await rm(snapshotFile(folder, id), { force: true })
  await rm(recordFile(folder, id), { force: true })
}

interface TakeOptions {
  readonly folder: string
  readonly id: string
  /** Its bytes. */
  readonly parts: AsyncIterable<Uint8Array>
  /** Program that verifies it. When undefined, only the checksum that etcd appends is verified. */
  readonly etcdutl: string | undefined
}

/** Size and digest of a complete snapshot. */
export interface TakenSnapshot {
  readonly sizeBytes: number
  readonly sha256: string
}

/** Streams a snapshot that etcd takes now. Throws network errors, and an error for invalid responses. */
export async function* snapshotParts(client: Client, etcdUrl: string): AsyncGenerator<Uint8Array, void> {
  const response = await client.open(`${etcdUrl}/v3/maintenance/snapshot`, {
    method: 'POST',
    body: {},
    timeoutMilliseconds: SILENCE_MILLISECONDS,
  })
  if (response.statusCode !== 200) throw new Error(`etcd answered ${response.statusCode}`)
  for await (const line of readLines(response, LINE_BYTES_MAXIMUM)) {
    const { blob } = Part.parse(JSON.parse(line)).result
    if (blob !== undefined) yield Buffer.from(blob, 'base64')
  }
}

/** Writes a snapshot and verifies it; returns its size and digest once it is durable. Throws TooLong when it is larger
 *  than etcd allows. */
export async function takeSnapshot({ folder, id, parts, etcdutl }: TakeOptions): Promise<TakenSnapshot> {
  const file = snapshotFile(folder, id)
  const partial = `${file}.partial`
  const digest = createHash('sha256')
  let sizeBytes = 0
  const counted = async function* () {
    for await (const bytes of parts) {
      sizeBytes += bytes.length
      if (sizeBytes > SNAPSHOT_BYTES_MAXIMUM) throw new TooLong(SNAPSHOT_BYTES_MAXIMUM)
      digest.update(bytes)
      yield bytes
    }
  }
  try {
    await writeParts(partial, counted())
    await (etcdutl === undefined ? verifySum(partial) : verify(etcdutl, partial))
    await rename(partial, file)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  return { sizeBytes, sha256: digest.digest('hex') }
}

/** Digest of the file's content; undefined when the file does not exist. */
export async function digestOfFile(file: string): Promise<string | undefined> {
  const digest = createHash('sha256')
  try {
    for await (const part of createReadStream(file)) digest.update(part as Buffer) // without an encoding
  } catch (error) {
    // Reading a file throws errno errors only.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return digest.digest('hex')
}

/** Throws unless the file ends with the digest of everything before it. */
export async function verifySum(file: string): Promise<void> {
  const { size } = await stat(file)
  if (size <= SUM_BYTES) throw new Error('the snapshot is empty')
  const digest = createHash('sha256')
  // Without an encoding, parts are bytes.
  for await (const part of createReadStream(file, { end: size - SUM_BYTES - 1 })) digest.update(part as Buffer)
  const sum: Buffer[] = []
  for await (const part of createReadStream(file, { start: size - SUM_BYTES })) sum.push(part as Buffer) // likewise
  if (!digest.digest().equals(Buffer.concat(sum))) throw new Error('the snapshot is not whole')
}

/** Throws unless etcd's own tool accepts it as a complete snapshot that is not empty. */
async function verify(etcdutl: string, file: string): Promise<void> {
  const { stdout } = await run(etcdutl, ['snapshot', 'status', file, '--write-out=json'])
  Status.parse(JSON.parse(stdout))
}
