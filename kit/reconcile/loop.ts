/** Runs one reconciler: watches wake keys, workers take them, and each reconcile reads everything again, plans, and
 *  interprets the plan. The loop contains what is the same for every reconciler: queueing, back-off, waits, finalizers,
 *  deadlines of operations, resync. */
import { Unavailable } from '../../domain/problem.ts'
import type { Cache } from '../kube/cache.ts'
import type { Caches } from '../kube/caches.ts'
import { keyFromText, keyText, type KubeObject, type ResourceType } from '../kube/object.ts'
import { ApiError, isConflict, isNamespaceTerminating, isNotFound, type Store } from '../kube/store.ts'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import type { Random } from '../sys/random.ts'
import { markFailed, startSpan, withSpan } from '../sys/tracing.ts'
import { Outages } from '../sys/outages.ts'
import type { Action } from './action.ts'
import type { EventRecorder } from './events.ts'
import { interpret, type Interpretation, type Interpreter } from './interpret.ts'
import type { ControllerMetrics } from './metrics.ts'
import { activeOperation, progressOf, type Operations } from './operation.ts'
import { WorkQueue } from './queue.ts'
import type { Reconciler, Watch } from './reconciler.ts'
import { openAnswers, RestlessEffect } from './restless.ts'
import { traceOf } from './trace.ts'

export interface ControllerOptions {
  readonly store: Store
  readonly caches: Caches
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ControllerMetrics
  readonly operations?: Operations
  readonly events?: EventRecorder
  /** Called before the first plan for a root that is being deleted, possibly more than once. */
  readonly beforeDeletion?: (type: ResourceType, root: KubeObject) => Promise<void>
  /** Called before a root's finalizer is removed, possibly more than once: the last time that it certainly exists. */
  readonly beforeGone?: (type: ResourceType, root: KubeObject) => Promise<void>
  /** Whether this process still leads; always true when absent. */
  readonly mayAct?: () => boolean
  readonly workers?: number
  /** Whether this process handles the root; every root when absent. Never changes for a root. */
  readonly selects?: (root: KubeObject) => boolean
}

const WORKERS = 8
/** Every root is reconciled at least this often; spread by half of it. */
const RESYNC_MILLISECONDS = 600_000
/** The longest back-off while a dependency is unavailable. */
const UNAVAILABLE_MAXIMUM_MILLISECONDS = 30_000
/** How often a plan may repeat itself for an unchanged root; after that it waits longer each time. */
const REPEATS_TOLERATED = 10
const REPEATED_MAXIMUM_MILLISECONDS = 30_000
/** A reconcile that still fails this long after its operation's deadline ends the operation without the reconciler. */
const OVERDUE_GRACE_MILLISECONDS = 60_000

export interface Controller {
  readonly name: string
  /** Runs from the time that its caches are ready until the signal aborts, then finishes the started reconciles. */
  run(signal: AbortSignal): Promise<void>
}

/** The controller of a reconciler. It requests the caches that it needs, so create it before you await them. */
export const openController = <Spec, Status, Observed>(
  reconciler: Reconciler<Spec, Status, Observed>,
  options: ControllerOptions,
): Controller => new ReconcileLoop(reconciler, options)

class ReconcileLoop<Spec, Status, Observed> implements Controller {
  readonly name: string
  readonly #reconciler: Reconciler<Spec, Status, Observed>
  readonly #options: ControllerOptions
  readonly #labels: { readonly controller: string }
  readonly #log: Logger
  readonly #roots: Cache<Spec, Status>
  readonly #watched: readonly (Pick<Watch, 'toKeys'> & { readonly cache: Cache })[]
  readonly #interpreter: Interpreter
  /** The actions of a root's newest plan, and how often in a row it did exactly these to the same version of the
   *  root. */
  readonly #repeats = new Map<string, { readonly what: string; readonly count: number }>()
  /** Of roots, by key. */
  readonly #outages: Outages

  constructor(reconciler: Reconciler<Spec, Status, Observed>, options: ControllerOptions) {
    const { store, caches, clock, operations, events, beforeGone, mayAct = () => true } = options
    const { name, type, finalizer } = reconciler
    this.name = name
    this.#reconciler = reconciler
    this.#options = options
    this.#labels = { controller: name }
    this.#log = options.log.with(this.#labels)
    this.#outages = new Outages({ log: this.#log, clock }, 'reconcile failed')
    this.#roots = caches.of(type)
    this.#watched = reconciler.watches.map((watch) => ({ cache: caches.of(watch.type), toKeys: watch.toKeys }))
    const effects = reconciler.effects as Interpreter['effects'] // they get roots of `type` only
    const answers = openAnswers()
    this.#interpreter = { store, caches, clock, operations, events, finalizer, beforeGone, mayAct, effects, answers }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { caches, clock, random, metrics, workers = WORKERS } = this.#options
    await Promise.race([caches.ready(), aborted(signal)])
    if (signal.aborted) return
    const queue = new WorkQueue({ name: this.name, clock, random, metrics })
    const unsubscribe = this.#subscribe(queue)
    const stop = () => {
      for (const end of unsubscribe) end()
      queue.stop()
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    metrics.workers.set(this.#labels, workers)
    this.#log.info('controller started')
    await Promise.all([this.#resync(queue, signal), ...Array.from({ length: workers }, () => this.#work(queue))])
    this.#log.info('controller stopped')
  }

  /** Queues roots for every change that concerns them; the returned functions stop it. */
  #subscribe(queue: WorkQueue): (() => void)[] {
    return [
      this.#roots.subscribe((change) =>
        queue.add(keyOfRoot(change.object), change.is === 'set' && change.isInitial ? 'low' : 'normal'),
      ),
      ...this.#watched.map(({ cache, toKeys }) =>
        cache.subscribe((change) => {
          if (change.is === 'set' && change.isInitial) return // every root is queued by its own subscription
          const before = change.is === 'set' && change.previous !== undefined ? toKeys(change.previous) : []
          for (const key of new Set([...before, ...toKeys(change.object)].map(keyText))) queue.add(key)
        }),
      ),
      this.#reconciler.wakes?.((key) => queue.add(keyText(key))) ?? (() => {}),
    ]
  }

  async #resync(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    while (!signal.aborted) {
      await clock.sleep(RESYNC_MILLISECONDS * (1 + random.fraction() / 2), signal)
      if (!signal.aborted) for (const root of this.#roots.list()) queue.add(keyOfRoot(root), 'low')
    }
  }

  async #work(queue: WorkQueue): Promise<void> {
    const { metrics } = this.#options
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      metrics.activeWorkers.inc(this.#labels)
      await this.#reconcile(key, queue)
      metrics.activeWorkers.dec(this.#labels)
      queue.done(key)
    }
  }

  /** One reconcile of a key. Never throws. */
  async #reconcile(key: string, queue: WorkQueue): Promise<void> {
    const { clock, metrics, selects } = this.#options
    const root = this.#roots.get(keyFromText(key))
    if (root === undefined || selects?.(root) === false) {
      this.#repeats.delete(key)
      this.#outages.over(key)
      return queue.forget(key)
    }
    const startedAt = clock.monotonicMilliseconds()
    const planned = clock.now()
    try {
      const result = await this.#traced(key, root)
      this.#outages.over(key)
      queue.forget(key)
      const backoff = this.#backoffOf(key, root, result)
      if (result?.waitSeconds !== undefined) queue.addAfter(key, Math.max(result.waitSeconds * 1000, backoff))
      const outcome = result?.waitSeconds === undefined ? 'success' : 'requeue_after'
      metrics.reconciles.inc({ ...this.#labels, result: outcome })
      const milliseconds = Math.round(clock.monotonicMilliseconds() - startedAt)
      if (result !== undefined && result.done.length > 0)
        this.#log.info('reconciled', { key, did: result.done, milliseconds })
    } catch (error) {
      metrics.reconciles.inc({ ...this.#labels, result: 'error' })
      metrics.errors.inc(this.#labels)
      this.#report(key, error)
      queue.addFailed(key, error instanceof Unavailable ? UNAVAILABLE_MAXIMUM_MILLISECONDS : undefined)
      await this.#endFailing(root, error)
    }
    metrics.reconcileSeconds.observe(this.#labels, (clock.monotonicMilliseconds() - startedAt) / 1000)
    this.#wakeAtDeadline(key, queue, planned)
  }

  /** The minimum pause, in milliseconds, of a root whose plan repeated its actions without any effect on the root: the
   *  actions do not help, and repeating them every second until the deadline would not either. 0 in every other case: a
   *  state that is only read may stay the same, and is read as often as the plan says. */
  #backoffOf(key: string, { metadata }: KubeObject<Spec, Status>, result: Interpretation | undefined): number {
    const done = result?.done.filter((each) => !result.readings.includes(each)) ?? []
    if (done.length === 0) {
      this.#repeats.delete(key)
      return 0
    }
    const what = `${metadata.uid}/${metadata.resourceVersion} ${done.join(', ')}`
    const before = this.#repeats.get(key)
    const count = before?.what === what ? before.count + 1 : 0
    this.#repeats.set(key, { what, count })
    if (count < REPEATS_TOLERATED) return 0
    if (count === REPEATS_TOLERATED)
      this.#log.warn('what the plan does takes no effect; it is tried ever more rarely', { key, did: done })
    return Math.min(1_000 * 2 ** (count - REPEATS_TOLERATED), REPEATED_MAXIMUM_MILLISECONDS)
  }

  /** The attempt as a span of the trace that the root belongs to. An attempt without actions gets no span. */
  async #traced(key: string, root: KubeObject<Spec, Status>): Promise<Interpretation | undefined> {
    const trace = traceOf(root, this.#options.clock.now())
    if (trace === undefined) return this.#attempt(root)
    const active = activeOperation(root)
    const span = startSpan({
      name: `reconcile ${this.name}`,
      parent: trace.traceparent,
      attributes: {
        'svccloud.object': key,
        ...(active === undefined ? {} : { 'svccloud.operation': active.id, 'svccloud.operation.kind': active.kind }),
      },
    })
    try {
      const result = await withSpan(span, () => this.#attempt(root))
      if (result === undefined || result.done.length === 0) return result
      span.setAttribute('svccloud.did', [...result.done])
      span.end()
      return result
    } catch (error) {
      markFailed(span, error)
      span.end()
      throw error
    }
  }

  async #attempt(root: KubeObject<Spec, Status>): Promise<Interpretation | undefined> {
    const owned = await this.#withFinalizer(root)
    if (owned === undefined) return undefined
    if (owned.metadata.deletionTimestamp !== undefined)
      await this.#options.beforeDeletion?.(this.#reconciler.type, owned)
    const now = this.#options.clock.now()
    const observed = await this.#reconciler.observe(owned, now)
    return interpret(this.#reconciler.type, owned, this.#reconciler.plan(owned, observed, now), this.#interpreter)
  }

  /** The root with the reconciler's finalizer; undefined when it is no longer ours. */
  async #withFinalizer(root: KubeObject<Spec, Status>): Promise<KubeObject<Spec, Status> | undefined> {
    const { finalizer, type } = this.#reconciler
    const { finalizers = [], deletionTimestamp, uid, resourceVersion } = root.metadata
    if (finalizer === undefined || finalizers.includes(finalizer)) return root
    if (deletionTimestamp !== undefined) return undefined
    if (!this.#interpreter.mayAct()) throw new Unavailable('the lead of the controllers')
    const written = await this.#options.store.patch(type, keyFromText(keyOfRoot(root)), {
      metadata: { uid, resourceVersion, finalizers: [...finalizers, finalizer] },
    })
    this.#options.caches.apply(type, written)
    return written
  }

  #report(key: string, error: unknown): void {
    if (isLostRace(error)) return this.#log.debug('changed meanwhile', { key, error })
    if (error instanceof ApiError || error instanceof Unavailable) return this.#outages.failed(error, { key }, key)
    this.#options.metrics.panics.inc(this.#labels)
    this.#log.error('reconcile failed by a bug', { key, error })
  }

  /** A plan that was made before the deadline is always followed by one made after it, even if the deadline passed in
   *  between. */
  #wakeAtDeadline(key: string, queue: WorkQueue, planned: Date): void {
    const root = this.#roots.get(keyFromText(key))
    const active = root === undefined ? undefined : activeOperation(root)
    if (active === undefined) return
    const deadline = Date.parse(active.deadlineAt)
    if (planned.getTime() < deadline) queue.addAfter(key, Math.max(0, deadline - this.#options.clock.now().getTime()))
  }

  /** An operation whose reconciler keeps failing ends as failed, so that no client waits for ever: after its deadline,
   *  and at once when repetition cannot help. */
  async #endFailing(root: KubeObject<Spec, Status>, failure: unknown): Promise<void> {
    const { clock, operations } = this.#options
    const current = this.#roots.get(keyFromText(keyOfRoot(root)))
    const active = current === undefined ? undefined : activeOperation(current)
    if (current === undefined || active === undefined || operations === undefined) return
    const isHopeless = failure instanceof RestlessEffect
    if (!isHopeless && clock.now().getTime() < Date.parse(active.deadlineAt) + OVERDUE_GRACE_MILLISECONDS) return
    const progress = progressOf(current)
    const end: Action = {
      do: 'operation',
      id: active.id,
      step: progress?.id === active.id ? progress.step : 'deadline',
      outcome: 'failed',
      error: isHopeless
        ? 'a fault of the platform: what the operation waits for does not come'
        : 'the operation did not end before its deadline',
    }
    try {
      await interpret(this.#reconciler.type, current, [end], this.#interpreter)
    } catch (error) {
      // Retried after the next reconcile that fails, which reports it if nothing helps.
      if (!isLostRace(error))
        this.#log.info('an overdue operation could not be ended', { key: keyOfRoot(current), error })
    }
  }
}

/** Another client changed or deleted the object that the plan was made from. This is expected: the next reconcile plans
 *  from the new state. */
const isLostRace = (error: unknown): boolean => isConflict(error) || isNotFound(error) || isNamespaceTerminating(error)

const keyOfRoot = ({ metadata }: KubeObject): string => keyText(metadata)

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
