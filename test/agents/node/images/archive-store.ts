/** The store of archives, as a zone has it: the real engine behind its proxy. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openCertificates } from '../../../../embedded/kubernetes/server/certificates.ts'
import { findEngine } from '../../../../embedded/object-storage/program.ts'
import { type RunningObjectStorage, startObjectStorage } from '../../../../embedded/object-storage/start.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { ARCHIVE_HOST } from '../../../../integrations/object-storage/archive.ts'
import { openControl } from '../../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../../integrations/object-storage/keys.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newBase62, systemRandom } from '../../../../kit/sys/random.ts'
import type { Repository } from '../../../../resources/managed-machine/index.ts'

export interface ArchiveStore {
  /** HOST:PORT. */
  readonly address: string
  /** A new tenant with one bucket. */
  newRepository(): Promise<Repository>
  /** Its tenant exists again, and is empty: as in another store that has just been configured. */
  empty(repository: Repository): Promise<void>
  /** It takes nothing beyond what it holds now and so many bytes more. */
  leaveRoom(repository: Repository, bytes: number): Promise<void>
  /** Ends it, or has it back at the same address. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export async function openArchiveStore(): Promise<ArchiveStore> {
  const folder = await mkdtemp(join(tmpdir(), 'archive-'))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost', ARCHIVE_HOST] })
  const [port, controlPort] = [await probePort('127.0.0.1', 0), await probePort('127.0.0.1', 0)]
  const program = (await findEngine()) ?? 'versitygw'
  let storage: RunningObjectStorage | undefined
  const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
  const control = openControl({ url: `http://127.0.0.1:${controlPort}`, token: 'token' }, never)
  const tell = (
    { accessKeyId, secretAccessKey, bucket }: Pick<Repository, 'accessKeyId' | 'secretAccessKey' | 'bucket'>,
    quotaBytes = 1024 ** 4,
  ) =>
    control.putTenant(bucket, {
      accessKeyId,
      secretAccessKey,
      bucketPrefix: bucket.replace(/archive$/, ''),
      buckets: [bucket],
      quotaBytes,
      isSuspended: false,
      isFrozen: false,
    })
  const store: ArchiveStore = {
    address: `localhost:${port}`,
    async empty(repository) {
      await control.removeTenant(repository.bucket, true)
      await tell(repository)
    },
    async leaveRoom(repository, bytes) {
      const tenant = await control.getTenant(repository.bucket, true)
      await tell(repository, (tenant?.measuredBytes ?? 0) + bytes)
    },
    async newRepository() {
      const { bucketPrefix, ...keys } = newTenantKeys(systemRandom)
      const bucket = `${bucketPrefix}archive`
      await tell({ ...keys, bucket })
      return {
        endpoint: ARCHIVE_HOST,
        port: 443,
        region: 'us-east-1',
        bucket,
        ...keys,
        cipherKey: newBase62(systemRandom, 40),
        authority: certificates.authority,
      }
    },
    async stop() {
      await storage?.stop()
      storage = undefined
    },
    async start() {
      const at = { host: '127.0.0.1', port, controlPort, token: 'token', registry: join(folder, 'registry') }
      storage = await startObjectStorage({ ...parts, ...at, folder, certificates, program })
    },
    async close() {
      await store.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  await store.start()
  return store
}
