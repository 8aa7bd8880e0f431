/** The running programs of one control plane. Each is kept running until it is stopped. */
import { join } from 'node:path'
import { type Daemon, type DaemonOptions, type DaemonParts, startDaemon, tied } from '../../embedded/kit/daemon.ts'
import { boundLogFile } from '../../embedded/kit/log-file.ts'
import { GO_ENVIRONMENT } from '../core/flags.ts'

type Settings = Readonly<Record<string, string>>

export interface ProgramOptions extends Pick<DaemonOptions, 'onPipes' | 'handed'> {
  readonly environment?: Settings
  readonly as?: (command: readonly string[]) => readonly string[]
}

interface Running {
  readonly words: string
  readonly daemon: Daemon
  readonly stopping: AbortController
}

const wordsOf = (command: readonly string[], environment: Settings): string =>
  [...command, ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)].join('\n')

export class RunningPrograms {
  readonly #folder: string
  readonly #parts: DaemonParts
  readonly #running = new Map<string, Running>()

  /** The signal of the parts kills all of them at once, in no order. */
  constructor(folder: string, parts: DaemonParts) {
    this.#folder = folder
    this.#parts = parts
  }

  names(): readonly string[] {
    return [...this.#running.keys()]
  }

  pid(name: string): number | undefined {
    return this.#running.get(name)?.daemon.child()?.pid
  }

  /** Whether it runs with a command other than this, or does not run. */
  isOther(name: string, command: readonly string[], environment: Settings = GO_ENVIRONMENT): boolean {
    return this.#running.get(name)?.words !== wordsOf(command, environment)
  }

  /** Keeps it running with this command; `as` binds it to this process. */
  async start(name: string, command: readonly string[], how: ProgramOptions = {}): Promise<void> {
    const { environment = GO_ENVIRONMENT, as = tied, ...more } = how
    if (!this.isOther(name, command, environment)) return
    await this.stop([name])
    const stopping = new AbortController()
    const daemon = startDaemon(
      {
        ...more,
        name,
        command: as(command),
        folder: this.#folder,
        environment,
        logFile: join(this.#folder, `${name}.log`),
      },
      { ...this.#parts, signal: AbortSignal.any([this.#parts.signal, stopping.signal]) },
    )
    this.#running.set(name, { words: wordsOf(command, environment), daemon, stopping })
  }

  /** Truncates logs that have grown too long. */
  async boundLogs(): Promise<void> {
    for (const name of this.#running.keys()) await boundLogFile(join(this.#folder, `${name}.log`))
  }

  /** Resolves when they have exited. */
  async stop(names: readonly string[]): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        const running = this.#running.get(name)
        if (running === undefined) return
        running.stopping.abort()
        await running.daemon.ended
        this.#running.delete(name)
      }),
    )
  }
}
