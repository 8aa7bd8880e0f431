/** One control plane in pods: repeatedly updates the host cluster to match the record. Kubernetes keeps the pods
 *  running, even while this process does not run. */
import { rm } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { StoreAway } from '../../kit/chunks/object-store.ts'
import type { AddonGrant, ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { ADDONS } from '../core/addons.ts'
import { endOf } from '../core/credentials.ts'
import { SnapshotKeeper } from '../core/snapshot-keeper.ts'
import { takeSnapshot } from '../core/snapshots.ts'
import type { ClusterReading, TaskName } from '../core/reading/tasks.ts'
import { isApiError, type Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { type ApplyNeeds, PodsAddons } from './addons.ts'
import { baseManifests, namespaceManifests } from './base.ts'
import { bracketed, type Endpoint, endpointOf } from './endpoint.ts'
import { type Files, openFiles } from './files.ts'
import { HostCluster, isAway, type Rollout } from './host-cluster.ts'
import { Namespace, PersistentVolumeClaim, Service } from './kinds.ts'
import {
  API,
  claimName,
  ETCD,
  MANAGER,
  membersOf,
  namespaceOf,
  PLANE_LABEL,
  PORTS,
  READER,
  SCHEDULER,
} from './names.ts'
import { PodReader } from './reader.ts'
import { type PodsRecord, writeRecord } from './record.ts'
import { putSnapshot, stopInOrder } from './restore.ts'
import type { HostSettings } from './settings.ts'
import { apiManifest, controllerManifests, etcdManifest, readerManifest } from './workloads.ts'

export interface PlaneOptions {
  readonly folder: string
  readonly record: PodsRecord
  readonly cluster: Store
  readonly settings: HostSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

interface Opened {
  readonly desired: PodsRecord['desired']
  readonly addresses: readonly string[]
  readonly at: number
  readonly files: Files
  readonly reader: PodReader
}

const ROUND_MILLISECONDS = 1_000
/** Interval when no change is in progress. */
const SETTLED_MILLISECONDS = 5_000
/** Interval of the check for certificates that expire soon. */
const CREDENTIALS_MILLISECONDS = 3_600_000

export class PodsPlane {
  readonly folder: string
  readonly snapshots: SnapshotKeeper
  readonly #options: PlaneOptions
  readonly #cluster: HostCluster
  readonly #stopping = new AbortController()
  #record: PodsRecord
  #opened: Opened | undefined
  #endpoint: Endpoint | undefined
  #etcdAddress: string | undefined
  #rollouts: ReadonlyMap<string, Rollout> = new Map()
  /** Address of the trusted reader. */
  #readerAddress: string | undefined
  /** The reader is no longer trusted and must be replaced. */
  #isReaderOver = false
  readonly #addons: PodsAddons
  #areObjectsApplied = false
  #detail = ''
  #observedAt: Date | undefined
  /** The host cluster does not answer, so the known state is old. */
  #isSilent = false
  #wake = new AbortController()
  #changing: Promise<unknown> = Promise.resolve()
  #running: Promise<void> = Promise.resolve()
  isGone = false

  constructor(options: PlaneOptions) {
    const { folder, record, cluster, clock, random, log } = options
    this.folder = folder
    this.#options = options
    this.#record = record
    this.#cluster = new HostCluster(cluster, namespaceOf(record.desired.id), clock)
    this.#addons = new PodsAddons({ ...options, cluster: this.#cluster })
    this.snapshots = new SnapshotKeeper({
      folder,
      clock,
      random,
      log,
      controlPlane: record.desired.id,
      take: async (into, id) => takeSnapshot({ folder: into, id, etcdutl: undefined, parts: this.#snapshotParts() }),
    })
  }

  get record(): PodsRecord {
    return this.#record
  }

  start(): void {
    this.#running = this.#keep()
  }

  /** The pods continue to run. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#wake.abort()
    await this.#running
  }

  /** Durable when this resolves, and applied soon. One change after the other. */
  change(to: (record: PodsRecord) => PodsRecord): Promise<void> {
    const changed = this.#changing.then(async () => {
      const next = to(this.#record)
      if (isDeepStrictEqual(next, this.#record)) return
      await writeRecord(this.folder, next)
      this.#record = next
      this.#wake.abort()
    })
    this.#changing = changed.catch(() => undefined) // the caller gets the error
    return changed
  }

  state(): ControlPlaneState {
    const { desired, release, restoreId } = this.#record
    const [apis, members] = [this.#readyOf(API), this.#readyOf(ETCD)]
    return {
      id: desired.id,
      phase: this.#phase(),
      release,
      restoreId,
      endpoint: this.#endpoint?.url ?? null,
      certificateAuthority: this.#opened?.files.credentials.authority ?? null,
      apiServer: this.#observedAt === undefined || this.#isSilent ? 'unknown' : apis > 0 ? 'healthy' : 'unhealthy',
      apiServersReady: apis,
      etcdMembersReady: members,
      etcdMembersTotal: desired.replicas,
      hasEtcdQuorum: members > desired.replicas / 2,
      forNodes: this.#endpoint === undefined ? null : { endpoint: this.#endpoint.url, tunnel: this.#endpoint.tunnel },
      addons: [...ADDONS, ...this.#addons.versions(this.#record, this.#rollouts)],
      grants: this.#addons.grants(this.#record),
      snapshotStore: this.snapshots.state,
      detail: this.#detail,
      observedAt: (this.#observedAt ?? this.#options.clock.now()).toISOString(),
    }
  }

  /** False for an add-on that this host does not offer. */
  async grant(addon: string, { token, ...granted }: AddonGrant): Promise<boolean> {
    if (!this.#addons.can(addon)) return false
    await this.#addons.writeToken(addon, token)
    await this.change((record) => ({ ...record, addons: { ...record.addons, [addon]: granted } }))
    return true
  }

  #readyOf(part: string): number {
    return this.#rollouts.get(part)?.ready ?? 0
  }

  #isWhole(...parts: readonly string[]): boolean {
    return parts.every((part) => this.#rollouts.get(part)?.isWhole === true)
  }

  #phase(): ControlPlaneState['phase'] {
    const { isRemoved, restore, release, desired } = this.#record
    if (isRemoved) return 'stopping'
    if (restore !== null) return 'restoring'
    if (release === null || !this.#areObjectsApplied) return 'starting'
    return release === desired.release ? 'running' : 'upgrading'
  }

  /** Undefined while no API server is ready. */
  cluster(): ClusterReading | undefined {
    const api = this.#areObjectsApplied ? this.#server() : undefined
    const reader = this.#opened?.reader
    if (api === undefined || reader === undefined) return undefined
    // The interface defines the types of the arguments and the result.
    const ask = reader.ask as (task: TaskName, ...words: unknown[]) => Promise<never>
    return { ask: async (task, ...words) => ask(task, api, ...words) }
  }

  /** Address of the API servers, if one is ready. */
  #server(): string | undefined {
    return this.#readyOf(API) === 0 ? undefined : this.#endpoint?.inner
  }

  certificatesEndAt(): Date | undefined {
    return this.#opened && endOf(this.#opened.files.credentials)
  }

  #snapshotParts(): AsyncIterable<Uint8Array> {
    if (this.#readyOf(ETCD) === 0 || this.#opened === undefined || this.#etcdAddress === undefined)
      throw new Error('etcd is not ready')
    return this.#opened.reader.snapshotParts(this.#etcdAddress)
  }

  async #keep(): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    const outages = new Outages({ log, clock }, 'control plane not as it should be')
    await this.snapshots.start()
    while (!signal.aborted && !this.isGone) {
      this.#wake = new AbortController()
      try {
        await this.#round()
        outages.over()
        ;[this.#detail, this.#isSilent] = ['', false]
      } catch (error) {
        const detail = error instanceof Error ? error.message : String(error)
        if (!signal.aborted) outages.failed(error, { controlPlane: this.#record.desired.id })
        this.#detail = detail
        this.#isSilent = isAway(error)
      }
      const isSettled = this.#phase() === 'running' && this.#detail === '' && this.#isWhole(ETCD, API, READER)
      if (!signal.aborted && !this.isGone)
        await clock.sleep(isSettled ? SETTLED_MILLISECONDS : ROUND_MILLISECONDS, this.#wake.signal)
    }
    await this.snapshots.stop()
    this.#opened?.reader.close()
    this.#opened = undefined
  }

  async #round(): Promise<void> {
    const { settings } = this.#options
    if (this.#record.isRemoved) return this.#remove()
    if (this.#isReaderOver) await this.change((current) => ({ ...current, readers: current.readers + 1 }))
    this.#isReaderOver = false
    await this.#cluster.apply(namespaceManifests(this.#record, settings))
    await this.#applyBase()
    await this.#findAddresses()
    const { files } = await this.#open()
    await this.#cluster.apply(files.secrets)
    if (this.#record.restore?.isWritten === false) await this.#writeRestore(this.#record.restore, files)
    await this.#requireVolumes()
    // Another release may be requested at any moment. So this round uses one record, and its results refer to that
    // release.
    const record = this.#record
    await this.#cluster.apply([etcdManifest(record, settings), readerManifest(record, settings, files.read)])
    await this.#look()
    await this.#findReader()
    if (this.#rollouts.has(API) || this.state().hasEtcdQuorum) {
      await this.#cluster.apply([apiManifest(record, settings, files.served)])
      await this.#look()
    }
    // Controllers must never be newer than an API server.
    if (this.#isWhole(API)) {
      await this.#cluster.apply(controllerManifests(record, settings, files))
      await this.#look()
    }
    await this.#finish(record, files)
  }

  /** The port that clients knew may be taken by now. Then the control plane gets another one. */
  async #applyBase(): Promise<void> {
    try {
      await this.#cluster.apply(baseManifests(this.#record, this.#options.settings))
    } catch (error) {
      if (isApiError(error) && error.reason === 'Invalid' && this.#record.nodePort !== null)
        await this.change((current) => ({ ...current, nodePort: null }))
      throw error
    }
  }

  /** Members of etcd that have run before need their volumes. Without most of them, an empty control plane would
   *  replace the lost one. */
  async #requireVolumes(): Promise<void> {
    if (this.#record.release === null) return
    const members = membersOf(this.#record).map((_, member) => member)
    const claims = await Promise.all(
      members.map((member) => this.#cluster.get(PersistentVolumeClaim, claimName(member))),
    )
    if (claims.filter((claim) => claim !== undefined).length > members.length / 2) return
    await this.#look()
    throw new Error('the volumes of etcd are lost: a snapshot can be restored')
  }

  async #look(): Promise<void> {
    this.#rollouts = await this.#cluster.rollouts()
    this.#observedAt = this.#options.clock.now()
  }

  /** The reader is used once it matches its last manifest and the previous reader has ended. */
  async #findReader(): Promise<void> {
    if (!this.#isWhole(READER)) return this.#forgetReader()
    const pods = await this.#cluster.podsOf([READER])
    const host = pods.find(({ metadata }) => metadata.deletionTimestamp === undefined)?.status?.podIP
    if (!this.#isReaderOver) this.#readerAddress = host && `https://${bracketed(host)}:${PORTS.reader}`
  }

  #forgetReader(): void {
    this.#readerAddress = undefined
  }

  /** Stops trusting the reader. */
  #replaceReader(): void {
    const { desired, readers } = this.#record
    this.#options.log.warn('the reader of a control plane is replaced', { controlPlane: desired.id, readers })
    this.#isReaderOver = true
    this.#forgetReader()
    this.#wake.abort()
  }

  /** Reads the addresses that the host cluster has assigned. */
  async #findAddresses(): Promise<void> {
    const { endpoint } = this.#options.settings
    const [api, etcd] = [await this.#cluster.get(Service, API), await this.#cluster.get(Service, 'etcd-client')]
    this.#endpoint = api && endpointOf(api, endpoint)
    const address = etcd?.spec.clusterIP
    this.#etcdAddress = address && `https://${bracketed(address)}:${PORTS.etcdClient}`
    if (this.#endpoint === undefined) throw new Error('the host cluster has not given the API an address yet')
  }

  async #open(): Promise<Opened> {
    const { folder, clock, random } = this.#options
    const record = this.#record
    const addresses = this.#endpoint?.addresses ?? []
    const [before, now] = [this.#opened, clock.monotonicMilliseconds()]
    const isFresh = before !== undefined && now - before.at < CREDENTIALS_MILLISECONDS
    if (isFresh && before.desired === record.desired && isDeepStrictEqual(before.addresses, addresses)) return before
    const files = await openFiles({ folder, record, addresses, clock, random })
    this.#opened = {
      desired: record.desired,
      addresses,
      at: now,
      files,
      reader: new PodReader({
        credentials: files.reader,
        address: () => this.#readerAddress,
        replace: () => this.#replaceReader(),
        clock,
      }),
    }
    this.#addons.applyAnew() // they have their own certificates
    before?.reader.close()
    return this.#opened
  }

  /** Records what has been reached. */
  async #finish(record: PodsRecord, files: Files): Promise<void> {
    const { desired } = record
    const [api, reader] = [this.#server(), this.#opened?.reader]
    if (api === undefined || reader === undefined) return
    if (this.#readerAddress === undefined) throw new Error('its API is ready, and the pod that reads it is not')
    if (!this.#areObjectsApplied) {
      await reader.ask('prepare', api, desired, true)
      this.#addons.applyAnew()
      this.#areObjectsApplied = true
    }
    const applyNeeds: ApplyNeeds = (needs) => reader.ask('applyAddon', api, needs)
    await this.#addons.start(record, applyNeeds, files.credentials.authority)
    if (!this.#isWhole(ETCD, API, MANAGER, SCHEDULER)) return
    await this.change((current) =>
      current.desired.release === desired.release && current.restore?.isWritten !== false
        ? {
            ...current,
            release: desired.release,
            restoreId: current.restore === null ? current.restoreId : current.restore.id,
            restore: null,
          }
        : current,
    )
  }

  /** Creates the next generation from the snapshot. A bad snapshot changes nothing: the previous generation is started
   *  again. */
  async #writeRestore(restore: NonNullable<PodsRecord['restore']>, { credentials, reader }: Files): Promise<void> {
    const { settings, clock } = this.#options
    const { signal } = this.#stopping
    const record = { ...this.#record, generation: this.#record.generation + 1 }
    try {
      const file = await this.snapshots.fileOf(restore.snapshotId)
      this.#rollouts = new Map()
      this.#forgetReader()
      const { client } = reader
      await putSnapshot({ cluster: this.#cluster, settings, record, credentials, client, file, clock, signal })
    } catch (error) {
      // Waits while the store or the host cluster is unavailable.
      const isWaiting = error instanceof StoreAway || isAway(error) || signal.aborted
      if (!isWaiting) await this.change((current) => ({ ...current, restore: null }))
      throw error
    }
    this.#areObjectsApplied = false
    await this.change((current) => ({
      ...current,
      generation: record.generation,
      restore: { ...restore, isWritten: true },
    }))
  }

  /** Stops the programs in order, then removes everything in the namespace. */
  async #remove(): Promise<void> {
    const name = namespaceOf(this.#record.desired.id)
    this.#rollouts = new Map()
    const namespace = await this.#cluster.get(Namespace, name)
    if (namespace === undefined) {
      await this.snapshots.stop()
      await rm(this.folder, { recursive: true, force: true })
      this.isGone = true
      return
    }
    if (namespace.metadata.labels?.[PLANE_LABEL] !== this.#record.desired.id)
      throw new Error(`the namespace ${name} is not of this control plane`)
    if (namespace.metadata.deletionTimestamp === undefined && (await stopInOrder(this.#cluster)))
      await this.#cluster.remove(Namespace, name)
  }
}
