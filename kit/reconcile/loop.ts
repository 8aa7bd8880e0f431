/** Runs one reconciler: watches wake keys, workers take them, and each reconcile reads everything anew, plans, and
 *  interprets the plan.
 *  The loop owns what is the same for every reconciler: queueing, back-off, waits, finalizers, deadlines of operations,
 *  resync. */
import { Unavailable } from '../../domain/problem.ts'
import type { Caches } from '../kube/caches.ts'
import { keyFromText, keyText, type KubeObject } from '../kube/object.ts'
import { ApiError, isConflict, isNotFound, type Store } from '../kube/store.ts'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import type { Random } from '../sys/random.ts'
import type { Action } from './action.ts'
import { interpret, type Interpreted, type Interpreter } from './interpret.ts'
import type { ControllerMetrics } from './metrics.ts'
import { activeOperation, progressOf, type Operations } from './operation.ts'
import { WorkQueue } from './queue.ts'
import type { Reconciler } from './reconciler.ts'

export interface ControllerOptions {
  readonly store: Store
  readonly caches: Caches
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ControllerMetrics
  readonly operations?: Operations
  /** Whether this process still leads; always, when absent. */
  readonly mayAct?: () => boolean
  readonly workers?: number
  /** Whether this process looks after the root; every root, when absent. Never changes for a root. */
  readonly selects?: (root: KubeObject) => boolean
}

const WORKERS = 8
/** Every root is reconciled this often at least; spread by half of it. */
const RESYNC_MILLISECONDS = 600_000
/** The longest back-off while a dependency is unavailable. */
const UNAVAILABLE_MAXIMUM_MILLISECONDS = 30_000
/** A reconcile that still fails this long after its operation's deadline ends the operation without the reconciler. */
const OVERDUE_GRACE_MILLISECONDS = 60_000

export interface Controller {
  readonly name: string
  /** Runs from the moment that its caches are ready until the signal aborts, then finishes the reconciles that it has
   *  begun. */
  run(signal: AbortSignal): Promise<void>
}

/** The controller of a reconciler. Asks for the caches it needs, so it is made before they are awaited. */
export function openController<Spec, Status, Observed>(
  reconciler: Reconciler<Spec, Status, Observed>,
  options: ControllerOptions,
): Controller {
  const { store, caches, clock, random, metrics } = options
  const { name, type } = reconciler
  const controller = { controller: name }
  const log = options.log.with(controller)
  const roots = caches.of(type)
  const watched = reconciler.watches.map(({ type: kind, toKeys }) => ({ cache: caches.of(kind), toKeys }))
  const interpreter: Interpreter = {
    store,
    caches,
    clock,
    operations: options.operations,
    finalizer: reconciler.finalizer,
    mayAct: options.mayAct ?? (() => true),
    effects: reconciler.effects as Interpreter['effects'], // they are handed roots of `type` only
  }

  /** The root with the reconciler's finalizer; undefined when it is none of ours any more. */
  async function withFinalizer(root: KubeObject<Spec, Status>): Promise<KubeObject<Spec, Status> | undefined> {
    const { finalizer } = reconciler
    const { finalizers = [], deletionTimestamp, uid, resourceVersion } = root.metadata
    if (finalizer === undefined || finalizers.includes(finalizer)) return root
    if (deletionTimestamp !== undefined) return undefined
    if (!interpreter.mayAct()) throw new Unavailable('the lead of the controllers')
    const written = await store.patch(type, keyFromText(keyOfRoot(root)), {
      metadata: { uid, resourceVersion, finalizers: [...finalizers, finalizer] },
    })
    caches.apply(type, written)
    return written
  }

  async function attempt(root: KubeObject<Spec, Status>): Promise<Interpreted | undefined> {
    const owned = await withFinalizer(root)
    if (owned === undefined) return undefined
    const now = clock.now()
    const observed = await reconciler.observe(owned, now)
    return interpret(type, owned, reconciler.plan(owned, observed, now), interpreter)
  }

  /** One reconcile of a key. Never throws. */
  async function reconcile(key: string, queue: WorkQueue): Promise<void> {
    const root = roots.get(keyFromText(key))
    if (root === undefined || options.selects?.(root) === false) return queue.forget(key)
    const startedAt = clock.monotonicMilliseconds()
    const planned = clock.now()
    try {
      const result = await attempt(root)
      queue.forget(key)
      if (result?.waitSeconds !== undefined) queue.addAfter(key, result.waitSeconds * 1000)
      metrics.reconciles.inc({ ...controller, result: result?.waitSeconds === undefined ? 'success' : 'requeue_after' })
      if (result !== undefined && result.done.length > 0)
        log.info('reconciled', {
          key,
          did: result.done,
          milliseconds: Math.round(clock.monotonicMilliseconds() - startedAt),
        })
    } catch (error) {
      metrics.reconciles.inc({ ...controller, result: 'error' })
      metrics.errors.inc(controller)
      report(key, error)
      queue.addFailed(key, error instanceof Unavailable ? UNAVAILABLE_MAXIMUM_MILLISECONDS : undefined)
      await endOverdue(root)
    }
    metrics.reconcileSeconds.observe(controller, (clock.monotonicMilliseconds() - startedAt) / 1000)
    wakeAtDeadline(key, queue, planned)
  }

  function report(key: string, error: unknown): void {
    if (isConflict(error) || isNotFound(error)) return log.debug('seen too early', { key, error })
    if (error instanceof ApiError || error instanceof Unavailable) return log.warn('reconcile failed', { key, error })
    metrics.panics.inc(controller)
    log.error('reconcile failed by a bug', { key, error })
  }

  /** A plan that was made before the deadline is always followed by one made after it, also when the deadline passed in
   *  between. */
  function wakeAtDeadline(key: string, queue: WorkQueue, planned: Date): void {
    const root = roots.get(keyFromText(key))
    const active = root === undefined ? undefined : activeOperation(root)
    if (active === undefined) return
    const deadline = Date.parse(active.deadlineAt)
    if (planned.getTime() < deadline) queue.addAfter(key, Math.max(0, deadline - clock.now().getTime()))
  }

  /** An operation whose reconciler keeps failing ends as failed, so that no client waits for ever. */
  async function endOverdue(root: KubeObject<Spec, Status>): Promise<void> {
    const current = roots.get(keyFromText(keyOfRoot(root)))
    const active = current === undefined ? undefined : activeOperation(current)
    if (current === undefined || active === undefined || options.operations === undefined) return
    if (clock.now().getTime() < Date.parse(active.deadlineAt) + OVERDUE_GRACE_MILLISECONDS) return
    const progress = progressOf(current)
    const end: Action = {
      do: 'operation',
      id: active.id,
      step: progress?.id === active.id ? progress.step : 'deadline',
      outcome: 'failed',
      error: 'the operation did not end before its deadline',
    }
    try {
      await interpret(type, current, [end], interpreter)
    } catch (error) {
      log.warn('an overdue operation could not be ended', { key: keyOfRoot(current), error })
    }
  }

  async function work(queue: WorkQueue): Promise<void> {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      metrics.activeWorkers.inc(controller)
      await reconcile(key, queue)
      metrics.activeWorkers.dec(controller)
      queue.done(key)
    }
  }

  async function resync(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(RESYNC_MILLISECONDS * (1 + random.fraction() / 2), signal)
      if (!signal.aborted) for (const root of roots.list()) queue.add(keyOfRoot(root), 'low')
    }
  }

  return {
    name,
    async run(signal) {
      await Promise.race([caches.ready(), aborted(signal)])
      if (signal.aborted) return
      const queue = new WorkQueue({ name, clock, random, metrics })
      const unsubscribe = [
        roots.subscribe((change) =>
          queue.add(keyOfRoot(change.object), change.is === 'set' && change.isInitial ? 'low' : 'normal'),
        ),
        ...watched.map(({ cache, toKeys }) =>
          cache.subscribe((change) => {
            if (change.is === 'set' && change.isInitial) return // every root is queued by its own subscription
            const before = change.is === 'set' && change.previous !== undefined ? toKeys(change.previous) : []
            for (const key of new Set([...before, ...toKeys(change.object)].map(keyText))) queue.add(key)
          }),
        ),
        reconciler.wakes?.((key) => queue.add(keyText(key))) ?? (() => {}),
      ]
      const stop = () => {
        for (const end of unsubscribe) end()
        queue.stop()
      }
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      const workers = options.workers ?? WORKERS
      metrics.workers.set(controller, workers)
      log.info('controller started')
      await Promise.all([resync(queue, signal), ...Array.from({ length: workers }, () => work(queue))])
      log.info('controller stopped')
    },
  }
}

const keyOfRoot = ({ metadata }: KubeObject): string => keyText(metadata)

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
