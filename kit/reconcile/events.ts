/** Kubernetes Events (events.k8s.io/v1): what happened to an object, for people who describe it. They expire after an
 *  hour; nothing reads them to decide. Recording never waits and never fails: an event that cannot be written is
 *  dropped and logged. The name of an event is derived from its content, so that a process that takes over increments
 *  its count instead of creating it again. */
import { createHash } from 'node:crypto'
import { Event, type KubeObject } from '../kube/object.ts'
import { isAlreadyExists, isNamespaceTerminating, isNotFound, type Store } from '../kube/store.ts'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'

export interface EventDraft {
  readonly type: 'Normal' | 'Warning'
  /** The reason, as one CamelCase word of at most 128 characters. */
  readonly reason: string
  /** What was done or tried, of at most 128 characters. */
  readonly action: string
  /** For people; cut at 1024 characters. */
  readonly note: string
  /** For something that happens once, such as the end of an operation: recorded once, however often it is reported.
   *  Without it, each report counts in the series of the event. */
  readonly id?: string
  /** Recorded only when the state lasts: after LASTING_MILLISECONDS, unless another event of the id comes before. */
  readonly isTransient?: boolean
}

export interface EventRecorder {
  /** Returns at once. Events are in the namespace of the object, or in `default` when it has none. */
  record(regarding: KubeObject, event: EventDraft): void
}

export interface EventRecorderOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Which component reports, as a qualified name: `svccloud.dev/controllers`. */
  readonly controller: string
  /** Which process of it. */
  readonly instance: string
}

interface EventObject {
  readonly series?: EventSeries
}
interface EventSeries {
  readonly count: number
  /** RFC 3339 with microseconds. */
  readonly lastObservedTime: string
}

/** The namespace for events of objects without one. */
const CLUSTER_EVENTS_NAMESPACE = 'default'
/** A repeated event is written at most this often; reports in between are counted. */
const SERIES_MILLISECONDS = 60_000
export const LASTING_MILLISECONDS = 30_000
/** Events that this process remembers to count them; the oldest is forgotten, and read again when it returns. */
const REMEMBERED_MAXIMUM = 4_096
/** Maximum of events that wait to be written; others are dropped. */
const WAITING_MAXIMUM = 1_000
const NOTE_LENGTH_MAXIMUM = 1_024
const WORD_LENGTH_MAXIMUM = 128
/** Length of the object's name in the name of an event, which has 253 at most. */
const NAME_LENGTH_MAXIMUM = 220

/** This process's record of an event. */
interface EventRecord {
  writtenAt: number
  /** Reports that are not written yet. */
  uncounted: number
}

export const openEventRecorder = (options: EventRecorderOptions): EventRecorder => new Recorder(options)

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #remembered = new Map<string, EventRecord>()
  /** Cancels an event that may pass, by its id. */
  readonly #transient = new Map<string, () => void>()
  #waiting = 0
  #isDropping = false
  #last: Promise<void> = Promise.resolve()

  constructor(options: EventRecorderOptions) {
    this.#options = options
  }

  record(regarding: KubeObject, event: EventDraft): void {
    const { clock } = this.#options
    const at = clock.now()
    const { id, isTransient = false } = event
    if (id === undefined) return this.#report(regarding, event, at)
    const key = `${regarding.metadata.uid}/${id}`
    if (isTransient && (this.#transient.has(key) || this.#transient.size >= WAITING_MAXIMUM)) return
    this.#transient.get(key)?.()
    this.#transient.delete(key)
    if (!isTransient) return this.#report(regarding, event, at)
    const last = () => {
      this.#transient.delete(key)
      this.#report(regarding, event, at)
    }
    this.#transient.set(key, clock.after(LASTING_MILLISECONDS, last))
  }

  #report(regarding: KubeObject, event: EventDraft, happened: Date): void {
    const { clock, log } = this.#options
    const namespace = regarding.metadata.namespace ?? CLUSTER_EVENTS_NAMESPACE
    const name = nameOf(regarding, event)
    const key = `${namespace}/${name}`
    const known = this.#remembered.get(key)
    const now = clock.monotonicMilliseconds()
    if (known !== undefined && event.id !== undefined) return
    if (known !== undefined) known.uncounted++
    if (known !== undefined && now - known.writtenAt < SERIES_MILLISECONDS) return
    if (this.#waiting >= WAITING_MAXIMUM) return this.#drop(key)
    const remembered = known ?? { writtenAt: now, uncounted: 0 }
    remembered.writtenAt = now
    this.#remember(key, remembered)
    const at = microseconds(happened)
    this.#waiting++
    this.#last = this.#last.then(async () => {
      try {
        await this.#write({ namespace, name }, regarding, event, { at, isKnown: known !== undefined, remembered })
      } catch (error) {
        this.#remembered.delete(key) // the next report retries it
        if (!isNamespaceTerminating(error)) log.info('an event could not be recorded', { key, error })
      } finally {
        this.#waiting--
        if (this.#waiting === 0) this.#isDropping = false
      }
    })
  }

  /** Logged once until every waiting event is written. */
  #drop(key: string): void {
    if (!this.#isDropping) this.#options.log.warn('too many events wait; new ones are dropped', { key })
    this.#isDropping = true
  }

  /** The newest is last, so that the oldest is forgotten first. */
  #remember(key: string, remembered: EventRecord): void {
    this.#remembered.delete(key)
    this.#remembered.set(key, remembered)
    const [oldest] = this.#remembered.keys()
    if (this.#remembered.size > REMEMBERED_MAXIMUM && oldest !== undefined) this.#remembered.delete(oldest)
  }

  async #write(
    key: { readonly namespace: string; readonly name: string },
    regarding: KubeObject,
    event: EventDraft,
    { at, isKnown, remembered }: { readonly at: string; readonly isKnown: boolean; readonly remembered: EventRecord },
  ): Promise<void> {
    const { store } = this.#options
    const reports = isKnown ? remembered.uncounted : 1
    remembered.uncounted = 0
    const before = isKnown ? await this.#seriesOf(key) : undefined
    if (before === undefined)
      try {
        await store.create(Event, { ...this.#bodyOf(regarding, event, at), metadata: key, spec: undefined })
        return
      } catch (error) {
        if (!isAlreadyExists(error)) throw error
        if (event.id !== undefined) return // an earlier process has recorded it
      }
    const { count } = before ?? (await this.#seriesOf(key)) ?? { count: 1 }
    const series: EventSeries = { count: count + reports, lastObservedTime: at }
    try {
      await store.patch(Event, key, { series })
    } catch (error) {
      if (!isNotFound(error)) throw error // it has expired just now
    }
  }

  /** How often the event is known to have happened; undefined when it has expired. */
  async #seriesOf(key: { readonly namespace: string; readonly name: string }): Promise<{ count: number } | undefined> {
    // the fields of an event are at the same level as its metadata
    const known = (await this.#options.store.get(Event, key)) as (KubeObject & EventObject) | undefined
    return known === undefined ? undefined : { count: known.series?.count ?? 1 }
  }

  #bodyOf({ apiVersion, kind, metadata }: KubeObject, { type, reason, action, note }: EventDraft, at: string): object {
    const { controller, instance } = this.#options
    const { namespace, name, uid, resourceVersion } = metadata
    return {
      eventTime: at,
      type,
      reason: reason.slice(0, WORD_LENGTH_MAXIMUM),
      action: action.slice(0, WORD_LENGTH_MAXIMUM),
      note: note.slice(0, NOTE_LENGTH_MAXIMUM),
      regarding: { apiVersion, kind, namespace, name, uid, resourceVersion },
      reportingController: controller,
      reportingInstance: instance.slice(0, WORD_LENGTH_MAXIMUM),
    }
  }
}

/** One name for all equal reports about the same object. */
function nameOf({ kind, metadata: { name, uid = '' } }: KubeObject, event: EventDraft): string {
  const { type, reason, action, note, id } = event
  const text = id === undefined ? [type, action, note].join('\n') : id
  const hash = createHash('sha256').update([kind, uid, reason, text].join('\n')).digest('hex').slice(0, 16)
  return `${name.slice(0, NAME_LENGTH_MAXIMUM)}.${hash}`
}

/** In the format of Kubernetes' type MicroTime. */
const microseconds = (at: Date): string => at.toISOString().replace('Z', '000Z')
