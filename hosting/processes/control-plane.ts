/** One control plane: repeatedly updates its programs to match the record, so that the next round restarts a program
 *  that has exited. */
import { execFile } from 'node:child_process'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import {
  type ControlPlaneDesired,
  type ControlPlaneState,
  serviceAddress,
} from '../../integrations/control-planes/control.ts'
import { ADDONS } from '../core/addons.ts'
import type { Addon } from './addon-table.ts'
import { RunningAddons } from './addons-running.ts'
import { type Balancer, pipeTo, startBalancer } from './balancer.ts'
import {
  apiserverCommand,
  controllerManagerCommand,
  dataFolder,
  etcdCommand,
  restoreCommand,
  schedulerCommand,
  tunnelCommand,
  TUNNEL_SOCKET_HERE,
  tunnelSocket,
  withCredentials,
} from './commands.ts'
import { writeConfiguration } from '../core/configuration-files.ts'
import { GO_ENVIRONMENT } from '../core/flags.ts'
import { NotReady } from '../core/not-ready.ts'
import type { Playground } from './guests/apps.ts'
import { GUEST, GuestKeeper, type GuestKeeperOptions } from './guests/keeper.ts'
import { GATEWAY } from './guests/machine.ts'
import { type Credentials, LOOPBACK, openCredentials } from '../core/credentials.ts'
import {
  CREDENTIALS_MILLISECONDS,
  HostedPlane,
  type HostedPlaneOptions,
  type ObservedState,
  ROUND_MILLISECONDS,
  type ServingApi,
} from '../core/plane.ts'
import type { IssuerListener } from './issuer-listener.ts'
import type { ControlPlanePrograms, KubernetesPrograms } from './programs.ts'
import { type ProgramOptions, RunningPrograms } from './programs-running.ts'
import { Reader } from './reading/reader.ts'
import { SNAPSHOT } from '../core/reading/tasks.ts'
import type { UserRange } from '../../embedded/kit/user-range.ts'
import { asUser, giveCopy, giveData, giveFolder, reachable, RUN_FOLDER, takeBack } from './users.ts'
import { type ControlPlaneRecord, portsOf } from './record.ts'
import { releasePort } from '../../embedded/kit/ports.ts'
import { snapshotFile, type TakenSnapshot } from '../core/snapshots.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

const run = promisify(execFile)

export interface ControlPlaneOptions extends HostedPlaneOptions<ControlPlaneRecord> {
  readonly programs: ControlPlanePrograms
  /** Users for the programs of control planes; when absent, they run as this process. */
  readonly users?: UserRange | undefined
  readonly issuerListener: IssuerListener
  /** Address on which the endpoint listens. */
  readonly host: string
  /** Addresses of this machine for clients; they are also in the certificate. */
  readonly addresses: readonly string[]
  /** Address for nodes, also in the certificate; undefined when nodes cannot reach it. */
  readonly nodeAddress: string | undefined
  /** Programs that run beside it once they have a token, and the address of the platform's API. */
  readonly addons: { readonly apiUrl: string; readonly known: readonly Addon[] }
  /** Template and size of guests; undefined when there are none. */
  readonly guests: Pick<GuestKeeperOptions, 'templates' | 'size' | 'appDomain' | 'port'> | undefined
}

interface OpenPlane {
  readonly desired: ControlPlaneDesired
  readonly credentials: Credentials
}

const ROLL_MILLISECONDS = 180_000

/** URL of a listener on this machine. */
const urlOf = (port: number): string => `https://${LOOPBACK}:${port}`
const etcdName = (member: number): string => `etcd-${member}`
const apiName = (replica: number): string => `kube-apiserver-${replica}`
const [MANAGER, SCHEDULER, TUNNEL] = ['kube-controller-manager', 'kube-scheduler', 'konnectivity-server']

export class ControlPlane extends HostedPlane<ControlPlaneRecord> {
  protected readonly addons: RunningAddons
  readonly #options: ControlPlaneOptions
  readonly #killing = new AbortController()
  readonly #programs: RunningPrograms
  readonly #reader: Reader
  readonly #leaving = new Set<number>()
  #opened: OpenPlane | undefined
  #openedAt = Number.NEGATIVE_INFINITY
  #balancer: Balancer | undefined
  #readyApis: readonly number[] = []
  #readyMembers: readonly number[] = []
  /** All snapshots use the same file. */
  readonly #snapshotting = new Mutex()
  readonly #guest: GuestKeeper | undefined
  #guestRunning: Promise<void> = Promise.resolve()

  constructor(options: ControlPlaneOptions) {
    super(options)
    const { folder, addons, clock, random, log } = options
    this.#options = options
    this.#programs = new RunningPrograms(folder, { clock, random, log, signal: this.#killing.signal })
    const programs = this.#programs
    this.#reader = new Reader({ programs, clock, as: (words) => asUser(this.#uid(), words) })
    this.addons = new RunningAddons({
      folder,
      addons: addons.known,
      apiUrl: addons.apiUrl,
      clock,
      random,
      run: async (name, [program = '', ...words], more) =>
        this.#run(name, [await reachable(program, this.#uid()), ...words], more),
      running: () => programs.names(),
      give: () => giveFolder(folder, this.#uid()),
    })
    this.#guest = this.#guestOf(options)
  }

  #guestOf({ folder, record, guests, clock }: ControlPlaneOptions): GuestKeeper | undefined {
    const { guest } = record.desired
    if (guest === undefined || guests === undefined) return undefined
    return new GuestKeeper({
      folder,
      guest,
      ...guests,
      programs: this.#programs,
      record: () => this.record,
      cluster: () => this.cluster(),
      authority: () => this.#opened?.credentials.authority,
      clock,
      signal: this.stopping.signal,
    })
  }

  /** The playground's time has ended, regardless of its state. */
  #isOver(): boolean {
    const { guest } = this.record.desired
    return guest !== undefined && Date.parse(guest.endsAt) <= this.#options.clock.now().getTime()
  }

  /** Process id of one of its programs, by name. */
  pid(name: string): number | undefined {
    return this.#programs.pid(name)
  }

  override start(): void {
    super.start()
    if (this.#guest !== undefined) this.#guestRunning = this.#guest.keep()
  }

  override state(): ControlPlaneState {
    const state = super.state()
    return { ...state, detail: state.detail === '' ? (this.#guest?.detail ?? '') : state.detail }
  }

  protected override observed(): ObservedState {
    const { endpointPort, tunnel } = this.record
    return {
      endpoint: this.#balancer === undefined ? null : `https://${this.#endpointHost()}:${endpointPort}`,
      forNodes: this.#forNodes(),
      apiServersReady: this.#readyApis.length,
      etcdMembersReady: this.#readyMembers.length,
      addons: [...(tunnel === null ? [] : ADDONS), ...this.addons.versions()],
    }
  }

  #forNodes(): ControlPlaneState['forNodes'] {
    const { tunnel, nodePorts, endpointPort } = this.record
    const { nodeAddress: host } = this.#options
    if (tunnel === null || host === undefined) return null
    const ports = nodePorts ?? { endpoint: endpointPort, tunnel: tunnel.agents }
    return { endpoint: `https://${bracketed(host)}:${ports.endpoint}`, tunnel: { host, port: ports.tunnel } }
  }

  /** Handles a node's connection to a port that nodes know; false when the port is not one of this control plane. */
  takeNode(client: Socket, port: number): boolean {
    const { nodePorts, tunnel } = this.record
    if (port === nodePorts?.endpoint) this.#balancer?.take(client)
    else if (port === nodePorts?.tunnel && tunnel !== null) pipeTo(client, tunnel.agents)
    else return false
    return true
  }

  protected override phase(): ControlPlaneState['phase'] {
    const phase = super.phase()
    const isWaiting = this.record.desired.guest !== undefined && this.#guest?.isReady !== true
    return isWaiting && (phase === 'running' || phase === 'upgrading') ? 'starting' : phase
  }

  protected override serving(): ServingApi | undefined {
    const port = this.record.replicas[this.#readyApis[0] ?? -1]?.api
    return port === undefined || this.#opened === undefined ? undefined : { url: urlOf(port), ask: this.#reader.ask }
  }

  /** Access to the services of the playground with that name; undefined for another name, and until its guest is ready.
   */
  playground(name: string): Playground | undefined {
    const cluster = this.cluster()
    if (this.record.desired.guest?.name !== name || this.#guest?.isReady !== true || cluster === undefined)
      return undefined
    return {
      routes: () => cluster.ask('routes'),
      target: (route) => cluster.ask('target', route),
      tunnel: tunnelSocket(this.folder),
    }
  }

  protected override credentials(): Credentials | undefined {
    return this.#opened?.credentials
  }

  protected override pauseMilliseconds(): number {
    return ROUND_MILLISECONDS
  }

  protected override takeSnapshot(folder: string, id: string): Promise<TakenSnapshot> {
    return this.#snapshotting.run(() => this.#takeSnapshot(snapshotFile(folder, id)))
  }

  async #takeSnapshot(file: string): Promise<TakenSnapshot> {
    const port = this.record.replicas[this.#readyMembers[0] ?? -1]?.etcdClient
    if (port === undefined) throw new NotReady('etcd is not ready')
    await this.#reader.ask('snapshot', urlOf(port), this.#options.programs.etcdutl)
    return takeBack(join(this.folder, RUN_FOLDER, SNAPSHOT), file)
  }

  protected override async round(): Promise<void> {
    if (this.#isOver()) await this.change((record) => ({ ...record, isRemoved: true }))
    if (this.record.isRemoved) {
      this.stopping.abort()
      await this.#programs.stop([GUEST])
      await this.end()
      await rm(this.folder, { recursive: true, force: true })
      for (const port of portsOf(this.record)) await releasePort(port)
      this.isGone = true
      return
    }
    const opened = await this.#open()
    await this.writeRestore((next, snapshot) => this.#restore(next, snapshot))
    await this.#startReader(opened)
    // Programs that have exited are restarted even if the health check fails.
    const failure = await this.#look().then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    await this.#startPrograms(opened)
    if (failure !== undefined) throw failure.error
    await this.#finish(opened)
    await this.#programs.boundLogs()
  }

  /** Stops users of the API before the API servers, and these before etcd, so that none waits for a stopped program. */
  protected override async end(): Promise<void> {
    this.#readyApis = []
    await this.#guestRunning
    await this.#balancer?.stop()
    this.#balancer = undefined
    await this.#stopPrograms()
    this.#killing.abort()
    await this.snapshots.stop()
    this.#opened = undefined
  }

  async #stopPrograms(): Promise<void> {
    const isStore = (name: string) => name.startsWith('etcd')
    await this.#programs.stop([GUEST])
    for (const name of this.addons.names()) await this.#programs.stop([name])
    await this.#programs.stop(this.#programs.names().filter((name) => !isStore(name)))
    await this.#programs.stop(this.#programs.names())
    ;[this.#readyApis, this.#readyMembers] = [[], []]
  }

  #endpointHost(): string {
    const { host } = this.#options
    return bracketed(host === '0.0.0.0' || host === '::' ? LOOPBACK : host)
  }

  /** Opens keys and files for the desired state, and the listener in front. */
  async #open(): Promise<OpenPlane> {
    const { folder, clock, random, host, addresses, nodeAddress, issuerListener } = this.#options
    const { desired, endpointPort } = this.record
    const now = clock.monotonicMilliseconds()
    if (this.#opened?.desired !== desired || now - this.#openedAt >= CREDENTIALS_MILLISECONDS) {
      const forNodes = nodeAddress === undefined ? [] : [nodeAddress]
      const forGuest = desired.guest === undefined ? [] : [GATEWAY.address]
      const hosts = [
        ...addresses,
        ...forGuest,
        ...forNodes,
        ...serviceAddresses(desired.serviceCidrs),
        ...desired.serverNames,
      ]
      const credentials = await openCredentials({ folder, hosts, clock, random })
      const endpoint = `https://${this.#endpointHost()}:${endpointPort}`
      const discovery = issuerListener.discoveryOf(desired.id)
      const of = { folder, desired, credentials, endpoint, discovery, tunnelSocket: TUNNEL_SOCKET_HERE, random }
      await writeConfiguration(of)
      this.#openedAt = now
      this.addons.applyAnew() // they have their own certificates
      this.#opened = { desired, credentials }
    }
    this.#balancer ??= await startBalancer({
      host,
      port: endpointPort,
      ready: () =>
        this.#readyApis
          .filter((replica) => !this.#leaving.has(replica))
          .map((replica) => this.record.replicas[replica]?.api ?? 0),
    })
    return this.#opened
  }

  /** The reader reads its credentials only once. */
  async #startReader({ credentials }: OpenPlane): Promise<void> {
    await giveFolder(this.folder, this.#uid())
    const { authority, admin, etcdAuthority, etcdClient, autoscaler } = credentials
    const pems = [authority, etcdAuthority, ...[admin, etcdClient, autoscaler].map(({ certificate }) => certificate)]
    await this.#reader.start(withCredentials(GO_ENVIRONMENT, ...pems))
  }

  async #startPrograms(opened: OpenPlane): Promise<void> {
    const { programs } = this.#options
    const { credentials } = opened
    const record = this.record
    const kubernetes = programs.releases.find(({ release }) => release === record.desired.release)
    if (kubernetes === undefined) throw new Error(`the programs of ${record.desired.release} are not here`)
    const members = record.replicas.map((_, index) => index)
    await giveFolder(this.folder, this.#uid())
    if (record.tunnel !== null && programs.tunnel !== undefined)
      await this.#run(TUNNEL ?? '', tunnelCommand(programs.tunnel, record.tunnel), {
        environment: withCredentials(GO_ENVIRONMENT, credentials.apiserver.certificate),
      })
    for (const member of members) {
      await giveData(dataFolder(this.folder, record.generation, member), this.#uid())
      await this.#run(etcdName(member), etcdCommand(programs, record, member))
    }
    for (const replica of members) await this.#startApi(kubernetes, replica)
    if (this.#readyApis.length === 0) return
    const asManager = withCredentials(GO_ENVIRONMENT, credentials.controllerManager.certificate)
    await this.#run(MANAGER ?? '', controllerManagerCommand(kubernetes, record), { environment: asManager })
    const asScheduler = withCredentials(GO_ENVIRONMENT, credentials.scheduler.certificate)
    await this.#run(SCHEDULER ?? '', schedulerCommand(kubernetes), { environment: asScheduler })
  }

  #uid(): number | undefined {
    const { users } = this.#options
    const { user } = this.record
    return users === undefined || user === null ? undefined : users.first + user
  }

  /** Runs a program as the user of the control plane. */
  async #run(name: string, command: readonly string[], more: Omit<ProgramOptions, 'as'> = {}): Promise<void> {
    await this.#programs.start(name, command, { ...more, as: (words) => asUser(this.#uid(), words) })
  }

  /** A server of another release is replaced only while all others serve. */
  async #startApi(kubernetes: KubernetesPrograms, replica: number): Promise<void> {
    const command = apiserverCommand(kubernetes, this.record, replica)
    const name = apiName(replica)
    if (!this.#programs.isOther(name, command)) return
    if (!this.#programs.names().includes(name)) return this.#run(name, command)
    await this.#look()
    const others = this.record.replicas.map((_, index) => index).filter((index) => index !== replica)
    if (!others.every((other) => this.#readyApis.includes(other)))
      throw new Error(`${name} is not replaced while another does not serve`)
    this.#leaving.add(replica)
    try {
      await this.#run(name, command)
      await this.#untilReady(replica)
    } finally {
      this.#leaving.delete(replica)
    }
  }

  async #untilReady(replica: number): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + ROLL_MILLISECONDS
    do {
      if (this.stopping.signal.aborted) throw new Error('it is being stopped')
      if (clock.monotonicMilliseconds() > deadline) throw new Error(`${apiName(replica)} did not get ready`)
      await clock.sleep(ROUND_MILLISECONDS / 4, this.stopping.signal)
      await this.#look()
    } while (!this.#readyApis.includes(replica))
  }

  async #look(): Promise<void> {
    const { replicas } = this.record
    const ofRunning = (port: number, name: string) => (this.#programs.pid(name) === undefined ? null : urlOf(port))
    const addresses = {
      apis: replicas.map(({ api }, index) => ofRunning(api, apiName(index))),
      members: replicas.map(({ etcdClient }, index) => ofRunning(etcdClient, etcdName(index))),
    }
    const indices = (found: readonly unknown[]) => found.flatMap((is, index) => (is === true ? [index] : []))
    const isThere = (of: readonly (string | null)[]) => (index: number) => (of[index] ?? null) !== null
    try {
      const { apis, members } = await this.#reader.ask('look', addresses)
      this.#readyApis = indices(apis).filter(isThere(addresses.apis))
      this.#readyMembers = indices(members).filter(isThere(addresses.members))
      this.observedAt = this.#options.clock.now()
    } catch (error) {
      // The reader failed, not the servers. Those that still run serve clients and stay ready.
      this.#readyApis = this.#readyApis.filter(isThere(addresses.apis))
      this.#readyMembers = this.#readyMembers.filter(isThere(addresses.members))
      throw error
    }
  }

  /** Records what has been reached. */
  async #finish({ credentials: { authority } }: OpenPlane): Promise<void> {
    const { record } = this
    const serving = this.serving()
    if (serving === undefined) return
    await this.prepare(serving, record.desired, record.tunnel !== null)
    await this.addons.start({
      record,
      authority,
      apply: (needs) => serving.ask('applyAddon', serving.url, needs),
      endpoint: `https://${this.#endpointHost()}:${record.endpointPort}`,
    })
    if (this.#readyApis.length < record.replicas.length) return
    await this.reached(record.desired.release)
    await this.#removeOldGenerations()
  }

  async #removeOldGenerations(): Promise<void> {
    const { restore, generation } = this.record
    if (restore !== null) return
    for (const name of await readdir(this.folder)) {
      const of = /^etcd-(\d+)-\d+$/.exec(name)?.[1]
      if (of !== undefined && Number(of) !== generation) await rm(join(this.folder, name), { recursive: true })
    }
  }

  /** The old generation stays until the new one serves. */
  async #restore(record: ControlPlaneRecord, snapshot: string): Promise<void> {
    await this.#stopPrograms()
    for (const member of record.replicas.keys()) {
      const data = dataFolder(this.folder, record.generation, member)
      await rm(data, { recursive: true, force: true })
      await giveFolder(this.folder, this.#uid())
      await giveData(data, this.#uid())
      const own = await giveCopy(snapshot, this.folder, this.#uid())
      const command = restoreCommand(this.#options.programs, { record, member, snapshot: own.here })
      const [program = '', ...words] = asUser(this.#uid(), command)
      await run(program, words, { cwd: this.folder })
      await rm(own.path)
    }
  }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** The first address of each range, which the service `kubernetes` has. */
const serviceAddresses = (cidrs: readonly string[]): readonly string[] =>
  cidrs.flatMap((cidr) => serviceAddress(cidr, 1) ?? [])
