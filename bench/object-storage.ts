/** Object storage as it is served, in a separate process, and its engine alone with its own TLS; and a client of each.
 *  For its benchmarks. */
import { fork, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openCertificates } from '../embedded/kubernetes/server/certificates.ts'
import { findEngine, NO_ENGINE } from '../embedded/object-storage/program.ts'
import { prepareObjectStorage } from '../embedded/object-storage/settings.ts'
import { probePort } from '../embedded/kit/ports.ts'
import { openControl } from '../integrations/object-storage/control.ts'
import { newTenantKeys } from '../integrations/object-storage/keys.ts'
import { makeFolder } from '../kit/sys/make-folder.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { environment, nodeBinary } from '../kit/sys/process.ts'
import { SETTINGS_VARIABLE } from '../kit/sys/settings.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import { asLineProcess, type LineProcess } from '../test/controllers/network/ovn/line-process.ts'
import { until } from '../test/eventually.ts'
import type { Done, Order } from './s3-client.ts'

const HOST = '127.0.0.1'
const QUOTA_BYTES = 1024 ** 4
const CLIENT = join(import.meta.dirname, 's3-client.ts')
const PROCESS = new URL('../embedded/object-storage/main.ts', import.meta.url)

export interface S3Side {
  order(order: Exclude<Order, { readonly do: 'use' }>): Promise<Done>
}

type Place = Omit<Extract<Order, { readonly do: 'use' }>, 'do'>

/** Both with an empty bucket; `door` is the process of the entrance. Throws when the engine is not built. */
export async function openObjectStorages() {
  const program = await findEngine()
  if (program === undefined) throw new Error(NO_ENGINE)
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const stops: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true })]
  const close = async () => {
    for (const stop of stops.toReversed()) await stop()
  }
  try {
    const { door, ...served } = await openServed(folder, program, stops)
    const alone = await openEngineAlone(folder, program, stops)
    return { subject: await clientOf(served, stops), peer: await clientOf(alone, stops), door, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Started like `npm start` does. */
async function openServed(folder: string, program: string, stops: (() => Promise<void>)[]) {
  const data = join(folder, 'served')
  const choice = {
    folder: data,
    program,
    host: HOST,
    port: 0,
    name: undefined,
    zones: ['bench'],
    portalUrl: `http://${HOST}`,
    random,
  }
  const settings = await prepareObjectStorage(choice)
  const processSettings = { ...settings.process, logLevel: 'error' }
  const env = { ...environment(), [SETTINGS_VARIABLE]: JSON.stringify(processSettings) }
  const child = fork(PROCESS, { env, execArgv: [] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  stops.push(async () => {
    child.kill('SIGTERM')
    await ended
  })
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`object storage ended with ${code}`)))
  })
  const { platform } = settings
  const token = (await readFile(join(data, 'token'), 'utf8')).trim()
  const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
  const control = openControl({ url: platform.objectStorageControlUrl ?? '', token }, never)
  const { bucketPrefix, ...keys } = newTenantKeys(random)
  const tenant = { ...keys, bucketPrefix, quotaBytes: QUOTA_BYTES, isSuspended: false, isFrozen: false }
  await control.putTenant('bench', tenant)
  const authority = await readFile(join(data, 'ca.crt'), 'utf8')
  return {
    url: `https://${HOST}:${settings.port}`,
    authority,
    ...keys,
    bucket: `${bucketPrefix}bench`,
    door: child.pid ?? 0,
  }
}

/** With its own TLS, and the same options except for the cache of users: its only user is root, which needs no
 *  lookup. */
async function openEngineAlone(folder: string, program: string, stops: (() => Promise<void>)[]): Promise<Place> {
  const own = join(folder, 'alone')
  for (const part of ['', 'data', 'versions', 'users']) await makeFolder(join(own, part), 0o700)
  const { certificate, key, authority } = await openCertificates({
    clock,
    random,
    folder: own,
    hosts: [HOST],
  })
  await Promise.all([writeFile(join(own, 'tls.crt'), certificate), writeFile(join(own, 'tls.key'), key)])
  const port = await probePort(HOST, 0)
  const { accessKeyId, secretAccessKey } = newTenantKeys(random)
  const child = spawn(
    program,
    [
      '--quiet',
      '--keep-alive',
      '--port',
      `${HOST}:${port}`,
      '--cert',
      join(own, 'tls.crt'),
      '--key',
      join(own, 'tls.key'),
      '--iam-dir',
      join(own, 'users'),
      'posix',
      '--versioning-dir',
      join(own, 'versions'),
      join(own, 'data'),
    ],
    { env: { ...environment(), ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey }, stdio: 'ignore' },
  )
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  stops.push(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { url: `https://${HOST}:${port}`, authority, accessKeyId, secretAccessKey, bucket: 'bench' }
}

async function clientOf(place: Place, stops: (() => Promise<void>)[]): Promise<S3Side> {
  const client: LineProcess = asLineProcess(
    spawn(nodeBinary(), [CLIENT], { stdio: ['pipe', 'pipe', 'inherit'] }),
    'a client',
  )
  stops.push(() => client.close())
  await until(
    'the store',
    () =>
      client.order({ do: 'use', ...place }).then(
        () => true,
        () => false,
      ),
    (isThere) => isThere,
  )
  return { order: async (order) => (await client.order(order)) as Done } // as s3-client.ts says
}
