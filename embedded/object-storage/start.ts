/** Starts object storage. This process has root's rights, records tenants and starts engines. A second process without
 *  rights serves clients and sends it orders (`orders.ts`). */
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { environment, isRoot, nodeBinary } from '../../kit/sys/process.ts'
import { SETTINGS_VARIABLE } from '../../kit/sys/settings.ts'
import { type CellsOptions, openCells } from './cells.ts'
import type { Isolation } from './isolation.ts'
import { forgetUsersOfBefore, secretOfBefore, unknownBuckets } from './move-in.ts'
import { serveOrders } from './order-server.ts'
import type { InitialState } from './orders.ts'
import { own, type Places } from './places.ts'
import { readTenants } from './tenants.ts'

export interface ObjectStorageOptions extends CellsOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly controlPort: number
  /** Token of the platform. */
  readonly token: string
  /** Origin of the portal, whose pages upload objects; none when absent. */
  readonly portalOrigin?: string | undefined
  readonly certificates: { readonly certificate: string; readonly key: string }
  /** The process that serves clients writes to this process's output. */
  readonly hasOutput?: boolean
  /** Log level of that process; `info` when absent. */
  readonly logLevel?: string
}

export interface RunningObjectStorage {
  readonly port: number
  readonly isolation: Isolation
  /** Id of the process that serves clients. */
  readonly interfacePid: number
  /** Id of the process of a tenant's engine, while it runs. */
  enginePid(tenantId: string): number | undefined
  /** Resolves with the reason when the process that serves clients has exited and no engine runs. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

/** Engines may use an eighth of the memory. */
const MEMORY_SHARE = 8
const ENGINE_BYTES = 32 * 1024 ** 2
const ENGINES_MINIMUM = 16
const ENGINES_MAXIMUM = 256
const STOP_MILLISECONDS = 10_000
const ORDERS_DESCRIPTOR = 3

/** Serves once this resolves. Throws file system errors, and an error when the start fails. */
export async function startObjectStorage(options: ObjectStorageOptions): Promise<RunningObjectStorage> {
  const { folder, log, clock, certificates } = options
  const { cells, places, isolation, bounds, users } = await openCells(options)
  const state = await openState(folder, users?.first)
  const unknown = await settleTenants(folder, join(state, 'tenants.json'), places)
  for (const bucket of unknown) log.warn('a bucket belongs to no tenant, and stays where it is', { bucket })
  const liveMaximum = Math.max(
    ENGINES_MINIMUM,
    Math.min(ENGINES_MAXIMUM, Math.floor(totalmem() / MEMORY_SHARE / ENGINE_BYTES)),
  )
  const { child, channel, over } = await startInterfaceProcess({
    folder,
    state,
    hasOutput: options.hasOutput === true,
    logLevel: options.logLevel,
  })
  const orders = serveOrders({ channel, cells, places, liveMaximum, log })
  const ended = over.then(async (how) => {
    await orders.endAll()
    return how
  })
  const all = places.all()
  const beginning: InitialState = {
    host: options.host,
    port: options.port,
    controlPort: options.controlPort,
    token: options.token,
    certificate: certificates.certificate,
    key: certificates.key,
    portalOrigin: options.portalOrigin ?? null,
    isolation,
    bounds: bounds.kind,
    liveMaximum,
    unknownBuckets: unknown.length,
    tenants: all.length,
    user: users?.first ?? null,
  }
  const recorded = all.map(({ id, accessKeyId, bucketPrefix, secretAccessKey }) => ({
    id,
    accessKeyId,
    bucketPrefix,
    secretAccessKey,
  }))
  for (const line of [beginning, ...recorded]) channel.write(`${JSON.stringify(line)}\n`)
  const port = await Promise.race([
    orders.ready,
    ended.then((how) => Promise.reject(new Error(`the process that serves clients does not start: ${how}`))),
  ])
  return {
    port,
    isolation,
    interfacePid: child.pid ?? 0,
    enginePid: (id) => orders.pid(id),
    ended,
    async stop() {
      orders.say({ stop: true })
      const cancel = clock.after(STOP_MILLISECONDS, () => child.kill('SIGKILL'))
      await ended
      cancel()
    },
  }
}

/** Rights that the process keeps, if it has them, until it has loaded its code and has its port. */
const FIRST_RIGHTS = '-all,+setuid,+setgid,+dac_read_search,+net_bind_service'

interface InterfaceProcess {
  readonly folder: string
  /** Its own folder. */
  readonly state: string
  readonly hasOutput: boolean
  readonly logLevel: string | undefined
}

/** Passes descriptors, because the folders above may be inaccessible to its user. */
async function startInterfaceProcess({ folder, state, hasOutput, logLevel }: InterfaceProcess) {
  const rights = isRoot() ? [`--bounding-set=${FIRST_RIGHTS}`, '--inh-caps=-all'] : []
  const file = join(import.meta.dirname, 'interface-main.ts')
  const words = ['--no-new-privs', ...rights, '--pdeathsig', 'KILL', '--', nodeBinary(), file]
  const handles = await Promise.all(
    [join(folder, 'tenants'), state].map((path) => open(path, constants.O_RDONLY | constants.O_DIRECTORY)),
  )
  const output = hasOutput ? 'inherit' : 'ignore'
  const child = spawn('setpriv', words, {
    cwd: '/',
    stdio: ['ignore', output, output, 'pipe', ...handles.map(({ fd }) => fd)],
    env: { PATH: environment()['PATH'], [SETTINGS_VARIABLE]: JSON.stringify({ logLevel }) },
  })
  for (const handle of handles) await handle.close()
  const over = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  const channel = child.stdio[ORDERS_DESCRIPTOR] as Socket // both directions, as Node creates it
  channel.on('error', () => {}) // it closes with the process
  // A process that cannot send orders can serve nobody.
  channel.once('close', () => child.kill('SIGKILL'))
  return { child, channel, over }
}

/** The folder of the process that serves clients, with its file of tenants. */
async function openState(folder: string, user: number | undefined): Promise<string> {
  const state = join(folder, 'interface')
  await makeFolder(state, 0o700)
  // Path in an earlier version.
  const before = join(folder, 'tenants.json')
  await rename(before, join(state, 'tenants.json')).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await syncToDisk(state)
  if (user !== undefined) await own(state, user)
  return state
}

/** Gives places to tenants of an earlier version, with the secrets that their engine knew. Their data move at the first
 *  use, or soon afterwards. Returns buckets of no known tenant. */
async function settleTenants(folder: string, file: string, places: Places): Promise<readonly string[]> {
  const tenants = await readTenants(file)
  const here = tenants.filter(({ upstream }) => upstream === undefined || upstream.isSourceKept)
  for (const tenant of here)
    if (places.find(tenant.id) === undefined) await places.keep(tenant, await secretOfBefore(folder, tenant))
  await forgetUsersOfBefore(folder, places.all())
  await rm(join(folder, 'sockets'), { force: true })
  return unknownBuckets(
    folder,
    tenants.map(({ bucketPrefix }) => bucketPrefix),
  )
}
