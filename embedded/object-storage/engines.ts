/** The engines of all tenants. The first request for a tenant starts its engine. An engine is stopped when nobody has
 *  used it for a while, and restarted after a failure. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Cells } from './cells.ts'
import type { StorageEngine, EngineKey } from './engine.ts'
import { EngineLife, type Live } from './engine-life.ts'
import type { Resident } from './places.ts'
import { S3Refusal, slowDown } from './request.ts'

/** An engine that keeps running until it is released, unless it fails. */
export interface EngineLease {
  /** Path of its socket. */
  readonly socketPath: string
  /** Reports the status of its response to a request. */
  answered(status: number): void
  release(): void
}

export interface Engines {
  /** Starts the tenant's engine if it does not run. Throws the Refusal. */
  hold(id: string): Promise<EngineLease>
  /** Size of an object of the tenant; undefined when it does not exist. */
  sizeOf(id: string, path: string): Promise<number | undefined>
  /** Moves the tenant's data of earlier versions into its folders. Throws errors that prevent it. */
  ready(id: string): Promise<void>
  /** Changes the tenant's secret. When this resolves, an earlier secret is refused and requests work. */
  tell(resident: Resident, secretAccessKey: string): Promise<void>
  ensureBucket(id: string, name: string): Promise<void>
  /** Why requests of the tenant fail; undefined when no failure is known. */
  fault(id: string): string | undefined
  /** Does the work while the engine is stopped. */
  whileEnded<Result>(id: string, work: () => Promise<Result>): Promise<Result>
  /** Id of its process; undefined when it does not run. */
  pid(id: string): number | undefined
  counts(): EngineCounts
  stop(): Promise<void>
}

export interface EngineCounts {
  readonly live: number
  /** Number of tenants whose requests fail. */
  readonly faulty: number
  /** Number of starts since the start of this process. */
  readonly starts: number
  readonly failures: number
  /** Number of restarts because the file of users was missing. */
  readonly healed: number
}

export interface EnginesOptions {
  readonly cells: Cells
  /** Limit of the running engines. */
  readonly liveMaximum: number
  readonly clock: Clock
  readonly log: Logger
  /** Replaces some of the default times. */
  readonly times?: Partial<typeof TIMES>
}

const TIMES = { idle: 60_000, idleOfInternal: 10_000, look: 20_000 }
/** One in this many places is reserved for tenants of the platform itself. */
const INTERNAL_SHARE = 8
/** Minimum interval between checks that responses cause. */
const DOUBT_MILLISECONDS = 5_000

/** Whether the tenant belongs to the platform itself, by its name. */
const isInternal = (id: string): boolean => /^(?:internal|database-archive)\./.test(id)
const unavailable = (): S3Refusal => new S3Refusal(503, 'ServiceUnavailable', 'Please try again in a moment.')

export const openEngines = (options: EnginesOptions): Engines => new AllEngines(options)

class AllEngines implements Engines {
  readonly #options: EnginesOptions
  readonly #times: typeof TIMES
  readonly #lives = new Map<string, EngineLife>()
  readonly #doubted = new Map<string, number>()
  readonly #stopping = new AbortController()
  readonly #looking: Promise<void>
  /** Number of running and starting engines. */
  #liveCount = 0
  #starts = 0
  #failures = 0
  #healed = 0

  constructor(options: EnginesOptions) {
    this.#options = options
    this.#times = { ...TIMES, ...options.times }
    this.#looking = this.#keepLooking()
  }

  async hold(id: string): Promise<EngineLease> {
    const { live, release } = await this.#holdLive(id)
    return {
      socketPath: live.process.s3,
      answered: (status) => {
        if (status === 500 || status === 403) this.#doubt(id)
      },
      release,
    }
  }

  sizeOf(id: string, path: string): Promise<number | undefined> {
    return this.#using(id, (engine, key) => engine.sizeOf(key, path))
  }

  ready(id: string): Promise<void> {
    return this.#options.cells.prepare(id)
  }

  async tell(resident: Resident, secretAccessKey: string): Promise<void> {
    const life = this.#lifeOf(resident.id)
    await life.inTurn(async () => {
      await this.#options.cells.keep(resident, secretAccessKey)
      life.forgive()
      await life.tell(this.#keyOf(resident.id))
    })
    await this.#using(resident.id, async () => {})
  }

  ensureBucket(id: string, name: string): Promise<void> {
    return this.#using(id, (engine, key) => engine.ensureBucket(key, name))
  }

  fault(id: string): string | undefined {
    return this.#lives.get(id)?.fault
  }

  whileEnded<Result>(id: string, work: () => Promise<Result>): Promise<Result> {
    const life = this.#lifeOf(id)
    return life.inTurn(async () => {
      await life.end()
      const result = await work()
      if (this.#options.cells.find(id) === undefined) for (const known of [this.#lives, this.#doubted]) known.delete(id)
      return result
    })
  }

  pid(id: string): number | undefined {
    return this.#lives.get(id)?.live?.process.pid()
  }

  counts(): EngineCounts {
    const faulty = [...this.#lives.values()].filter(({ fault }) => fault !== undefined).length
    return { live: this.#liveCount, faulty, starts: this.#starts, failures: this.#failures, healed: this.#healed }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#looking
    await Promise.all([...this.#lives.values()].map((life) => life.inTurn(() => life.end())))
  }

  #keyOf(id: string): EngineKey {
    const place = this.#options.cells.find(id)
    if (place === undefined || place.secretAccessKey === null) throw new Error('the platform has not said its key')
    return { accessKeyId: place.accessKeyId, secretAccessKey: place.secretAccessKey }
  }

  #lifeOf(id: string): EngineLife {
    const known = this.#lives.get(id)
    if (known !== undefined) return known
    const { cells, clock, log } = this.#options
    const life = new EngineLife({
      clock,
      keyOf: () => this.#keyOf(id),
      begin: () => cells.start(id),
      idleMilliseconds: isInternal(id) ? this.#times.idleOfInternal : this.#times.idle,
      failed: (error) => {
        this.#failures += 1
        log[life.isResting ? 'warn' : 'info']('the engine of a tenant failed', { tenant: id, error })
      },
      usersLost: () => (this.#healed += 1),
      over: () => (this.#liveCount -= 1),
    })
    this.#lives.set(id, life)
    return life
  }

  async #holdLive(id: string): Promise<{ readonly live: Live; readonly release: () => void }> {
    const life = this.#lifeOf(id)
    for (;;) {
      const { live } = life
      if (live !== undefined) return { live, release: life.hold(live) }
      await life.inTurn(() => this.#start(id, life))
    }
  }

  async #using<Result>(id: string, work: (engine: StorageEngine, key: EngineKey) => Promise<Result>): Promise<Result> {
    const { live, release } = await this.#holdLive(id)
    try {
      return await work(live.engine, this.#keyOf(id))
    } finally {
      release()
    }
  }

  async #start(id: string, life: EngineLife): Promise<void> {
    if (life.live !== undefined) return
    const isTold = (this.#options.cells.find(id)?.secretAccessKey ?? null) !== null
    if (this.#stopping.signal.aborted || life.isResting || !isTold) throw unavailable()
    await life.end()
    await this.#makeRoom(id)
    this.#liveCount += 1
    await life.start().catch(() => {
      throw unavailable()
    })
    this.#starts += 1
  }

  /** Stops idle engines until there is a free place. Throws SlowDown when all are busy. */
  async #makeRoom(id: string): Promise<void> {
    const { liveMaximum } = this.#options
    const reserve = isInternal(id) ? 0 : Math.max(1, Math.floor(liveMaximum / INTERNAL_SHARE))
    while (this.#liveCount >= liveMaximum - reserve) {
      const idle = [...this.#lives.values()]
        .filter(({ live }) => live?.holders === 0)
        .toSorted((one, other) => (one.live?.usedAt ?? 0) - (other.live?.usedAt ?? 0))[0]
      if (idle === undefined) throw slowDown()
      await idle.end()
    }
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#options.clock.sleep(this.#times.look, signal)
      if (!signal.aborted) await Promise.all([...this.#lives.keys()].map((id) => this.#look(id)))
    }
  }

  /** Checks an engine. One that responds incorrectly is stopped, restarted and configured again. */
  async #look(id: string): Promise<void> {
    const life = this.#lives.get(id)
    if (life === undefined) return
    await life.judge()
    if (life.fault !== undefined && life.live === undefined && !life.isResting)
      await this.#using(id, async () => {}).catch(() => {}) // retried at the next check
  }

  #doubt(id: string): void {
    const now = this.#options.clock.monotonicMilliseconds()
    if (now - (this.#doubted.get(id) ?? -Infinity) < DOUBT_MILLISECONDS) return
    this.#doubted.set(id, now)
    void this.#look(id)
  }
}
