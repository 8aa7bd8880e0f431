/** Which faults a seed throws, and how often. Every seed draws its own subset, so that one kind of fault cannot hide
 *  another for ever; after the chaos everything is calm and liveness must hold. */
import type { DatabaseFaults } from './database.ts'
import type { Scheduler } from './scheduler.ts'
import type { TransportFaults } from './transport.ts'

/** Probabilities per effect. */
interface Rates {
  readonly apiFailsBefore: number
  readonly apiLosesReply: number
  readonly crashAfterApi: number
  readonly watchCut: number
  readonly watchSilent: number
  readonly watchDuplicate: number
  readonly databaseBreaks: number
  readonly commitLost: number
  readonly crashAfterStatement: number
}

const CALM: Rates = {
  apiFailsBefore: 0,
  apiLosesReply: 0,
  crashAfterApi: 0,
  watchCut: 0,
  watchSilent: 0,
  watchDuplicate: 0,
  databaseBreaks: 0,
  commitLost: 0,
  crashAfterStatement: 0,
}

const STRONGEST: Rates = {
  apiFailsBefore: 0.05,
  apiLosesReply: 0.02,
  crashAfterApi: 0.01,
  watchCut: 0.02,
  watchSilent: 0.005,
  watchDuplicate: 0.05,
  databaseBreaks: 0.01,
  commitLost: 0.02,
  crashAfterStatement: 0.004,
}

export interface FaultPlan extends DatabaseFaults, TransportFaults {
  readonly summary: string
  /** From here on nothing fails. */
  calm(): void
}

export interface FaultOptions {
  /** Kills the process (the caller brings it back later). */
  readonly crash: (processName: string) => void
  /** Processes whose death is part of the game; clients are not. */
  readonly mayCrash: (processName: string) => boolean
}

export function drawFaults(scheduler: Scheduler, options: FaultOptions): FaultPlan {
  const { random } = scheduler
  const drawn = Object.fromEntries(
    Object.entries(STRONGEST).map(([name, strongest]) => [
      name,
      random.fraction() < 0.5 ? strongest * random.fraction() : 0,
    ]),
  ) as unknown as Rates // the same keys
  let rates = drawn
  const strikes = (name: keyof Rates): boolean => {
    if (rates[name] === 0 || random.fraction() >= rates[name]) return false
    scheduler.note(`fault ${name}`)
    return true
  }
  const names = Object.entries(drawn)
    .filter(([, rate]) => rate > 0)
    .map(([name, rate]) => `${name}=${rate.toFixed(4)}`)
  return {
    summary: names.length === 0 ? 'none' : names.join(' '),
    calm: () => void (rates = CALM),
    latencyMilliseconds: () => 1 + random.fraction() * (rates === CALM ? 3 : 40),
    failsBefore: () =>
      strikes('apiFailsBefore') ? [409, 429, 500, 503, 0][Math.floor(random.fraction() * 5)] : undefined,
    losesReply: () => strikes('apiLosesReply'),
    crashesAfterRequest: (processName) => options.mayCrash(processName) && strikes('crashAfterApi'),
    watchFault: () =>
      strikes('watchCut')
        ? 'cut'
        : strikes('watchSilent')
          ? 'silent'
          : strikes('watchDuplicate')
            ? 'duplicate'
            : undefined,
    breaksBefore: () => strikes('databaseBreaks'),
    losesCommit: () => strikes('commitLost'),
    crashesAfter: (processName) => options.mayCrash(processName) && strikes('crashAfterStatement'),
  }
}
