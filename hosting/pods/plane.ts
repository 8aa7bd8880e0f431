/** One control plane in pods: repeatedly updates the host cluster to match the record. Kubernetes keeps the pods
 *  running, even while this process does not run. */
import { rm } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { ADDONS } from '../core/addons.ts'
import type { Credentials } from '../core/credentials.ts'
import { NotReady } from '../core/not-ready.ts'
import {
  CREDENTIALS_MILLISECONDS,
  HostedPlane,
  type HostedPlaneOptions,
  type ObservedState,
  ROUND_MILLISECONDS,
  type ServingApi,
} from '../core/plane.ts'
import type { ApplyNeeds } from '../core/plane-addons.ts'
import { type TakenSnapshot, takeSnapshot } from '../core/snapshots.ts'
import { isApiError, type Store } from '../../kit/kube/store.ts'
import { PodsAddons } from './addons.ts'
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
import type { PodsRecord } from './record.ts'
import { putSnapshot, stopInOrder } from './restore.ts'
import type { HostSettings } from './settings.ts'
import { apiManifest, controllerManifests, etcdManifest, readerManifest } from './workloads.ts'

export interface PlaneOptions extends HostedPlaneOptions<PodsRecord> {
  readonly cluster: Store
  readonly settings: HostSettings
}

interface OpenPlane {
  readonly desired: PodsRecord['desired']
  readonly addresses: readonly string[]
  readonly at: number
  readonly files: Files
  readonly reader: PodReader
}

/** Interval when no change is in progress. */
const SETTLED_MILLISECONDS = 5_000

export class PodsPlane extends HostedPlane<PodsRecord> {
  protected readonly addons: PodsAddons
  readonly #options: PlaneOptions
  readonly #cluster: HostCluster
  #opened: OpenPlane | undefined
  #endpoint: Endpoint | undefined
  #etcdAddress: string | undefined
  #rollouts: ReadonlyMap<string, Rollout> = new Map()
  /** Address of the trusted reader. */
  #readerAddress: string | undefined
  /** The reader is no longer trusted and must be replaced. */
  #isReaderOver = false

  constructor(options: PlaneOptions) {
    super(options)
    const { record, cluster, clock } = options
    this.#options = options
    this.#cluster = new HostCluster(cluster, namespaceOf(record.desired.id), clock)
    this.addons = new PodsAddons({ ...options, cluster: this.#cluster })
  }

  protected override observed(): ObservedState {
    return {
      endpoint: this.#endpoint?.url ?? null,
      forNodes: this.#endpoint === undefined ? null : { endpoint: this.#endpoint.url, tunnel: this.#endpoint.tunnel },
      apiServersReady: this.#readyOf(API),
      etcdMembersReady: this.#readyOf(ETCD),
      addons: [...ADDONS, ...this.addons.versions(this.record, this.#rollouts)],
    }
  }

  protected override credentials(): Credentials | undefined {
    return this.#opened?.files.credentials
  }

  protected override serving(): ServingApi | undefined {
    const [url, reader] = [this.#readyOf(API) === 0 ? undefined : this.#endpoint?.inner, this.#opened?.reader]
    return url === undefined || reader === undefined ? undefined : { url, ask: reader.ask }
  }

  #readyOf(part: string): number {
    return this.#rollouts.get(part)?.ready ?? 0
  }

  #isWhole(...parts: readonly string[]): boolean {
    return parts.every((part) => this.#rollouts.get(part)?.isWhole === true)
  }

  protected override async takeSnapshot(folder: string, id: string): Promise<TakenSnapshot> {
    if (this.#readyOf(ETCD) === 0 || this.#opened === undefined || this.#etcdAddress === undefined)
      throw new NotReady('etcd is not ready')
    return takeSnapshot({ folder, id, etcdutl: undefined, parts: this.#opened.reader.snapshotParts(this.#etcdAddress) })
  }

  protected override isPassing(error: unknown): boolean {
    return isAway(error) || super.isPassing(error)
  }

  protected override pauseMilliseconds(): number {
    const isSettled = this.phase() === 'running' && this.detail === '' && this.#isWhole(ETCD, API, READER)
    return isSettled ? SETTLED_MILLISECONDS : ROUND_MILLISECONDS
  }

  /** The pods continue to run. */
  protected override async end(): Promise<void> {
    await this.snapshots.stop()
    this.#opened?.reader.close()
    this.#opened = undefined
  }

  protected override async round(): Promise<void> {
    try {
      await this.#update()
      this.isSilent = false
    } catch (error) {
      this.isSilent = isAway(error)
      throw error
    }
  }

  async #update(): Promise<void> {
    const { settings } = this.#options
    if (this.record.isRemoved) return this.#remove()
    if (this.#isReaderOver) await this.change((current) => ({ ...current, readers: current.readers + 1 }))
    this.#isReaderOver = false
    await this.#cluster.apply(namespaceManifests(this.record, settings))
    await this.#applyBase()
    await this.#findAddresses()
    const { files } = await this.#open()
    await this.#cluster.apply(files.secrets)
    await this.writeRestore((next, file) => this.#putSnapshot(next, file, files))
    await this.#requireVolumes()
    // Another release may be requested at any moment. So this round uses one record, and its results refer to that
    // release.
    const record = this.record
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
      await this.#cluster.apply(baseManifests(this.record, this.#options.settings))
    } catch (error) {
      if (isApiError(error) && error.reason === 'Invalid' && this.record.nodePort !== null)
        await this.change((current) => ({ ...current, nodePort: null }))
      throw error
    }
  }

  /** Members of etcd that have run before need their volumes. Without most of them, an empty control plane would
   *  replace the lost one. */
  async #requireVolumes(): Promise<void> {
    if (this.record.release === null) return
    const members = membersOf(this.record).map((_, member) => member)
    const claims = await Promise.all(
      members.map((member) => this.#cluster.get(PersistentVolumeClaim, claimName(member))),
    )
    if (claims.filter((claim) => claim !== undefined).length > members.length / 2) return
    await this.#look()
    throw new Error('the volumes of etcd are lost: a snapshot can be restored')
  }

  async #look(): Promise<void> {
    this.#rollouts = await this.#cluster.rollouts()
    this.observedAt = this.#options.clock.now()
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
    const { desired, readers } = this.record
    this.#options.log.warn('the reader of a control plane is replaced', { controlPlane: desired.id, readers })
    this.#isReaderOver = true
    this.#forgetReader()
    this.wake()
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

  async #open(): Promise<OpenPlane> {
    const { folder, clock, random } = this.#options
    const record = this.record
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
    this.addons.applyAnew() // they have their own certificates
    before?.reader.close()
    return this.#opened
  }

  /** Records what has been reached. */
  async #finish(record: PodsRecord, { credentials }: Files): Promise<void> {
    const serving = this.serving()
    if (serving === undefined) return
    if (this.#readerAddress === undefined) throw new Error('its API is ready, and the pod that reads it is not')
    await this.prepare(serving, record.desired, true)
    const applyNeeds: ApplyNeeds = (needs) => serving.ask('applyAddon', serving.url, needs)
    await this.addons.start(record, applyNeeds, credentials.authority)
    if (this.#isWhole(ETCD, API, MANAGER, SCHEDULER)) await this.reached(record.desired.release)
  }

  async #putSnapshot(record: PodsRecord, file: string, { credentials, reader: { client } }: Files): Promise<void> {
    const { settings, clock } = this.#options
    const { signal } = this.stopping
    this.#rollouts = new Map()
    this.#forgetReader()
    await putSnapshot({ cluster: this.#cluster, settings, record, credentials, client, file, clock, signal })
  }

  /** Stops the programs in order, then removes everything in the namespace. */
  async #remove(): Promise<void> {
    const name = namespaceOf(this.record.desired.id)
    this.#rollouts = new Map()
    const namespace = await this.#cluster.get(Namespace, name)
    if (namespace === undefined) {
      await this.snapshots.stop()
      await rm(this.folder, { recursive: true, force: true })
      this.isGone = true
      return
    }
    if (namespace.metadata.labels?.[PLANE_LABEL] !== this.record.desired.id)
      throw new Error(`the namespace ${name} is not of this control plane`)
    if (namespace.metadata.deletionTimestamp === undefined && (await stopInOrder(this.#cluster)))
      await this.#cluster.remove(Namespace, name)
  }
}
