/** The running product for end-to-end tests: started by `npm start` in a separate folder on free ports, looked at from
 *  outside only. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Endpoints } from '../../embedded/cloud.ts'
import { signalProcess } from '../../kit/sys/process.ts'
import { eventually, Unrecoverable } from '../eventually.ts'
import { unexpectedWarnings } from './warnings.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const READY_MILLISECONDS = 240_000
const STOP_MILLISECONDS = 60_000
/** Guest images are made once for all tests of this machine. */
export const IMAGE_CACHE = join(tmpdir(), 'svccloud-test-images')

export interface ProductOptions {
  readonly data: string
  readonly flags?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Whether it builds and serves the portal. */
  readonly hasPortal?: boolean
  /** An ordinary user that starts it, to whom the folder belongs; the one that runs the tests when absent. */
  readonly user?: number | undefined
  /** Lines at warn that the test brings about, by killing parts of the product for example. Any other fails it. */
  readonly warnings: readonly RegExp[]
}

/** Runs `npm start` to its end and answers what it said; for starts that are refused. */
export async function refusedStart(
  flags: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const { child, output } = launch(flags, environment)
  // by then all that it said is here
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output: output() }
}

function launch(
  flags: readonly string[],
  environment: Readonly<Record<string, string>>,
  user?: { readonly uid: number; readonly gid: number },
): { readonly child: ChildProcess; readonly output: () => string } {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('SVCCLOUD_') && name !== 'DATABASE_URL' && !name.startsWith('VITEST'),
    ),
  )
  const child = spawn('npm', ['start', '--silent', '--', ...flags], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
    env: { ...inherited, SVCCLOUD_IMAGE_CACHE: IMAGE_CACHE, ...environment },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  return { child, output: () => said }
}

/** Process ids of the guests whose files are in the data folder. */
export async function guestsOf(data: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const lines = await Promise.all(
    pids.map(async (pid) => ({
      pid,
      line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
      home: await readlink(`/proc/${pid}/cwd`).catch(() => ''),
    })),
  )
  return lines
    .filter(({ line, home }) => /^[^\0]*qemu-system/.test(line) && home.startsWith(`${data}/`))
    .map(({ pid }) => pid)
}

export class Product {
  readonly data: string
  readonly endpoints: Endpoints
  readonly output: () => string
  readonly #child: ChildProcess
  readonly #warnings: readonly RegExp[]
  #isJudged = false

  private constructor(
    { data, warnings }: Pick<ProductOptions, 'data' | 'warnings'>,
    endpoints: Endpoints,
    child: ChildProcess,
    output: () => string,
  ) {
    this.data = data
    this.#warnings = warnings
    this.endpoints = endpoints
    this.#child = child
    this.output = output
  }

  /** Starts and waits for `endpoints.json`. */
  static async start({
    data,
    flags: chosen = [],
    environment = {},
    hasPortal = false,
    user,
    warnings,
  }: ProductOptions): Promise<Product> {
    const ports = ['--port', '0', '--operator-port', '0', '--kubernetes-port', '0']
    const flags = ['--data', data, ...ports, '--no-install', ...(hasPortal ? [] : ['--no-portal']), ...chosen]
    const { child, output } = launch(
      flags,
      user === undefined ? environment : { HOME: data, SVCCLOUD_IMAGE_CACHE: join(data, 'images'), ...environment },
      user === undefined ? undefined : { uid: user, gid: user },
    )
    try {
      const endpoints = await eventually(
        'the product to start',
        async () => {
          if (child.exitCode !== null) throw new Unrecoverable(`npm start ended with ${child.exitCode}`)
          if (!output().includes('Ctrl-C stops it')) return undefined
          // checked by the tests that read it
          return JSON.parse(await readFile(join(data, 'endpoints.json'), 'utf8')) as Endpoints
        },
        READY_MILLISECONDS,
      )
      return new Product({ data, warnings }, endpoints, child, output)
    } catch (error) {
      if (child.pid !== undefined) signalProcess(-child.pid, 'SIGKILL')
      throw new Error(`${output()}\n${await logTails(data)}`, { cause: error })
    }
  }

  /** As Ctrl-C does; answers the exit code of npm. Rejects when the logs have a line at warn that the test does not
   *  expect. */
  async stop(): Promise<number | null> {
    const code = await this.#end()
    if (this.#isJudged) return code
    this.#isJudged = true
    const unexpected = await unexpectedWarnings(this.data, this.#warnings)
    if (unexpected.length > 0) throw new Error(`logged at warn:\n${unexpected.join('\n')}`)
    return code
  }

  async #end(): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const ended = new Promise<number | null>((resolve) => this.#child.once('exit', resolve))
    signalProcess(this.endpoints.pid, 'SIGINT')
    return Promise.race([
      ended,
      sleep(STOP_MILLISECONDS).then(() => {
        throw new Error(`it did not stop:\n${this.output()}`)
      }),
    ])
  }

  /** The components by name, as the supervisor has them. */
  async processes(): Promise<ReadonlyMap<string, number>> {
    const records = JSON.parse(await readFile(join(this.data, 'processes.json'), 'utf8')) as readonly {
      name: string
      pid: number
    }[] // the supervisor's own file
    return new Map(records.map(({ name, pid }) => [name, pid]))
  }

  /** `kill -9` of one component; answers once another has taken its place. */
  async killComponent(name: string): Promise<void> {
    const pid = (await this.processes()).get(name)
    if (pid === undefined) throw new Error(`${name} is not running`)
    signalProcess(pid, 'SIGKILL')
    await eventually(`another ${name}`, async () => {
      const next = (await this.processes()).get(name)
      return next !== undefined && next !== pid
    })
  }

  /** `kill -9` of the supervisor and all components at once, PostgreSQL included. Guests are no part of it. */
  async killEverything(): Promise<void> {
    const postmaster = Number(
      (await readFile(join(this.data, 'postgres/data/postmaster.pid'), 'utf8').catch(() => '')).split('\n')[0],
    )
    const hasEnded = this.#child.exitCode !== null || this.#child.signalCode !== null
    const ended = hasEnded ? undefined : new Promise((resolve) => this.#child.once('exit', resolve))
    for (const pid of [this.endpoints.pid, ...(await this.processes()).values(), postmaster])
      if (pid > 1) signalProcess(pid, 'SIGKILL')
    await ended
  }

  guests(): Promise<readonly number[]> {
    return guestsOf(this.data)
  }

  /** Files of disks in the data folder. */
  async disks(): Promise<readonly string[]> {
    const files = await readdir(join(this.data, 'nodes'), { recursive: true }).catch(() => [])
    return files.filter((file) => /\.(qcow2|raw|img)$/.test(file))
  }

  async query(text: string, values: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.endpoints.postgres_url })
    client.on('error', () => undefined) // the query itself says so too
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text, [...values])).rows
    } finally {
      await client.end()
    }
  }

  /** A GET of the Kubernetes API as the administrator, or a change. */
  async kubernetes(
    path: string,
    change?: { readonly method: 'POST' | 'PATCH'; readonly body: object },
  ): Promise<{
    readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace?: string } }[]
  }> {
    const token = await readFile(this.endpoints.operator_token_file ?? '', 'utf8')
    const { stdout } = await run(
      'curl',
      [
        '-sS',
        '--fail-with-body',
        '--cacert',
        this.endpoints.ca_certificate ?? '',
        '-H',
        `Authorization: Bearer ${token.trim()}`,
        ...(change === undefined
          ? []
          : [
              '-X',
              change.method,
              '-d',
              JSON.stringify(change.body),
              '-H',
              `Content-Type: application/${change.method === 'PATCH' ? 'merge-patch+json' : 'json'}`,
            ]),
        `${this.endpoints.kubernetes_url}${path}`,
      ],
      { maxBuffer: 16 * 1024 * 1024 },
    )
    return JSON.parse(stdout) as { items: { metadata: { name: string; namespace?: string } }[] } // a Kubernetes list
  }

  /** Everything that a deleted server may have left anywhere; empty when nothing. */
  async leftovers(): Promise<readonly string[]> {
    const found: string[] = []
    for (const pid of await this.guests()) found.push(`guest process ${pid}`)
    for (const file of await this.disks()) found.push(`disk ${file}`)
    for (const plural of ['servers', 'storages', 'instances', 'volumes']) {
      const { items } = await this.kubernetes(`/apis/svccloud.dev/v1alpha1/${plural}`)
      for (const { metadata } of items) found.push(`${plural} ${metadata.namespace}/${metadata.name}`)
    }
    for (const table of ['placement', 'quota_holding', 'address_claim', 'change_intent']) {
      const column =
        table === 'change_intent'
          ? `resource_type <> 'server'`
          : table === 'quota_holding'
            ? `holder like 'ssh_key/%'`
            : 'false'
      for (const row of await this.query(`select * from ${table} where not (${column})`))
        found.push(`${table} ${JSON.stringify(row)}`)
    }
    for (const row of await this.query(
      'select node from node_capacity where cores_used <> 0 or memory_mebibytes_used <> 0 or ' +
        'storage_gibibytes_used <> 0',
    ))
      found.push(`capacity of ${String(row['node'])}`)
    return found
  }
}

/** A separate folder for a product. */
export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'svccloud-e2e-'))

/** Stops the product, ends its guests and removes the folder; for products that did not start, too. */
export async function clearAway(product: Product | undefined, folder: string): Promise<void> {
  const guests = (await product?.guests()) ?? []
  try {
    await product?.stop()
  } finally {
    for (const pid of guests) signalProcess(pid, 'SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
}

const TAIL_CHARACTERS = 1_500

/** The ends of the components' logs, to explain a start that failed. */
async function logTails(data: string): Promise<string> {
  const folder = join(data, 'logs')
  const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.log'))
  const tails = await Promise.all(
    files.map(async (name) => `--- ${name}\n${(await readFile(join(folder, name), 'utf8')).slice(-TAIL_CHARACTERS)}`),
  )
  return tails.join('\n')
}
