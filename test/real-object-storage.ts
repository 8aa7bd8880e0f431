/** Object storage with its real engine for tests, and Amazon's client of it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll } from 'vitest'
import { probePort } from '../embedded/kit/ports.ts'
import { openCertificates } from '../embedded/kubernetes/server/certificates.ts'
import { findEngine } from '../embedded/object-storage/program.ts'
import { type RunningObjectStorage, startObjectStorage } from '../embedded/object-storage/start.ts'
import { type ObjectStorageControl, openControl, type TenantSettings } from '../integrations/object-storage/control.ts'
import { newTenantKeys } from '../integrations/object-storage/keys.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'
import { systemRandom } from '../kit/sys/random.ts'

const HOST = '127.0.0.1'

export interface RealObjectStorage {
  readonly folder: string
  readonly url: string
  /** PEM of the authority of its certificate. */
  readonly authority: string
  readonly running: RunningObjectStorage
  readonly control: ObjectStorageControl
}

/** Whoever starts it stops it. */
export async function startRealObjectStorage(): Promise<RealObjectStorage & { stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-objects-'))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost', HOST] })
  const controlPort = await probePort(HOST, 0)
  const running = await startObjectStorage({
    ...parts,
    folder,
    certificates,
    controlPort,
    host: HOST,
    port: 0,
    token: 'token',
    registry: join(folder, 'registry'),
    program: (await findEngine()) ?? 'versitygw',
  })
  const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
  return {
    folder,
    url: `https://localhost:${running.port}`,
    authority: certificates.authority,
    running,
    control: openControl({ url: `http://${HOST}:${controlPort}`, token: 'token' }, never),
    async stop() {
      await running.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Read inside tests and hooks only. */
export function useObjectStorage(): { readonly store: RealObjectStorage } {
  let opened: Awaited<ReturnType<typeof startRealObjectStorage>> | undefined
  beforeAll(async () => {
    opened = await startRealObjectStorage()
  })
  afterAll(() => opened?.stop())
  return {
    get store() {
      if (opened === undefined) throw new Error('the store is there while tests and hooks run, not before')
      return opened
    },
  }
}

export const newTenantSettings = (more: Partial<TenantSettings> = {}) => ({
  ...newTenantKeys(systemRandom),
  quotaBytes: 1e9,
  isSuspended: false,
  isFrozen: false,
  ...more,
})

/** Of Amazon's, at an S3 server with a certificate of this authority. */
export const s3ClientOf = (
  endpoint: string,
  { accessKeyId, secretAccessKey }: Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'>,
  { authority, region = 'us-east-1' }: { readonly authority?: string; readonly region?: string } = {},
): S3Client =>
  new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId, secretAccessKey },
    ...(authority === undefined
      ? {}
      : { requestHandler: { httpsAgent: new Agent({ ca: authority, keepAlive: true }) } }),
  })
