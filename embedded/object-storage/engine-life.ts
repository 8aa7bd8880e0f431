/** The life of one tenant's engine: starts, stops and changes run one after the other. Its responses to its own user
 *  show whether it is healthy. */
import type { Clock } from '../../kit/sys/clock.ts'
import { type StorageEngine, type EngineKey, openEngine } from './engine.ts'
import type { StartedEngine } from './cells.ts'
import type { EngineProcess } from './spawner.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

/** One run of the engine. */
export interface Live {
  readonly process: EngineProcess
  readonly engine: StorageEngine
  /** Number of current users, and time of the last use. */
  holders: number
  usedAt: number
  /** Consecutive checks without a response. */
  silences: number
  isEnding: boolean
}

export interface LifeOptions {
  readonly clock: Clock
  /** Key of its user. Throws when the platform has not sent it. */
  readonly keyOf: () => EngineKey
  /** Starts its process, with complete folders. Throws when the start fails. */
  readonly begin: () => Promise<StartedEngine>
  /** Idle time after which it is stopped. */
  readonly idleMilliseconds: number
  /** Called for each failure. */
  readonly failed: (error: unknown) => void
  /** Called when it is stopped because its file of users is missing; the next run creates one. */
  readonly usersLost: () => void
  /** Called when a run has ended. */
  readonly over: () => void
}

const FAILURES_MAXIMUM = 5
const FAILURES_MILLISECONDS = 60_000
const START_MILLISECONDS = 10_000
const POLL_MILLISECONDS = 20
/** A busy machine is slow once, but hardly twice in a row. */
const SILENCES_MAXIMUM = 2
const nothing = (): void => {}

export class EngineLife {
  readonly #options: LifeOptions
  #live: Live | undefined
  readonly #turns = new Mutex()
  #failedAt: readonly number[] = []
  #fault: string | undefined
  #cancelIdle = nothing

  constructor(options: LifeOptions) {
    this.#options = options
  }

  /** Undefined while it does not run or is stopping. */
  get live(): Live | undefined {
    return this.#live?.isEnding === false ? this.#live : undefined
  }

  /** Why requests fail; undefined when no failure is known. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** It has failed so often that it is not started for a while. */
  get isResting(): boolean {
    return this.#recentFailures().length >= FAILURES_MAXIMUM
  }

  /** Forgets failures whose cause was removed. */
  forgive(): void {
    this.#failedAt = []
  }

  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#turns.run(work)
  }

  /** Keeps the run from idling out until it is released. */
  hold(live: Live): () => void {
    live.holders += 1
    this.#cancelIdle()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      live.holders -= 1
      if (live.holders > 0) return
      if (live.isEnding) void live.process.forget()
      else this.#rest(live)
    }
  }

  /** Call it in turn, when the engine does not run. Throws why the start failed. */
  async start(): Promise<void> {
    const { clock, keyOf, begin } = this.#options
    let begun: StartedEngine | undefined
    try {
      const key = keyOf()
      const running = (begun = await begin())
      const engine = openEngine({ ...running, clock })
      await this.#whenUp(running, engine, key)
      const live: Live = {
        process: running,
        engine,
        holders: 0,
        usedAt: 0,
        silences: 0,
        isEnding: false,
      }
      this.#live = live
      this.#fault = undefined
      void running.ended.then((how) => this.#over(live, how))
      this.#rest(live)
    } catch (error) {
      begun?.end()
      await begun?.ended
      await begun?.forget()
      this.#failed(error)
      this.#options.over()
      throw error
    }
  }

  /** Stops the engine. Resolves when it does not run. */
  async end(): Promise<void> {
    const live = this.#live
    if (live === undefined) return
    live.isEnding = true
    this.#cancelIdle()
    live.process.end()
    await live.process.ended
    if (this.#live === live) this.#live = undefined
  }

  /** Stops a run that responds incorrectly; returns whether it did. */
  async judge(): Promise<boolean> {
    const { live } = this
    if (live === undefined) return false
    try {
      const missing = await live.process.missing()
      if (missing === 'users') this.#options.usersLost()
      if (missing !== undefined) throw new Error(`the engine has lost its ${missing}`)
      await live.engine.check(this.#options.keyOf())
      live.silences = 0
      if (this.live === live) this.#fault = undefined
      return false
    } catch (error) {
      if (this.live !== live) return false
      const isSilent = error instanceof Error && error.message === 'the engine does not answer'
      live.silences += 1
      if (isSilent && live.silences < SILENCES_MAXIMUM) return false
      this.#failed(error)
      await this.inTurn(() => (this.live === live ? this.end() : Promise.resolve()))
      return true
    }
  }

  /** Updates the engine's key. If the engine does not accept it, it is stopped, and the next start uses the new key. */
  async tell(key: EngineKey): Promise<void> {
    const { live } = this
    if (live === undefined) return
    try {
      await live.engine.ensureUser(key)
      await live.engine.check(key)
    } catch (error) {
      this.#failed(error)
      await this.end()
    }
  }

  async #whenUp(running: EngineProcess, engine: StorageEngine, key: EngineKey): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + START_MILLISECONDS
    let how: string | undefined
    void running.ended.then((text) => {
      how = text
    })
    for (;;) {
      try {
        await engine.ensureUser(key)
        return await engine.check(key)
      } catch (error) {
        if (how !== undefined) throw new Error(`it ended while it started: ${how}`)
        if (clock.monotonicMilliseconds() > deadline) throw error
        await clock.sleep(POLL_MILLISECONDS)
      }
    }
  }

  #over(live: Live, how: string): void {
    const isWanted = live.isEnding
    live.isEnding = true
    if (this.#live === live) {
      this.#live = undefined
      this.#cancelIdle()
    }
    if (!isWanted) this.#failed(new Error(`it ended by itself: ${how}`))
    if (live.holders === 0) void live.process.forget()
    this.#options.over()
  }

  #rest(live: Live): void {
    const { clock, idleMilliseconds } = this.#options
    live.usedAt = clock.monotonicMilliseconds()
    this.#cancelIdle()
    const endIfIdle = () => (this.live === live && live.holders === 0 ? this.end() : Promise.resolve())
    this.#cancelIdle = clock.after(idleMilliseconds, () => void this.inTurn(endIfIdle))
  }

  #failed(error: unknown): void {
    this.#fault = error instanceof Error ? error.message : String(error)
    this.#failedAt = [...this.#recentFailures(), this.#options.clock.monotonicMilliseconds()]
    this.#options.failed(error)
  }

  #recentFailures(): readonly number[] {
    const now = this.#options.clock.monotonicMilliseconds()
    return this.#failedAt.filter((at) => now - at < FAILURES_MILLISECONDS)
  }
}
