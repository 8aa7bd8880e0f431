/** Keeps one component running: starts it as a child process, waits until it is ready, restarts it with back-off when
 *  it exits, and stops it on request. A child always exits when its channel to the supervisor closes, so `kill -9` of
 *  the supervisor ends them all. Because of `detached`, a terminal's Ctrl-C reaches only the supervisor. */
import { type ChildProcess, fork } from 'node:child_process'
import { dirname } from 'node:path'
import { z } from 'zod'
import { backoffMilliseconds, type BackoffLimits } from '../kit/sys/backoff.ts'
import type { Clock } from '../kit/sys/clock.ts'
import { nodeBinary } from '../kit/sys/process.ts'
import type { Random } from '../kit/sys/random.ts'
import { diskFault, FULL_BYTES, type ProcessRecord, StartRefused, startTicksOf } from './kit/data-folder.ts'
import { boundLogFile, lastLogged, openLogFile } from './kit/log-file.ts'

export interface ComponentOptions {
  readonly name: string
  /** The main file, absolute. */
  readonly file: string
  /** Called before every start, when an earlier child has certainly exited. */
  readonly environment: () => Promise<Readonly<Record<string, string | undefined>>>
  readonly logFile: string
}

/** The message of a component that serves: `ready` and its addresses. */
export type ReadyMessage = Readonly<Record<string, unknown>>

export interface SupervisorOptions {
  readonly clock: Clock
  readonly random: Random
  /** Prints one line for people. */
  readonly print: (line: string) => void
  /** Called whenever a child has started or exited. */
  readonly onProcessesChanged: () => void
}

const RESTART_LIMITS: BackoffLimits = { baseMilliseconds: 250, maximumMilliseconds: 10_000 }
/** A child that ran this long is healthy: after its next exit the back-off restarts. */
const HEALTHY_MILLISECONDS = 30_000
const FIRST_START_ATTEMPTS_MAXIMUM = 3
const FIRST_READY_MILLISECONDS = 180_000
const STOP_PATIENCE_MILLISECONDS = 20_000
const LOG_LOOK_MILLISECONDS = 60_000
const ROOM_LOOK_MILLISECONDS = 1_000

/** The message of a component that cannot start until a person changes something: one sentence, and what to do. A retry
 *  is pointless. */
const Refusal = z.object({ refused: z.string() })

const isReady = (message: unknown): message is ReadyMessage =>
  typeof message === 'object' && message !== null && 'ready' in message && message.ready === true

export class Component {
  readonly name: string
  readonly logFile: string
  readonly #options: ComponentOptions
  readonly #supervisor: SupervisorOptions
  readonly #stopping = new AbortController()
  #child: ChildProcess | undefined
  #record: ProcessRecord | undefined
  #running: Promise<void> | undefined
  /** Nothing starts while this is set. */
  #cut: PromiseWithResolvers<void> | undefined
  #life: Promise<unknown> = Promise.resolve()

  constructor(options: ComponentOptions, supervisor: SupervisorOptions) {
    this.name = options.name
    this.logFile = options.logFile
    this.#options = options
    this.#supervisor = supervisor
  }

  get process(): ProcessRecord | undefined {
    return this.#record
  }

  /** Starts the component; returns its first ready message. Throws StartRefused, with the component's last message,
   *  when the start fails. */
  async start(): Promise<ReadyMessage> {
    const { clock } = this.#supervisor
    const first = Promise.withResolvers<ReadyMessage>()
    const cancel = clock.after(FIRST_READY_MILLISECONDS, () => first.reject(new Error('it was not ready in time')))
    this.#running = this.#keepRunning(first.resolve, first.reject)
    try {
      return await first.promise
    } catch (error) {
      await this.stop()
      const full = await this.#diskFault()
      if (full !== undefined) throw new StartRefused(full)
      if (error instanceof StartRefused) throw error
      const reason = error instanceof Error ? error.message : String(error)
      const lastLine = await lastLogged(this.logFile)
      throw new StartRefused(
        `${this.name} did not start: ${reason}${lastLine === '' ? '' : ` (${lastLine})`}. Its log says more: ` +
          this.logFile,
      )
    } finally {
      cancel()
    }
  }

  /** Stops the component permanently: SIGTERM, then SIGKILL. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.restore()
    this.#child?.kill('SIGTERM')
    const cancel = this.#supervisor.clock.after(STOP_PATIENCE_MILLISECONDS, () => this.#child?.kill('SIGKILL'))
    await this.#running
    cancel()
  }

  /** Kills the child at once and starts none until `restore`. Resolves when it has exited. */
  async cut(): Promise<void> {
    this.#cut ??= Promise.withResolvers()
    this.#child?.kill('SIGKILL')
    await this.#life
  }

  restore(): void {
    this.#cut?.resolve()
    this.#cut = undefined
  }

  async #keepRunning(resolve: (message: ReadyMessage) => void, reject: (error: Error) => void): Promise<void> {
    const { clock, random, print } = this.#supervisor
    let failures = 0
    let isServing = false
    while (!this.#stopping.signal.aborted) {
      const startedAt = clock.monotonicMilliseconds()
      let refusal: StartRefused | undefined
      const life = this.#runOnce(
        (message) => {
          isServing = true
          resolve(message)
        },
        (refused) => void (refusal = refused),
      )
      this.#life = life.catch(() => undefined)
      // A failed start counts like an exit of the child: the disk may be full for a while.
      const ended = await life.catch((error: unknown) => {
        if (error instanceof StartRefused) refusal = error
        return error instanceof Error ? error.message : String(error)
      })
      if (this.#stopping.signal.aborted) break
      if (refusal !== undefined && !isServing) return reject(refusal)
      if (this.#cut !== undefined) {
        await this.#cut.promise
        failures = 0
        continue
      }
      failures = clock.monotonicMilliseconds() - startedAt > HEALTHY_MILLISECONDS ? 0 : failures + 1
      if (!isServing && failures >= FIRST_START_ATTEMPTS_MAXIMUM) return reject(new Error(`it ended with ${ended}`))
      const pause = backoffMilliseconds(failures, RESTART_LIMITS, random)
      const full = await this.#diskFault()
      if (full !== undefined) print(full)
      else if (isServing) print(`${this.name} ended with ${ended}; starting it again. Log: ${this.logFile}`)
      await clock.sleep(pause, this.#stopping.signal)
      if (isServing && (await this.#untilThereIsRoom())) failures = 0
    }
    reject(new Error('it was stopped'))
  }

  /** Waits while the disk is full, because a start would fail. Returns whether it waited. */
  async #untilThereIsRoom(): Promise<boolean> {
    for (let hasWaited = false; ; hasWaited = true) {
      if (this.#stopping.signal.aborted || (await this.#diskFault()) === undefined) return hasWaited
      await this.#supervisor.clock.sleep(ROOM_LOOK_MILLISECONDS, this.#stopping.signal)
    }
  }

  /** The full disk is then the reason of any exit, regardless of the child's message. */
  readonly #diskFault = (): Promise<string | undefined> =>
    diskFault(dirname(this.logFile), FULL_BYTES).catch(() => undefined)

  /** Runs the child once; returns a description of its exit. */
  async #runOnce(
    onReady: (message: ReadyMessage) => void,
    onRefused: (refusal: StartRefused) => void,
  ): Promise<string> {
    const over = new AbortController()
    const log = await openLogFile(this.logFile)
    const bounding = this.#keepLogBounded(over.signal)
    try {
      const environment = await this.#options.environment()
      if (this.#stopping.signal.aborted || this.#cut !== undefined) return 'nothing'
      const child = fork(this.#options.file, [], {
        execPath: nodeBinary(),
        execArgv: [],
        detached: true,
        serialization: 'json',
        stdio: ['ignore', log.fd, log.fd, 'ipc'],
        env: { ...environment },
      })
      this.#child = child
      const ended = new Promise<string>((resolve) => {
        child.once('error', (error) => resolve(error.message))
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
      })
      child.on('message', (message) => {
        const { data: refusal } = Refusal.safeParse(message)
        if (refusal !== undefined) onRefused(new StartRefused(refusal.refused))
        if (!isReady(message)) return
        this.#rememberMetrics(message['metrics_url'])
        onReady(message)
      })
      await this.#remember(child.pid)
      const words = await ended
      await this.#remember(undefined)
      return words
    } finally {
      this.#child = undefined
      over.abort()
      await bounding
      await log.close()
    }
  }

  #rememberMetrics(url: unknown): void {
    if (this.#record === undefined || typeof url !== 'string') return
    this.#record = { ...this.#record, metricsUrl: url }
    this.#supervisor.onProcessesChanged()
  }

  async #keepLogBounded(signal: AbortSignal): Promise<void> {
    const { clock, print } = this.#supervisor
    while (!signal.aborted) {
      await boundLogFile(this.logFile).catch((error: unknown) =>
        print(`${this.logFile} could not be cut: ${String(error)}`),
      )
      await clock.sleep(LOG_LOOK_MILLISECONDS, signal)
    }
  }

  async #remember(pid: number | undefined): Promise<void> {
    this.#record = pid === undefined ? undefined : { name: this.name, pid }
    const startTicks = pid === undefined ? undefined : await startTicksOf(pid)
    if (this.#record !== undefined && startTicks !== undefined) this.#record = { ...this.#record, startTicks }
    this.#supervisor.onProcessesChanged()
  }
}
