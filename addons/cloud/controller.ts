/** Carries out the plan for services and nodes, in passes. It only remembers when to retry failures: each pass reads
 *  the current state. */
import { type Client, SvccloudError, unwrap } from '../../client/index.ts'
import { Unavailable } from '../../domain/problem.ts'
import type { Cache } from '../../kit/kube/cache.ts'
import { keyOf, keyText } from '../../kit/kube/object.ts'
import { isConflict, isNotFound, type Store } from '../../kit/kube/store.ts'
import type { EventRecorder } from '../../kit/reconcile/events.ts'
import { backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { orNothing } from '../platform.ts'
import { targetsOf, unnamedNodes } from './nodes.ts'
import { type Ingress, Node, type NodeSpec, type NodeStatus, Service, type ServiceObject } from './objects.ts'
import type { ServiceSpec, ServiceStatus } from './objects.ts'
import { type Balancer, FINALIZER, fixedNotes, isConcerned, nextStep, ownOf, type ServiceStep } from './plan.ts'
import { openPlatformReader, type PlatformReader, type PlatformState } from './platform-state.ts'
import { type Surroundings, type DesiredBalancer, desiredBalancer } from './wanted.ts'

export interface CloudControllerOptions {
  /** Store of the cluster. */
  readonly store: Store
  readonly services: Cache<ServiceSpec, ServiceStatus>
  readonly nodes: Cache<NodeSpec, NodeStatus>
  readonly platform: Client
  readonly clusterId: string
  readonly events: Pick<EventRecorder, 'record'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** From a new service to its published addresses there are five. */
const STEPS_MAXIMUM = 10
const RETRY = { baseMilliseconds: 5_000, maximumMilliseconds: 300_000 }
/** Interval while something is in progress for which there are no events, and while nothing is. */
const [PENDING_MILLISECONDS, IDLE_MILLISECONDS] = [5_000, 60_000]

interface Retry {
  readonly failures: number
  /** Monotonic milliseconds. */
  readonly at: number
  /** The request that failed. */
  readonly request: string
}
const requestOf = ({ metadata: { annotations, deletionTimestamp }, spec }: ServiceObject): string =>
  JSON.stringify([annotations, deletionTimestamp, spec])
interface FollowedService {
  readonly service: ServiceObject
  readonly balancers: readonly Balancer[]
}
/** Undefined when there is nothing more to do now; `isPending`: check again soon. */
type SyncResult = FollowedService | { readonly isPending: boolean }

export class CloudController {
  readonly #options: CloudControllerOptions
  readonly #reader: PlatformReader
  /** By uid of the service. */
  #retries = new Map<string, Retry>()

  constructor(options: CloudControllerOptions) {
    this.#options = options
    this.#reader = openPlatformReader(options.platform, options.clusterId)
  }

  /** Returns the milliseconds until the next pass. Throws when the platform or the API of the cluster does not answer
   *  or denies access. */
  async pass(): Promise<number> {
    const { services, nodes, clusterId } = this.#options
    const concerned = services.list().filter(isConcerned)
    const state = await this.#read(concerned)
    if (state.isLeaving) return IDLE_MILLISECONDS
    await this.#nameNodes(state)
    const { zone, networkId } = state
    const surroundings = { clusterId, zone, networkId, targets: targetsOf(nodes.list(), state.servers) }
    const uids = new Set(concerned.map(({ metadata: { uid = '' } }) => uid))
    this.#retries = new Map([...this.#retries].filter(([uid]) => uids.has(uid)))
    let milliseconds = IDLE_MILLISECONDS
    for (const service of concerned)
      milliseconds = Math.min(milliseconds, await this.#follow(service, state, surroundings))
    return milliseconds
  }

  /** If the platform denies access, reports that to all services that wait for a load balancer. */
  async #read(concerned: readonly ServiceObject[]): Promise<PlatformState> {
    try {
      return await this.#reader.read()
    } catch (error) {
      if (error instanceof SvccloudError) for (const service of concerned) this.#failed(service, error)
      throw error
    }
  }

  async #nameNodes({ servers }: PlatformState): Promise<void> {
    const { store, nodes, log } = this.#options
    for (const { node, providerId } of unnamedNodes(nodes.list(), servers))
      try {
        const { resourceVersion } = node.metadata
        const patch = { metadata: { resourceVersion }, spec: { providerID: providerId } }
        nodes.apply(await store.patch(Node, keyOf(node), patch))
      } catch (error) {
        if (error instanceof Unavailable) throw error
        if (!isConflict(error) && !isNotFound(error)) log.info('node not named', { node: node.metadata.name, error })
      }
  }

  /** Returns the milliseconds until the service must be checked again. */
  async #follow(service: ServiceObject, state: PlatformState, surroundings: Surroundings): Promise<number> {
    const { uid = '' } = service.metadata
    const waiting = this.#waiting(service)
    if (waiting > 0) return waiting
    try {
      const found = (state.balancers.get(uid) ?? []).map(({ id }) => this.#reader.balancer(id))
      const balancers = (await Promise.all(found)).filter((balancer) => balancer !== undefined)
      if (await this.#steps({ service, balancers }, surroundings)) return PENDING_MILLISECONDS
      this.#retries.delete(uid)
      return IDLE_MILLISECONDS
    } catch (error) {
      if (error instanceof Unavailable) throw error
      // Another writer was faster: the watch delivers the current state.
      if (isConflict(error) || isNotFound(error)) return PENDING_MILLISECONDS
      this.#failed(service, error)
      return this.#waiting(service)
    }
  }

  /** Milliseconds until the failed request is retried; a changed request is not delayed. */
  #waiting(service: ServiceObject): number {
    const retry = this.#retries.get(service.metadata.uid ?? '')
    if (retry === undefined || retry.request !== requestOf(service)) return 0
    return Math.max(0, retry.at - this.#options.clock.monotonicMilliseconds())
  }

  /** Returns whether something is in progress. */
  async #steps(followed: FollowedService, surroundings: Surroundings): Promise<boolean> {
    const { wanted, faults } = desiredBalancer(followed.service, surroundings)
    let { service, balancers } = followed
    for (let count = 0; count < STEPS_MAXIMUM; count++) {
      const step = nextStep({ service, balancers, wanted, faults })
      const done = await this.#do(step, { service, balancers })
      if ('isPending' in done) {
        const own = ownOf(balancers)
        if (wanted !== undefined && step.is === 'done' && own !== undefined)
          for (const note of [...wanted.notes, ...fixedNotes(own, wanted)]) this.#warn(service, note)
        return done.isPending
      }
      ;({ service, balancers } = done)
    }
    return true
  }

  async #do(step: ServiceStep, followed: FollowedService): Promise<SyncResult> {
    const { service, balancers } = followed
    const { finalizers = [] } = service.metadata
    switch (step.is) {
      case 'done':
        return { isPending: false }
      case 'wait':
        return { isPending: true }
      case 'refuse':
        for (const fault of step.faults) this.#warn(service, fault)
        return { isPending: false }
      case 'hold':
        return { service: await this.#keep(service, [...finalizers, FINALIZER]), balancers }
      case 'create':
        return { service, balancers: [...balancers, await this.#create(service, step.creation)] }
      case 'configure':
        return this.#configure(followed, step)
      case 'publish':
        return { service: await this.#publish(service, step.ingress), balancers }
      case 'remove':
        return this.#remove(followed, step)
      case 'release':
        await this.#keep(
          service,
          finalizers.filter((name) => name !== FINALIZER),
        )
        this.#tell(service, 'DeletedLoadBalancer', 'its load balancer no longer exists')
        return { isPending: false }
    }
  }

  /** A conditional write, so that no other change of the service is lost. */
  async #patch(service: ServiceObject, change: object, subresource?: 'status'): Promise<ServiceObject> {
    const { store, services } = this.#options
    const { resourceVersion } = service.metadata
    const patch = { metadata: { resourceVersion }, ...change }
    const written = await store.patch(Service, keyOf(service), patch, subresource)
    services.apply(written)
    return written
  }

  #keep(service: ServiceObject, finalizers: readonly string[]): Promise<ServiceObject> {
    const { resourceVersion } = service.metadata
    return this.#patch(service, { metadata: { resourceVersion, finalizers } })
  }

  async #publish(service: ServiceObject, ingress: readonly Ingress[]): Promise<ServiceObject> {
    const change = { status: { loadBalancer: { ingress: ingress.length === 0 ? null : ingress } } }
    const written = await this.#patch(service, change, 'status')
    if (ingress.length > 0)
      this.#tell(service, 'EnsuredLoadBalancer', `it is reached at ${ingress.map(({ ip }) => ip).join(', ')}`)
    return written
  }

  /** The name is unique, so a controller that was killed during the request, or repeats it too early, does not create a
   *  second one. */
  async #create(service: ServiceObject, creation: DesiredBalancer['creation']): Promise<Balancer> {
    const { platform } = this.#options
    this.#tell(service, 'EnsuringLoadBalancer', `making load balancer ${creation.name}`)
    const body = { ...creation, frontends: [], backends: [] }
    return (await unwrap(platform.POST('/v1/load-balancers', { body }))).load_balancer
  }

  /** If somebody else has changed it meanwhile, that change is read first. */
  async #configure(
    { service, balancers }: FollowedService,
    { id, generation, to }: Extract<ServiceStep, { is: 'configure' }>,
  ): Promise<SyncResult> {
    const body = { ...to, configuration_generation: generation }
    const { platform } = this.#options
    const putting = platform.PUT('/v1/load-balancers/{id}/configuration', { params: { path: { id } }, body })
    try {
      const { load_balancer: written } = await unwrap(putting)
      const members = to.backends[0]?.members.length ?? 0
      this.#tell(service, 'UpdatedLoadBalancer', `ports ${portsOf(to)} go to ${members} nodes`)
      return { service, balancers: balancers.map((balancer) => (balancer.id === id ? written : balancer)) }
    } catch (error) {
      const isOther = error instanceof SvccloudError && error.problem.reason === 'state_not_allowed'
      if (isOther) return { isPending: true }
      throw error
    }
  }

  async #remove(
    { service, balancers }: FollowedService,
    { id, failure }: Extract<ServiceStep, { is: 'remove' }>,
  ): Promise<SyncResult> {
    const { platform } = this.#options
    await orNothing(unwrap(platform.DELETE('/v1/load-balancers/{id}', { params: { path: { id } } })))
    if (failure === '') this.#tell(service, 'DeletingLoadBalancer', 'its load balancer is being deleted')
    else this.#failed(service, new Error(`${failure}; it is made anew`))
    const left = await this.#reader.balancer(id)
    const others = balancers.filter((balancer) => balancer.id !== id)
    return { service, balancers: left === undefined ? others : [...others, { ...left, state: 'deleting' }] }
  }

  #tell(service: ServiceObject, reason: string, note: string): void {
    this.#options.events.record(service, { type: 'Normal', reason, action: 'Sync', note })
    this.#options.log.info('load balancer', { service: keyText(keyOf(service)), note })
  }

  #warn(service: ServiceObject, note: string): void {
    this.#options.events.record(service, { type: 'Warning', reason: 'SyncLoadBalancerFailed', action: 'Sync', note })
  }

  #failed(service: ServiceObject, error: unknown): void {
    const { clock, random, log } = this.#options
    const { uid = '' } = service.metadata
    const { failures } = this.#retries.get(uid) ?? { failures: 0 }
    const at = clock.monotonicMilliseconds() + backoffMilliseconds(failures, RETRY, random)
    this.#retries.set(uid, { failures: failures + 1, at, request: requestOf(service) })
    log.warn('service failed', { service: keyText(keyOf(service)), error })
    this.#warn(service, error instanceof Error ? error.message : String(error))
  }
}

const portsOf = ({ frontends }: { readonly frontends: readonly { readonly port: number }[] }): string =>
  frontends.map(({ port }) => port).join(', ')
