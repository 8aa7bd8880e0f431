/** The only place where a plan takes effect. Every action first checks whether it is true already; every write to the
 *  root is conditional on the version that the plan was made from. Throws when an action fails: earlier actions remain,
 *  and the next reconcile plans again from the observed state. */
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import canonicalize from 'canonicalize'
import { isFinal } from '../../domain/operations.ts'
import { Unavailable } from '../../domain/problem.ts'
import type { Caches } from '../kube/caches.ts'
import { keyOf, type KubeObject, type ResourceType } from '../kube/object.ts'
import type { Draft, Store } from '../kube/store.ts'
import type { Clock } from '../sys/clock.ts'
import { inSpan, inSpanOfTrace, markFailed, startSpan } from '../sys/tracing.ts'
import type { Action, OperationAction } from './action.ts'
import { mergeConditions, type KeptCondition } from './conditions.ts'
import type { EventDraft, EventRecorder } from './events.ts'
import { activeOperation, type Progress, progressOf, type Operations, type Stanza } from './operation.ts'
import type { Effect, RootType } from './reconciler.ts'
import type { Answers } from './restless.ts'
import { operationBegunBy, traceAnnotation, traceOf, withOwnTrace } from './trace.ts'
import { missingFields } from './whole-status.ts'

export interface Interpreter {
  readonly store: Store
  readonly caches: Caches
  readonly clock: Clock
  /** Where records of operations are stored; a plan with an operation action and no port is a bug. */
  readonly operations?: Operations | undefined
  readonly effects?: Readonly<Record<string, Effect>> | undefined
  /** The earlier results of effects; nothing is judged when absent. */
  readonly answers?: Answers | undefined
  /** Reports events of the root to people; none when absent. */
  readonly events?: EventRecorder | undefined
  readonly finalizer?: string | undefined
  /** Called before the finalizer is removed, possibly more than once: the last time that the root certainly exists. */
  readonly beforeGone?: ((type: ResourceType, root: KubeObject) => Promise<void>) | undefined
  /** False once another process may have taken over: nothing takes effect any longer. */
  readonly mayAct: () => boolean
}

export interface Interpretation {
  /** The earliest of the plan's waits. */
  readonly waitSeconds: number | undefined
  /** Names of the actions that changed something or may have. */
  readonly done: readonly string[]
  /** Of these, the effects that only read something that changes by itself. */
  readonly readings: readonly string[]
}

/** The hash of the draft that was last applied to an object. It shows whether a draft has lost a field since, which a
 *  comparison of the draft with the object cannot. */
const DRAFT_ANNOTATION = 'svccloud.dev/draft'

/** The hash of the draft, as its plan writes it, that a cached object was found to match. Cached objects never change:
 *  the next version of one is another object, and is compared again. */
const agreedDrafts = new WeakMap<object, string>()

/** Executes one plan for the root. */
export async function interpret(
  type: RootType,
  root: KubeObject,
  actions: readonly Action[],
  interpreter: Interpreter,
): Promise<Interpretation> {
  const execution = new PlanExecution(type, root, interpreter)
  try {
    for (const action of actions) await execution.execute(action)
  } catch (error) {
    await execution.writeStatus().catch(() => {}) // the first error is the important one
    throw error
  }
  await execution.writeStatus()
  return { waitSeconds: execution.waitSeconds, done: execution.done, readings: execution.readings }
}

class PlanExecution {
  readonly #type: RootType
  readonly #in: Interpreter
  #root: KubeObject
  /** The status to write, once a part of it has been decided. */
  #status: Record<string, unknown> | undefined
  /** Whether the plan itself has stated a status, and not only its effects and its operation. */
  #isStated = false
  waitSeconds: number | undefined
  readonly done: string[] = []
  readonly readings: string[] = []

  constructor(type: RootType, root: KubeObject, interpreter: Interpreter) {
    this.#type = type
    this.#root = root
    this.#in = interpreter
  }

  async execute(action: Action): Promise<void> {
    switch (action.do) {
      case 'ensure':
        return this.#ensure(action.type, action.draft)
      case 'remove':
        return this.#remove(action)
      case 'status':
        this.#isStated = true
        return this.#decideStatus(action)
      case 'change':
        return this.#change(action.patch)
      case 'operation':
        return this.#operation(action)
      case 'effect':
        return this.#effect(action)
      case 'finalized':
        return this.#finalized()
      case 'wait':
        this.waitSeconds = Math.min(this.waitSeconds ?? Number.POSITIVE_INFINITY, action.seconds)
    }
  }

  /** Writes the decided status, when it differs from the current one; always a complete status or none. Reports of
   *  effects before the plan states the first status are not written: the effects report again. Throws when the plan
   *  states a status that lacks a required field. */
  async writeStatus(): Promise<void> {
    const wanted = this.#status
    this.#status = undefined
    if (wanted === undefined) return
    const next = plain(wanted)
    const change = patchBetween(this.#root.status ?? {}, next)
    if (change === undefined) return
    const missing = missingFields(this.#type.status, next)
    if (missing.length > 0) {
      if (!this.#isStated) return
      throw new Error(`a plan for ${this.#type.kind} states a status without ${missing.join(', ')}`)
    }
    await this.#writeRoot('status', { status: change }, 'status')
  }

  async #ensure(type: ResourceType, draft: Draft<unknown, unknown>): Promise<void> {
    const known = this.#in.caches.known(type)?.get(draft.metadata)
    const asPlanned = hash('sha256', JSON.stringify(draft), 'base64')
    if (
      known !== undefined &&
      (known.metadata.deletionTimestamp !== undefined || agreedDrafts.get(known) === asPlanned)
    )
      return
    const canonical = hash('sha256', canonicalize(plain(draft)) ?? '')
    if (known !== undefined && known.metadata.annotations?.[DRAFT_ANNOTATION] === canonical && covers(known, draft)) {
      agreedDrafts.set(known, asPlanned)
      return
    }
    this.#act(`ensure ${type.kind}`)
    const own = { ...traceAnnotation(traceOf(this.#root, this.#in.clock.now())), [DRAFT_ANNOTATION]: canonical }
    const marked = {
      ...draft,
      metadata: { ...draft.metadata, annotations: { ...draft.metadata.annotations, ...own } },
    }
    // the content of a draft is an object
    this.#in.caches.apply(type, await this.#in.store.apply(type, marked as Draft<object, object>))
  }

  async #remove({ type, key }: Extract<Action, { do: 'remove' }>): Promise<void> {
    const cache = this.#in.caches.known(type)
    const known = cache?.get(key)
    if (cache !== undefined && (known === undefined || known.metadata.deletionTimestamp !== undefined)) return
    this.#act(`remove ${type.kind}`)
    await this.#in.store.delete(type, key, known?.metadata.uid === undefined ? {} : { uid: known.metadata.uid })
  }

  #decideStatus({ status, conditions = [] }: Extract<Action, { do: 'status' }>): void {
    const generation = this.#root.metadata.generation
    const before = this.#status ?? recordOf(this.#root.status)
    const next: Record<string, unknown> = { ...before, ...status }
    if (generation !== undefined) next['observedGeneration'] = generation
    if (conditions.length > 0)
      // only mergeConditions writes them
      next['conditions'] = mergeConditions((before['conditions'] as KeptCondition[] | undefined) ?? [], conditions, {
        generation,
        now: this.#in.clock.now(),
      })
    this.#status = next
    for (const { isRefusal, type, reason, message } of conditions)
      if (isRefusal === true)
        this.#in.events?.record(this.#root, { type: 'Warning', reason, action: type, note: message })
  }

  async #change(patch: Readonly<Record<string, unknown>>): Promise<void> {
    if (mergePatchChangesNothing(this.#root, patch)) return
    const begun = operationBegunBy(this.#root, patch)
    if (begun === undefined) return this.#writeRoot('change', patch)
    // Changes that people or rules start without a request start their trace here.
    await inSpan({ name: `begin ${begun}`, attributes: { 'svccloud.object': this.#root.metadata.name } }, () =>
      this.#writeRoot('change', withOwnTrace(patch)),
    )
  }

  async #operation(action: OperationAction): Promise<void> {
    const mirror = progressOf({ ...this.#root, status: this.#status ?? this.#root.status })
    if (mirror?.id === action.id && isFinal(mirror.status)) return // what has ended stays as it is
    const isRecorded =
      mirror?.id === action.id &&
      mirror.step === action.step &&
      action.outcome === undefined &&
      mirror.status === 'running'
    if (isRecorded && (action.events ?? []).length === 0) return
    if (this.#in.operations === undefined)
      throw new Error(`a plan for ${this.#type.kind} has an operation action, but nothing records operations`)
    this.#mustAct()
    const stanza = activeOperation(this.#root)
    const progress = await this.#in.operations.record(this.#root, action, this.#in.clock.now())
    const hasBegun = mirror?.id === action.id && mirror.status !== 'pending'
    for (const event of operationEvents(progress, hasBegun)) this.#in.events?.record(this.#root, event)
    if (isDeepStrictEqual(progress, mirror)) return
    if (isFinal(progress.status)) recordSpan(progress, stanza, this.#in.clock.now())
    this.done.push(`operation ${action.outcome ?? action.step}`)
    this.#status = { ...(this.#status ?? recordOf(this.#root.status)), operation: progress }
  }

  async #effect({ name, input }: Extract<Action, { do: 'effect' }>): Promise<void> {
    const effect = this.#in.effects?.[name]
    if (effect === undefined) throw new Error(`a plan for ${this.#type.kind} names the unknown effect ${name}`)
    this.#act(`effect ${name}`)
    const report = await inSpanOfTrace({ name: `effect ${name}` }, () => effect(input, this.#root))
    if (report === undefined) return
    if (report.isReading === true) this.readings.push(`effect ${name}`)
    this.#in.answers?.judge({ uid: this.#root.metadata.uid ?? '', name }, input, report)
    this.#decideStatus({ do: 'status', status: report.status ?? {}, conditions: report.conditions ?? [] })
    for (const event of report.events ?? []) this.#in.events?.record(this.#root, event)
  }

  async #finalized(): Promise<void> {
    await this.writeStatus()
    const { finalizer } = this.#in
    const finalizers = this.#root.metadata.finalizers ?? []
    if (finalizer === undefined || !finalizers.includes(finalizer)) return
    this.#mustAct()
    await this.#in.beforeGone?.(this.#type, this.#root)
    await this.#writeRoot('finalized', { metadata: { finalizers: finalizers.filter((each) => each !== finalizer) } })
  }

  /** A merge patch of the root that applies only to the observed version of the root. */
  async #writeRoot(what: string, patch: Readonly<Record<string, unknown>>, subresource?: 'status'): Promise<void> {
    const { uid, resourceVersion } = this.#root.metadata
    const metadata = { ...recordOf(patch['metadata']), uid, resourceVersion }
    this.#act(what)
    this.#root = await this.#in.store.patch(this.#type, keyOf(this.#root), { ...patch, metadata }, subresource)
    this.#in.caches.apply(this.#type, this.#root)
  }

  #act(what: string): void {
    this.#mustAct()
    this.done.push(what)
  }

  #mustAct(): void {
    if (!this.#in.mayAct()) throw new Unavailable('the lead of the controllers')
  }
}

/** The complete operation as one span of its trace, now that it has ended. */
function recordSpan({ id, kind, status, step }: Progress, stanza: Stanza | undefined, now: Date): void {
  if (stanza?.id !== id || stanza.traceparent === undefined || stanza.requestedAt === undefined) return
  const span = startSpan({
    name: kind,
    parent: stanza.traceparent,
    startedAt: new Date(stanza.requestedAt),
    attributes: {
      'svccloud.operation': id,
      'svccloud.operation.status': status,
      ...(status === 'failed' ? { 'svccloud.operation.step': step } : {}),
    },
  })
  if (status === 'failed') markFailed(span, 'failed')
  span.end(now)
}

/** The events for people about the progress of an operation that was just recorded. */
function operationEvents(progress: Progress, hasBegun: boolean): readonly EventDraft[] {
  const { id, kind, status, step, error, actor } = progress
  const event = (type: EventDraft['type'], reason: string, end: string): EventDraft => ({
    type,
    reason,
    action: kind,
    note: `${kind} ${end}`,
    id,
  })
  return [
    ...(hasBegun || isFinal(status)
      ? []
      : [{ ...event('Normal', 'OperationStarted', `began, requested by ${actor}.`), isTransient: true }]),
    ...(status === 'succeeded' ? [event('Normal', 'OperationSucceeded', 'succeeded.')] : []),
    ...(status === 'cancelled' ? [event('Normal', 'OperationCancelled', `was cancelled at step ${step}.`)] : []),
    ...(status === 'failed' ? [event('Warning', 'OperationFailed', `failed at step ${step}: ${error}`)] : []),
  ]
}

/** In its serialized form: without undefined. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T // its copy

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Never an inherited member of every object, such as `constructor`. */
const own = (record: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined
const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {})

/** The JSON merge patch from one value to the other; undefined when there is no difference. */
export function patchBetween(from: unknown, to: unknown): unknown {
  if (!isRecord(from) || !isRecord(to)) return isDeepStrictEqual(from, to) ? undefined : to
  const patch: Record<string, unknown> = {}
  for (const name of Object.keys(from)) if (own(to, name) === undefined) patch[name] = null
  for (const [name, value] of Object.entries(to)) {
    const before = own(from, name)
    const change = before === undefined ? value : patchBetween(before, value)
    if (change !== undefined) patch[name] = change
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}

function mergePatchChangesNothing(value: unknown, patch: unknown): boolean {
  if (patch === null || patch === undefined) return value === undefined
  if (!isRecord(patch)) return isDeepStrictEqual(value, patch)
  return (
    isRecord(value) &&
    Object.entries(patch).every(
      ([name, change]) => change === undefined || mergePatchChangesNothing(own(value, name), change),
    )
  )
}

/** Whether every field of the draft has its value in the object; lists item by item. */
function covers(object: unknown, draft: unknown): boolean {
  if (draft === undefined) return true
  if (Array.isArray(draft))
    return (
      Array.isArray(object) &&
      object.length === draft.length &&
      draft.every((item, index) => covers(object[index], item))
    )
  if (!isRecord(draft)) return isDeepStrictEqual(object, draft)
  return isRecord(object) && Object.entries(draft).every(([name, value]) => covers(own(object, name), value))
}
