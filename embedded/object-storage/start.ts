/** Puts engine, door and control together. */
import { execFile } from 'node:child_process'
import { chown } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { isRoot } from '../../kit/sys/process.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { accountIds } from '../account.ts'
import { startDaemon, tied } from '../daemon.ts'
import { StartRefused } from '../data-folder.ts'
import { startControl } from './control-server.ts'
import { startDoor } from './door.ts'
import { type EngineFolders, engineCommand, engineEnvironment, openEngine, s3Socket } from './engine.ts'
import { openDoorMetrics } from './metrics.ts'
import { readSecrets } from './secrets.ts'
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts'
import { openTenants, type Tenants } from './tenants.ts'
import { openUsage, removeBuckets, walkBuckets } from './usage.ts'

export interface ObjectStorageOptions {
  readonly folder: string
  /** Of the engine, absolute. */
  readonly program: string
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly controlPort: number
  /** Of the platform. */
  readonly token: string
  readonly certificates: { readonly certificate: string; readonly key: string }
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface RunningObjectStorage {
  readonly port: number
  /** The engine's process of now. */
  enginePid(): number | undefined
  stop(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
const ROOT_KEY_CHARACTERS = 20
const ROOT_SECRET_CHARACTERS = 40
const MEASURE_MILLISECONDS = 60_000

/** Serves once this resolves. Throws StartRefused for what a person must change. */
export async function startObjectStorage(options: ObjectStorageOptions): Promise<RunningObjectStorage> {
  const { folder, program, clock, random, log } = options
  const stopping = new AbortController()
  await makeFolder(folder, 0o711)
  const folders: EngineFolders = {
    data: join(folder, 'data'),
    versions: join(folder, 'versions'),
    users: join(folder, 'users'),
    sockets: await makeSocketFolder(folder),
  }
  for (const part of [folders.data, folders.versions, folders.users]) await makeFolder(part, 0o700)
  const rootKey = {
    accessKeyId: newBase62(random, ROOT_KEY_CHARACTERS),
    secretAccessKey: newBase62(random, ROOT_SECRET_CHARACTERS),
  }
  const engine = openEngine(folders, rootKey, clock)
  const daemon = startDaemon(
    {
      name: 'engine',
      // A change of the account undoes the tie: it comes behind.
      command: [...(await asAccount(program, folders)), ...tied(engineCommand(program, folders))],
      folder: '/',
      environment: engineEnvironment(rootKey),
      whenStarted: engine.whenUp,
    },
    { clock, random, log, signal: stopping.signal },
  )
  await daemon.isReady
  const secrets = await readSecrets(folders.users)
  const tenants = await openTenants({
    file: join(folder, 'tenants.json'),
    users: {
      ...engine,
      async ensureUser(accessKeyId, secretAccessKey) {
        await engine.ensureUser(accessKeyId, secretAccessKey)
        secrets.set(accessKeyId, secretAccessKey)
      },
    },
    openUsage: (prefix) => openUsage(() => walkBuckets(folders, prefix), clock.now),
    purge: (prefix) => removeBuckets(folders, prefix),
    now: clock.now,
  })
  const registry = openRegistry({ isProcessWide: true })
  const metrics = openDoorMetrics(registry, { tenants, isEngineUp: engine.isUp })
  const shared = { ...options, tenants }
  const control = await startControl({ ...shared, host: LOOPBACK, port: options.controlPort, metrics: registry })
  const door = await startDoor({
    ...shared,
    ...options.certificates,
    socketPath: s3Socket(folders),
    sizeOf: engine.sizeOf,
    secretOf: ({ accessKeyId }) => secrets.get(accessKeyId),
    metrics,
  })
  const measuring = keepMeasured(tenants, options, stopping.signal)
  return {
    port: door.port,
    enginePid: () => daemon.child()?.pid,
    async stop() {
      await Promise.all([door.stop(), control.stop()])
      stopping.abort()
      await Promise.all([daemon.ended, measuring])
      await removeSocketFolder(folder)
    },
  }
}

/** One tenant after the other, for ever. */
async function keepMeasured(
  tenants: Tenants,
  { clock, log }: Pick<ObjectStorageOptions, 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const { usage } of tenants.all()) {
      if (signal.aborted) return
      await usage.measure().catch((error: unknown) => log.warn('tenant not measured', { error }))
    }
    await clock.sleep(MEASURE_MILLISECONDS, signal)
  }
}

const run = promisify(execFile)
const ACCOUNT = 'svccloud-s3'

/** What comes before the engine's command, so that it never runs as root: an account of its own, which owns its
 *  folders. Where that account cannot pass the folders above them (a clone in /root), it gets the one capability that
 *  does. */
async function asAccount(
  program: string,
  { data, versions, users, sockets }: EngineFolders,
): Promise<readonly string[]> {
  if (!isRoot()) return []
  const { uid, gid } = await accountIds(ACCOUNT)
  for (const part of [data, versions, users, sockets]) await chown(part, uid, gid)
  const capability = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search']
  for (const more of [[], capability]) {
    const prefix = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...more, '--']
    const [command = '', ...words] = [
      ...[...prefix, '/bin/sh', '-c', 'cd "$1" && cd "$2" && "$3" --version', 'sh'],
      ...[data, users, program],
    ]
    const isAble = await run(command, words, { cwd: '/' }).then(
      () => true,
      () => false,
    )
    if (isAble) return prefix
  }
  throw new StartRefused(
    `The account ${ACCOUNT} cannot reach ${data} and ${program}. Choose another folder: npm start -- --data DIR`,
  )
}
