/** Virtual time for the whole control plane in one Node process. Events are popped in order of time, ties broken by the
 *  seed; after each one every microtask and every tracked real effect (database) is drained before the next. The same
 *  seed therefore gives the same run. A process is a name with an epoch: a crash raises the epoch, and nothing of the
 *  old epoch ever goes on. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'

/** mulberry32: small, fast and good enough to choose faults with. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    fraction: next,
    bytes: (count) => Buffer.from(Array.from({ length: count }, () => Math.floor(next() * 256))),
  }
}

interface Event {
  readonly at: number
  readonly tie: number
  readonly order: number
  /** Whose it is. */
  readonly name: string
  readonly run: () => void
  isCancelled: boolean
}

/** A binary heap by (at, tie, order). */
class EventHeap {
  readonly #events: Event[] = []
  push(event: Event): void {
    this.#events.push(event)
    for (let child = this.#events.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1
      if (!this.#isBefore(child, parent)) break
      this.#swap(child, parent)
      child = parent
    }
  }
  pop(): Event | undefined {
    const first = this.#events[0]
    const last = this.#events.pop()
    if (first === undefined || last === undefined || first === last) return first
    this.#events[0] = last
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1
      const right = left + 1
      let least = parent
      if (left < this.#events.length && this.#isBefore(left, least)) least = left
      if (right < this.#events.length && this.#isBefore(right, least)) least = right
      if (least === parent) return first
      this.#swap(parent, least)
      parent = least
    }
  }
  peek(): Event | undefined {
    return this.#events[0]
  }
  #isBefore(a: number, b: number): boolean {
    const [x, y] = [this.#events[a]!, this.#events[b]!] // both indexes are inside
    return x.at !== y.at ? x.at < y.at : x.tie !== y.tie ? x.tie < y.tie : x.order < y.order
  }
  #swap(a: number, b: number): void {
    const kept = this.#events[a]!
    this.#events[a] = this.#events[b]!
    this.#events[b] = kept
  }
}

const EPOCH_START = Date.UTC(2030, 0, 1)

/** At one instant; the busiest ones have a few dozen. */
const EVENTS_AT_AN_INSTANT_MAXIMUM = 20_000
/** By code that loops without an event, which nothing else can stop. */
const CLOCK_READS_AT_AN_INSTANT_MAXIMUM = 200_000
/** Rounds of the event loop within one event; the longest transactions take a few dozen. */
const ROUNDS_OF_AN_EVENT_MAXIMUM = 100_000
const NAMES_LISTED_MAXIMUM = 3
/** Of a whole run: one that never becomes quiet takes a third of it. */
const STEPS_MAXIMUM = 600_000

/** A run that would never end: something goes on and on without time passing, or far longer than any seed needs. */
export class Endless extends Error {
  constructor(what: string) {
    super(what)
    this.name = 'Endless'
  }
}

export class Scheduler {
  readonly random: Random
  readonly #heap = new EventHeap()
  readonly #digest = createHash('sha256')
  #nowMilliseconds = 0
  #order = 0
  readonly #effects = new Set<Promise<unknown>>()
  readonly #held: { readonly finished: Promise<unknown>; readonly release: () => void }[] = []
  /** Events that ran at this instant, by name. */
  readonly #standing = new Map<string, number>()
  #standingCount = 0
  #clockReads = 0
  #endless: Endless | undefined
  readonly #onNote: ((at: Date, text: string) => void) | undefined
  steps = 0

  /** `onNote` is called with each note. */
  constructor(seed: number, onNote?: (at: Date, text: string) => void) {
    this.random = seededRandom(seed)
    this.#onNote = onNote
  }

  get nowMilliseconds(): number {
    return this.#nowMilliseconds
  }
  now(): Date {
    return new Date(EPOCH_START + this.#nowMilliseconds)
  }

  /** Counts a look at the clock. Throws `Endless` in the middle of the code that looks too often, and the run ends by
   *  it. */
  countClockRead(name: string): void {
    this.#clockReads += 1
    if (this.#clockReads <= CLOCK_READS_AT_AN_INSTANT_MAXIMUM) return
    this.#endless ??= new Endless(`time stands still at ${this.#nowMilliseconds} ms: ${name} goes on and on`)
    throw this.#endless
  }

  /** Ends the run after this event, as one that would never end; `what` says why. */
  giveUp(what: string): void {
    this.#endless ??= new Endless(what)
  }

  /** Runs `work` at a virtual time from now, under the name of whose it is; the answer cancels it. */
  after(milliseconds: number, work: () => void, name = 'the world'): () => void {
    const event: Event = {
      at: this.#nowMilliseconds + Math.max(0, milliseconds),
      tie: this.random.fraction(),
      order: this.#order++,
      name,
      run: work,
      isCancelled: false,
    }
    this.#heap.push(event)
    return () => void (event.isCancelled = true)
  }

  /** Resolves at a virtual time from now. */
  pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.after(milliseconds, resolve))
  }

  /** What an actor does: after a pause of that many milliseconds it does its work, again and again until it is over. */
  async repeat(
    { least, most }: { readonly least: number; readonly most: number },
    isOver: () => boolean,
    work: () => Promise<void>,
  ): Promise<void> {
    for (;;) {
      await this.pause(least + this.random.fraction() * (most - least))
      if (isOver()) return
      await work()
    }
  }

  /** One of the values, as the seed has it; undefined of none. */
  pick<T>(values: readonly T[]): T | undefined {
    return values[Math.floor(this.random.fraction() * values.length)]
  }

  /** Marks a real effect (a database query) so that virtual time stands still until it is over. */
  async track<T>(effect: Promise<T>): Promise<T> {
    const finished = effect.catch(() => {})
    this.#effects.add(finished)
    try {
      return await effect
    } finally {
      this.#effects.delete(finished)
    }
  }

  /** Marks a real effect that other threads compute, so that its answer comes at the same place in every run: after all
   *  effects that are tracked, and those that were held before it. */
  async hold<T>(effect: Promise<T>): Promise<T> {
    const finished = effect.catch(() => {})
    await new Promise<void>((release) => this.#held.push({ finished, release }))
    return effect
  }

  /** Adds to the fingerprint of the run; two runs of one seed must end with the same. */
  note(text: string): void {
    this.#digest.update(`${Math.round(this.#nowMilliseconds)} ${text}\n`)
    this.#onNote?.(this.now(), text)
  }
  fingerprint(): string {
    return this.#digest.copy().digest('hex').slice(0, 16)
  }

  /** Lets everything that can go on without time passing go on. Throws `Endless` when that has no end. */
  async drain(): Promise<void> {
    for (let round = 0; round < ROUNDS_OF_AN_EVENT_MAXIMUM; round += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (this.#effects.size > 0) {
        await Promise.race(this.#effects)
        continue
      }
      const held = this.#held.shift()
      if (held === undefined) return
      await held.finished
      held.release()
    }
    throw new Endless(`time stands still: one effect follows another at ${this.#nowMilliseconds} ms`)
  }

  /** Counts an event. Throws `Endless` when there are more than its instant or the run can have. */
  #count({ at, name }: Event): void {
    this.steps += 1
    if (this.steps > STEPS_MAXIMUM) throw new Endless(`no end after ${STEPS_MAXIMUM} steps`)
    if (at > this.#nowMilliseconds) {
      this.#standing.clear()
      this.#standingCount = 0
      this.#clockReads = 0
    }
    this.#standing.set(name, (this.#standing.get(name) ?? 0) + 1)
    this.#standingCount += 1
    if (this.#standingCount <= EVENTS_AT_AN_INSTANT_MAXIMUM) return
    const most = [...this.#standing].sort(([, a], [, b]) => b - a).slice(0, NAMES_LISTED_MAXIMUM)
    throw new Endless(
      `time stands still at ${at} ms: ${most.map(([name, count]) => `${name} ran ${count} times`).join(', ')}`,
    )
  }

  /** Runs until the virtual instant, or until the condition holds (looked at after each event). Throws `Endless` when
   *  it would never end. */
  async runUntil(
    atMilliseconds: number,
    isDone: () => boolean = () => false,
    afterEach?: () => void,
  ): Promise<boolean> {
    await this.drain()
    while (!isDone()) {
      const next = this.#heap.peek()
      if (next === undefined || next.at > atMilliseconds) {
        this.#nowMilliseconds = Math.max(this.#nowMilliseconds, atMilliseconds)
        return isDone()
      }
      this.#heap.pop()
      if (next.isCancelled) continue
      this.#count(next)
      this.#nowMilliseconds = next.at
      next.run()
      await this.drain()
      if (this.#endless !== undefined) throw this.#endless
      afterEach?.()
    }
    return true
  }
}

/** Thrown to the world when code of a dead epoch would go on; which product code never sees. */
const never = new Promise<never>(() => {})

/** One simulated operating-system process. Everything that it uses is bound to its current epoch. */
export class SimulatedProcess {
  readonly name: string
  readonly #scheduler: Scheduler
  readonly #onCrash: (() => void)[] = []
  epoch = 0
  isRunning = false

  constructor(name: string, scheduler: Scheduler) {
    this.name = name
    this.#scheduler = scheduler
  }

  begin(): void {
    this.epoch += 1
    this.isRunning = true
  }

  crash(): void {
    this.epoch += 1
    this.isRunning = false
    this.#scheduler.note(`crash ${this.name}`)
    for (const clean of this.#onCrash.splice(0)) clean()
  }

  /** Called once when the current epoch ends by a crash (a connection to close, a stream to cut). */
  onCrash(clean: () => void): void {
    this.#onCrash.push(clean)
  }

  /** Whether code that started in the epoch may go on. */
  isAlive(epoch: number): boolean {
    return this.isRunning && this.epoch === epoch
  }

  /** The value, or nothing ever again when the process has died meanwhile. */
  async bound<T>(effect: Promise<T>): Promise<T> {
    const epoch = this.epoch
    try {
      const value = await effect
      return this.isAlive(epoch) ? value : await never
    } catch (error) {
      if (this.isAlive(epoch)) throw error
      return await never
    }
  }

  /** The same object, whose promises are bound. */
  boundTo<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (inner, name, receiver) => {
        const value: unknown = Reflect.get(inner, name, receiver)
        if (typeof value !== 'function') return value
        return (...input: unknown[]) => {
          const result: unknown = value.apply(inner, input)
          return result instanceof Promise ? this.bound(result) : result
        }
      },
    })
  }

  clock(): Clock {
    const epoch = this.epoch
    return {
      now: () => {
        this.#scheduler.countClockRead(this.name)
        return this.#scheduler.now()
      },
      monotonicMilliseconds: () => {
        this.#scheduler.countClockRead(this.name)
        return this.#scheduler.nowMilliseconds
      },
      after: (milliseconds, work) =>
        this.#scheduler.after(milliseconds, () => void (this.isAlive(epoch) && work()), this.name),
      sleep: (milliseconds, signal) =>
        new Promise((resolve) => {
          if (signal?.aborted) return resolve()
          const wake = () => {
            cancel()
            signal?.removeEventListener('abort', wake)
            if (this.isAlive(epoch)) resolve()
          }
          const cancel = this.#scheduler.after(milliseconds, wake, this.name)
          signal?.addEventListener('abort', wake, { once: true })
        }),
    }
  }
}
