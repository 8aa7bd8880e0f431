/** One control plane: brings its programs to what its record says, again and again, so that whatever ended meanwhile
 *  is made good by the next round. */
import { execFile } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import {
  type ControlPlaneDesired,
  type ControlPlaneSnapshot,
  type ControlPlaneState,
  serviceAddress,
} from '../../kit/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { ADDONS, applyAddons } from './addons.ts'
import { type Balancer, pipeTo, startBalancer } from './balancer.ts'
import { applyClusterObjects } from './cluster-objects.ts'
import {
  apiserverCommand,
  controllerManagerCommand,
  dataFolder,
  etcdCommand,
  restoreCommand,
  schedulerCommand,
  tunnelCommand,
} from './commands.ts'
import { writeConfiguration } from './configuration-files.ts'
import { type Credentials, LOOPBACK, openCredentials } from './credentials.ts'
import { type Client, openClient } from './https-client.ts'
import type { IssuerDoor } from './issuer-door.ts'
import type { KubeApi } from './kube-api.ts'
import type { ControlPlanePrograms, KubernetesPrograms } from './programs.ts'
import { RunningPrograms } from './programs-running.ts'
import { type ControlPlaneRecord, writeRecord } from './record.ts'
import { listSnapshots, snapshotFile, takeSnapshot, writeSnapshot } from './snapshots.ts'

const run = promisify(execFile)

export interface ControlPlaneOptions {
  readonly folder: string
  readonly record: ControlPlaneRecord
  readonly programs: ControlPlanePrograms
  readonly issuerDoor: IssuerDoor
  /** What the endpoint listens on. */
  readonly host: string
  /** By which clients reach this machine; in the certificate too. */
  readonly addresses: readonly string[]
  /** By which nodes reach it, in the certificate too; undefined when they do not. */
  readonly nodeAddress: string | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

interface Opened {
  readonly desired: ControlPlaneDesired
  readonly credentials: Credentials
  readonly kube: Client
  readonly etcd: Client
}

const ROUND_MILLISECONDS = 1_000
const PROBE_MILLISECONDS = 3_000
const ROLL_MILLISECONDS = 180_000
const SNAPSHOT_TRIES = 60

const etcdName = (member: number): string => `etcd-${member}`
const apiName = (replica: number): string => `kube-apiserver-${replica}`
const [MANAGER, SCHEDULER, TUNNEL] = ['kube-controller-manager', 'kube-scheduler', 'konnectivity-server']

export class ControlPlane {
  readonly folder: string
  readonly #options: ControlPlaneOptions
  readonly #stopping = new AbortController()
  readonly #killing = new AbortController()
  readonly #programs: RunningPrograms
  readonly #taking = new Map<string, Promise<void>>()
  readonly #leaving = new Set<number>()
  #record: ControlPlaneRecord
  #opened: Opened | undefined
  #balancer: Balancer | undefined
  #areObjectsApplied = false
  #readyApis: readonly number[] = []
  #readyMembers: readonly number[] = []
  #detail = ''
  #observedAt: Date | undefined
  #wake = new AbortController()
  #changing: Promise<unknown> = Promise.resolve()
  #running: Promise<void> = Promise.resolve()
  isGone = false

  constructor(options: ControlPlaneOptions) {
    const { folder, record, clock, random, log } = options
    this.folder = folder
    this.#options = options
    this.#record = record
    this.#programs = new RunningPrograms(folder, { clock, random, log, signal: this.#killing.signal })
  }

  get record(): ControlPlaneRecord {
    return this.#record
  }

  /** Process of a program of it, by its name and number. */
  pid(name: string): number | undefined {
    return this.#programs.pid(name)
  }

  start(): void {
    this.#running = this.#keep()
  }

  /** The programs end in order; the record stays. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake.abort()
    await this.#running
  }

  /** Durable when this resolves, and acted on soon. One change after the other. */
  change(to: (record: ControlPlaneRecord) => ControlPlaneRecord): Promise<void> {
    const changed = this.#changing.then(async () => {
      const next = to(this.#record)
      if (JSON.stringify(next) === JSON.stringify(this.#record)) return
      await writeRecord(this.folder, next)
      this.#record = next
      this.#wake.abort()
    })
    this.#changing = changed.catch(() => undefined) // whoever asked is told
    return changed
  }

  state(): ControlPlaneState {
    const { desired, release, restoreId, endpointPort } = this.#record
    const total = this.#record.replicas.length
    const ready = this.#readyApis.length
    return {
      id: desired.id,
      phase: this.#phase(),
      release,
      endpoint: this.#balancer === undefined ? null : `https://${this.#endpointHost()}:${endpointPort}`,
      certificateAuthority: this.#opened?.credentials.authority ?? null,
      apiServer: this.#observedAt === undefined ? 'unknown' : ready > 0 ? 'healthy' : 'unhealthy',
      apiServersReady: ready,
      etcdMembersReady: this.#readyMembers.length,
      etcdMembersTotal: total,
      hasEtcdQuorum: this.#readyMembers.length > total / 2,
      forNodes: this.#forNodes(),
      addons: this.#record.tunnel === null ? [] : [...ADDONS],
      restoreId,
      detail: this.#detail,
      observedAt: (this.#observedAt ?? this.#options.clock.now()).toISOString(),
    }
  }

  #forNodes(): ControlPlaneState['forNodes'] {
    const { tunnel, nodePorts, endpointPort } = this.#record
    const { nodeAddress: host } = this.#options
    if (tunnel === null || host === undefined) return null
    const ports = nodePorts ?? { endpoint: endpointPort, tunnel: tunnel.agents }
    return { endpoint: `https://${bracketed(host)}:${ports.endpoint}`, tunnel: { host, port: ports.tunnel } }
  }

  /** Of a node that came to that port of those that nodes know; false when it is none of this one's. */
  takeNode(client: Socket, port: number): boolean {
    const { nodePorts, tunnel } = this.#record
    if (port === nodePorts?.endpoint) this.#balancer?.take(client)
    else if (port === nodePorts?.tunnel && tunnel !== null) pipeTo(client, tunnel.agents)
    else return false
    return true
  }

  #phase(): ControlPlaneState['phase'] {
    const { isRemoved, restore, release, desired } = this.#record
    if (isRemoved) return 'stopping'
    if (restore !== null) return 'restoring'
    if (release === null || !this.#areObjectsApplied) return 'starting'
    return release === desired.release ? 'running' : 'upgrading'
  }

  /** Undefined while no API server is ready. */
  api(): KubeApi | undefined {
    const port = this.#readyApis.map((replica) => this.#record.replicas[replica]?.api)[0]
    return port === undefined || this.#opened === undefined || !this.#areObjectsApplied
      ? undefined
      : { url: `https://${LOOPBACK}:${port}`, client: this.#opened.kube }
  }

  get snapshotFolder(): string {
    return join(this.folder, 'snapshots')
  }

  /** Goes on in the background. The caller has recorded it. */
  take(snapshot: ControlPlaneSnapshot): void {
    const { id } = snapshot
    if (this.#taking.has(id)) return
    const taking = this.#take(snapshot).finally(() => this.#taking.delete(id))
    this.#taking.set(id, taking)
  }

  async #take(snapshot: ControlPlaneSnapshot): Promise<void> {
    const { clock, log, programs } = this.#options
    let failure: unknown
    for (let tries = 0; tries < SNAPSHOT_TRIES && !this.#stopping.signal.aborted; tries++) {
      try {
        const member = this.#readyMembers[0]
        const port = member === undefined ? undefined : this.#record.replicas[member]?.etcdClient
        if (port === undefined || this.#opened === undefined) throw new Error('etcd is not ready')
        const sizeBytes = await takeSnapshot({
          folder: this.snapshotFolder,
          id: snapshot.id,
          etcdUrl: `https://${LOOPBACK}:${port}`,
          etcdutl: programs.etcdutl,
          client: this.#opened.etcd,
        })
        return await writeSnapshot(this.snapshotFolder, { ...snapshot, phase: 'done', sizeBytes })
      } catch (error) {
        failure = error
        await clock.sleep(ROUND_MILLISECONDS, this.#stopping.signal)
      }
    }
    if (this.#stopping.signal.aborted) return // taken at the next start
    log.warn('no snapshot', { controlPlane: this.#record.desired.id, error: failure })
    await writeSnapshot(this.snapshotFolder, { ...snapshot, phase: 'failed', detail: textOf(failure) })
  }

  async #keep(): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    for (const snapshot of await listSnapshots(this.snapshotFolder))
      if (snapshot.phase === 'running') this.take(snapshot)
    while (!signal.aborted && !this.isGone) {
      this.#wake = new AbortController()
      try {
        await this.#round()
        this.#detail = ''
      } catch (error) {
        const detail = textOf(error)
        if (detail !== this.#detail && !signal.aborted)
          log.warn('control plane not as it should be', { controlPlane: this.#record.desired.id, error })
        this.#detail = detail
      }
      if (!signal.aborted && !this.isGone) await clock.sleep(ROUND_MILLISECONDS, this.#wake.signal)
    }
    await this.#end()
  }

  async #round(): Promise<void> {
    if (this.#record.isRemoved) {
      this.#stopping.abort()
      await this.#end()
      await rm(this.folder, { recursive: true, force: true })
      this.isGone = true
      return
    }
    const opened = await this.#open()
    if (this.#record.restore?.isWritten === false) await this.#writeRestore(this.#record.restore)
    await this.#look(opened)
    await this.#startPrograms(opened)
    await this.#finish(opened)
    await this.#programs.boundLogs()
  }

  /** API servers before what they store in: none waits for a store that is gone. */
  async #end(): Promise<void> {
    this.#readyApis = []
    await this.#balancer?.stop()
    this.#balancer = undefined
    await this.#stopPrograms()
    this.#killing.abort()
    await Promise.all(this.#taking.values())
    this.#opened?.kube.close()
    this.#opened?.etcd.close()
    this.#opened = undefined
  }

  async #stopPrograms(): Promise<void> {
    const isStore = (name: string) => name.startsWith('etcd')
    await this.#programs.stop(this.#programs.names().filter((name) => !isStore(name)))
    await this.#programs.stop(this.#programs.names())
    ;[this.#readyApis, this.#readyMembers] = [[], []]
  }

  #endpointHost(): string {
    const { host } = this.#options
    return bracketed(host === '0.0.0.0' || host === '::' ? LOOPBACK : host)
  }

  /** Keys and files for what is desired now, and the listener in front. */
  async #open(): Promise<Opened> {
    const { folder, clock, random, host, addresses, nodeAddress, issuerDoor } = this.#options
    const { desired, endpointPort } = this.#record
    if (this.#opened?.desired !== desired) {
      const before = this.#opened
      const forNodes = nodeAddress === undefined ? [] : [nodeAddress]
      const hosts = [...addresses, ...forNodes, ...serviceAddresses(desired.serviceCidrs), ...desired.serverNames]
      const credentials = await openCredentials({ folder, hosts, clock, random })
      const endpoint = `https://${LOOPBACK}:${endpointPort}`
      await writeConfiguration({ folder, desired, credentials, endpoint, issuerDoor, random })
      this.#opened = {
        desired,
        credentials,
        kube: openClient(credentials.authority, credentials.admin),
        etcd: openClient(credentials.etcdAuthority, credentials.etcdClient),
      }
      before?.kube.close()
      before?.etcd.close()
    }
    this.#balancer ??= await startBalancer({
      host,
      port: endpointPort,
      ready: () =>
        this.#readyApis
          .filter((replica) => !this.#leaving.has(replica))
          .map((replica) => this.#record.replicas[replica]?.api ?? 0),
    })
    return this.#opened
  }

  async #startPrograms(opened: Opened): Promise<void> {
    const { programs } = this.#options
    const record = this.#record
    const kubernetes = programs.releases.find(({ release }) => release === record.desired.release)
    if (kubernetes === undefined) throw new Error(`the programs of ${record.desired.release} are not here`)
    const members = record.replicas.map((_, index) => index)
    if (record.tunnel !== null && programs.tunnel !== undefined)
      await this.#programs.start(TUNNEL ?? '', tunnelCommand(programs.tunnel, this.folder, record.tunnel))
    for (const member of members)
      await this.#programs.start(etcdName(member), etcdCommand(programs, this.folder, record, member))
    for (const replica of members) await this.#startApi(opened, kubernetes, replica)
    if (this.#readyApis.length === 0) return
    await this.#programs.start(MANAGER ?? '', controllerManagerCommand(kubernetes, this.folder, record))
    await this.#programs.start(SCHEDULER ?? '', schedulerCommand(kubernetes, this.folder))
  }

  /** One that runs another release makes way only while all others serve. */
  async #startApi(opened: Opened, kubernetes: KubernetesPrograms, replica: number): Promise<void> {
    const command = apiserverCommand(kubernetes, this.folder, this.#record, replica)
    const name = apiName(replica)
    if (!this.#programs.isOther(name, command)) return
    if (!this.#programs.names().includes(name)) return this.#programs.start(name, command)
    await this.#look(opened)
    const others = this.#record.replicas.map((_, index) => index).filter((index) => index !== replica)
    if (!others.every((other) => this.#readyApis.includes(other)))
      throw new Error(`${name} is not replaced while another does not serve`)
    this.#leaving.add(replica)
    try {
      await this.#programs.start(name, command)
      await this.#untilReady(opened, replica)
    } finally {
      this.#leaving.delete(replica)
    }
  }

  async #untilReady(opened: Opened, replica: number): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + ROLL_MILLISECONDS
    do {
      if (this.#stopping.signal.aborted) throw new Error('it is being stopped')
      if (clock.monotonicMilliseconds() > deadline) throw new Error(`${apiName(replica)} did not get ready`)
      await clock.sleep(ROUND_MILLISECONDS / 4, this.#stopping.signal)
      await this.#look(opened)
    } while (!this.#readyApis.includes(replica))
  }

  async #look({ kube, etcd }: Opened): Promise<void> {
    const { replicas } = this.#record
    const isGood = (client: Client, url: string) =>
      client.send(url, { timeoutMilliseconds: PROBE_MILLISECONDS }).then(
        ({ status, text }) => status === 200 && !text.includes('"health":"false"'),
        () => false,
      )
    const isReady = async (name: string, client: Client, url: string) =>
      this.#programs.pid(name) !== undefined && (await isGood(client, url))
    const apis = replicas.map(({ api }, index) => isReady(apiName(index), kube, `https://${LOOPBACK}:${api}/readyz`))
    const members = replicas.map(({ etcdClient }, index) =>
      isReady(etcdName(index), etcd, `https://${LOOPBACK}:${etcdClient}/health`),
    )
    const indices = (found: readonly boolean[]) => found.flatMap((is, index) => (is ? [index] : []))
    this.#readyApis = indices(await Promise.all(apis))
    this.#readyMembers = indices(await Promise.all(members))
    this.#observedAt = this.#options.clock.now()
  }

  /** Notes what has been reached. */
  async #finish({ kube }: Opened): Promise<void> {
    const record = this.#record
    const api = record.replicas[this.#readyApis[0] ?? -1]?.api
    if (api === undefined) return
    if (!this.#areObjectsApplied) {
      const server = { url: `https://${LOOPBACK}:${api}`, client: kube }
      await applyClusterObjects(server)
      if (record.tunnel !== null) await applyAddons(server, record.desired)
      this.#areObjectsApplied = true
    }
    if (this.#readyApis.length < record.replicas.length) return
    const { release } = record.desired
    await this.change((current) =>
      current.desired.release === release && current.restore?.isWritten !== false
        ? {
            ...current,
            release,
            restoreId: current.restore === null ? current.restoreId : current.restore.id,
            restore: null,
          }
        : current,
    )
    await this.#removeOldGenerations()
  }

  async #removeOldGenerations(): Promise<void> {
    const { restore, generation } = this.#record
    if (restore !== null) return
    for (const name of await readdir(this.folder)) {
      const of = /^etcd-(\d+)-\d+$/.exec(name)?.[1]
      if (of !== undefined && Number(of) !== generation) await rm(join(this.folder, name), { recursive: true })
    }
  }

  /** The next generation from the snapshot; the old one stays until the new one serves. A snapshot that is no good
   *  changes nothing. */
  async #writeRestore(restore: { readonly id: string; readonly snapshotId: string }): Promise<void> {
    await this.#stopPrograms()
    const next = { ...this.#record, generation: this.#record.generation + 1 }
    const snapshot = snapshotFile(this.snapshotFolder, restore.snapshotId)
    try {
      for (const member of next.replicas.keys()) {
        await rm(dataFolder(this.folder, next.generation, member), { recursive: true, force: true })
        const [program = '', ...words] = restoreCommand(this.#options.programs, this.folder, {
          record: next,
          member,
          snapshot,
        })
        await run(program, words)
      }
    } catch (error) {
      await this.change((current) => ({ ...current, restore: null }))
      throw error
    }
    this.#areObjectsApplied = false
    await this.change((current) => ({
      ...current,
      generation: next.generation,
      restore: { ...restore, isWritten: true },
    }))
  }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The first of each range, which the service `kubernetes` has. */
const serviceAddresses = (cidrs: readonly string[]): readonly string[] =>
  cidrs.flatMap((cidr) => serviceAddress(cidr, 1) ?? [])
