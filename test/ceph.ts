/** A real Ceph cluster for tests, on loopback in a temporary folder: one monitor, one manager, and daemons that store
 *  data in memory. The files of the tier share one with a single such daemon; each has a separate pool. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, inject } from 'vitest'
import type { TestProject } from 'vitest/node'
import { probePort } from '../embedded/kit/ports.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'
import { eventually } from './eventually.ts'

const run = promisify(execFile)
const HOST = '127.0.0.1'
const STORE_BYTES = 8 * 1024 ** 3
const ANSWER_SECONDS = 30
/** Written when Ceph tells why a daemon has ended. */
const LOG_CHARACTERS = 2_000

declare module 'vitest' {
  export interface ProvidedContext {
    /** Folder of the cluster that the files of the tier share. */
    readonly cephFolder?: string
  }
}

const configuration = (folder: string, id: string, monitors: string, racks: readonly string[]) => `[global]
fsid = ${id}
mon host = ${monitors}
public network = 127.0.0.0/8
keyring = ${folder}/keyring
run dir = ${folder}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd pool default pg num = 8
osd pool default pgp num = 8
osd crush chooseleaf type = 0
[mon]
mon data = ${folder}/mon
mon data avail crit = 0
mon data avail warn = 0
mon allow pool size one = true
mon allow pool delete = true
mon cluster log file = ${folder}/cluster-log
auth allow insecure global id reclaim = false
log file = ${folder}/mon.log
[mgr]
mgr data = ${folder}/mgr
mgr initial modules =
log file = ${folder}/mgr.log
[osd]
osd data = ${folder}/osd.$id
osd class dir = /usr/lib/x86_64-linux-gnu/rados-classes
osd objectstore = memstore
memstore device bytes = ${STORE_BYTES}
osd memory target autotune = false
log file = ${folder}/osd.log
${racks.map((rack, id) => `[osd.${id}]\ncrush location = root=default rack=${rack} host=host-${id}\n`).join('')}`

const administer = async (folder: string, ...words: readonly string[]): Promise<string> =>
  (await run('ceph', ['--conf', join(folder, 'ceph.conf'), '--connect-timeout', String(ANSWER_SECONDS), ...words]))
    .stdout

/** One daemon that stores data for each of the racks, on a separate host. */
async function startCluster(
  racks: readonly string[] = ['rack-0'],
): Promise<{ readonly folder: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'ceph-'))
  const file = (name: string) => join(folder, name)
  const conf = file('ceph.conf')
  const daemons: ChildProcess[] = []
  const start = (kind: string, id: string) => {
    // It ends with the tests, also where those are killed.
    const program = ['--pdeathsig=SIGKILL', `ceph-${kind}`, '--conf', conf, '-i', id, '-f']
    const daemon = spawn('setpriv', program, { stdio: 'ignore' })
    daemons.push(daemon)
  }
  const stop = async () => {
    for (const daemon of daemons.toReversed()) {
      if (daemon.exitCode !== null || daemon.signalCode !== null) continue
      const ended = once(daemon, 'exit')
      daemon.kill('SIGKILL') // nothing of it is needed now
      await ended
    }
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const id = newUuid(systemRandom)
    const monitors = `[v2:${HOST}:${await probePort(HOST, 0)}]`
    await writeFile(conf, configuration(folder, id, monitors, racks))
    for (const each of ['mgr', ...racks.map((_rack, osd) => `osd.${osd}`)]) await mkdir(file(each))
    const keyOf = (name: string, ...caps: readonly string[]) =>
      run('ceph-authtool', [
        file('keyring'),
        ...(name === 'mon.' ? ['--create-keyring'] : []),
        '--gen-key',
        '-n',
        name,
        ...caps.flatMap((service) => ['--cap', service, 'allow *']),
      ])
    await keyOf('mon.', 'mon')
    await keyOf('client.admin', 'mon', 'mgr', 'osd')
    await keyOf('mgr.a', 'mon', 'osd')
    for (const osd of racks.keys()) await keyOf(`osd.${osd}`, 'mon', 'mgr', 'osd')
    await run('monmaptool', ['--create', '--fsid', id, '--addv', 'a', monitors, file('map')])
    const made = ['--conf', conf, '-i', 'a', '--mkfs', '--monmap', file('map'), '--keyring', file('keyring')]
    await run('ceph-mon', made)
    start('mon', 'a')
    start('mgr', 'a')
    for (const osd of racks.keys()) {
      const osdId = newUuid(systemRandom)
      await administer(folder, 'osd', 'new', osdId)
      await run('ceph-osd', ['--conf', conf, '-i', String(osd), '--mkfs', '--osd-uuid', osdId])
      start('osd', String(osd))
    }
    await eventually('the daemons that store data', async () => {
      const { num_up_osds: up } = JSON.parse(await administer(folder, 'osd', 'stat', '--format', 'json'))
      return up === racks.length || undefined
    })
    return { folder, stop }
  } catch (error) {
    const logs = await Promise.all(
      ['mon', 'mgr', 'osd'].map((each) => readFile(file(`${each}.log`), 'utf8').catch(() => '')),
    )
    await stop()
    throw new Error(`Ceph did not start: ${logs.map((log) => log.slice(-LOG_CHARACTERS)).join('\n')}`, { cause: error })
  }
}

/** Vitest calls it before the first file of the tier, and what it answers after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { folder, stop } = await startCluster()
  project.provide('cephFolder', folder)
  return stop
}

export interface TestCeph {
  /** The file that its administrator's programs are given. */
  readonly administration: string
  readonly pool: string
  /** What a host of the platform is given of it. */
  readonly user: string
  readonly configuration: string
  readonly keyring: string
  readonly monitors: string
  /** The command `ceph` of its administrator. */
  administer(...words: readonly string[]): Promise<string>
  /** The command `rbd` of its administrator. */
  rbd(...words: readonly string[]): Promise<string>
}

/** A pool of the cluster, and a client that may use it as hosts do; read inside tests and hooks only. Where racks are
 *  given the file has a separate cluster, with one daemon that stores data in each of them. */
export function useCeph(racks?: readonly string[]): { readonly ceph: TestCeph } {
  let opened: TestCeph | undefined
  let own: Awaited<ReturnType<typeof startCluster>> | undefined
  beforeAll(async () => {
    const shared = racks === undefined ? inject('cephFolder') : undefined
    const folder = shared ?? (own = await startCluster(racks)).folder
    opened = await openPool(folder)
  })
  afterAll(() => own?.stop())
  return {
    get ceph() {
      if (opened === undefined) throw new Error('the cluster is there while tests and hooks run, not before')
      return opened
    },
  }
}

async function openPool(folder: string): Promise<TestCeph> {
  const pool = `pool-${newUuid(systemRandom).slice(0, 8)}`
  const user = `host-${pool}`
  const conf = join(folder, 'ceph.conf')
  const rbd = async (...words: readonly string[]) => (await run('rbd', ['--conf', conf, ...words])).stdout
  await administer(folder, 'osd', 'pool', 'create', pool, '8', '8')
  await rbd('pool', 'init', pool)
  const keyring = join(folder, `${user}.keyring`)
  await writeFile(
    keyring,
    await administer(
      folder,
      'auth',
      'get-or-create',
      `client.${user}`,
      'mon',
      'profile rbd',
      'osd',
      `profile rbd pool=${pool}`,
    ),
  )
  const configuration = join(folder, 'client.conf')
  const monitors = /^mon host = (.*)$/m.exec(await readFile(conf, 'utf8'))?.[1] ?? ''
  await writeFile(configuration, `[global]\nmon host = ${monitors}\n`)
  return {
    administration: conf,
    pool,
    user,
    configuration,
    keyring,
    monitors,
    rbd,
    administer: (...words) => administer(folder, ...words),
  }
}
