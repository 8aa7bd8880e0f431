/** Freezes the file systems of a guest while a point of its disks is taken. A guest whose agent does not freeze in time
 *  is not waited for. Frozen file systems are always thawed: a mark on the disk is written before the freeze, and the
 *  next agent that attaches to the guest thaws it. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../../kit/sys/clock.ts'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { Qmp } from '../drivers/hypervisor/qmp.ts'
import { KeyedMutex } from '../../../kit/sys/mutex.ts'
import { type GuestAgent, GuestAgentFailed, openGuestAgent } from './channel.ts'
import { isThere } from '../../../kit/sys/is-there.ts'

/** Files in the guest's folder. */
export const GUEST_AGENT_FILES = {
  socket: 'agent.sock',
  /** Exists while file systems may be frozen. */
  frozen: 'frozen',
} as const
/** The character device behind the port, under QEMU's name. */
export const GUEST_AGENT_DEVICE = 'agent'

/** From the first message to the agent until everything is frozen. */
const FREEZE_MILLISECONDS = 10_000
const THAW_MILLISECONDS = 10_000
const BACKOFF = { baseMilliseconds: 1_000, maximumMilliseconds: 60_000 }
/** Attempts for a guest that came from another host, which may have frozen it. Most guests have no agent. */
const ARRIVAL_ATTEMPTS = 6

export interface FreezeResult<Result> {
  readonly result: Result
  /** The file systems were frozen from before the work until after it. */
  readonly isFrozen: boolean
}

/** `isFrozen`: the guest reports that its file systems are frozen. */
export type FrozenWork<Result> = (isFrozen: boolean) => Promise<Result>

/** Access to the guest. */
export interface FreezableGuest {
  readonly execute: Qmp['execute']
  /** The guest's folder. */
  readonly folder: string
}

export interface FreezerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Stops the retries. */
  readonly signal: AbortSignal
}

export interface Freezer {
  /** Does the work once, with the file systems of the guest frozen if possible. */
  whileFrozen<Result>(guest: FreezableGuest, work: FrozenWork<Result>): Promise<FreezeResult<Result>>
  /** Thaws in the background what another agent may have left frozen: an earlier agent of this host, or the agent of
   *  the host that the guest came from. */
  recover(folder: string, from: 'this-host' | 'another-host'): void
}

export function openFreezer({ clock, log, signal }: FreezerOptions): Freezer {
  const locks = new KeyedMutex()

  async function ask<Result>(
    folder: string,
    timeoutMilliseconds: number,
    work: (agent: GuestAgent) => Promise<Result>,
  ): Promise<Result> {
    const agent = await openGuestAgent({ socket: join(folder, GUEST_AGENT_FILES.socket), clock, timeoutMilliseconds })
    try {
      return await work(agent)
    } finally {
      agent.close()
    }
  }

  /** Returns how many file systems were frozen. An agent that does not answer in time may still freeze them. */
  const freeze = (folder: string): Promise<number> =>
    ask(folder, FREEZE_MILLISECONDS, async (agent) => {
      await writeDurably(markOf(folder), '')
      return countOf(await agent.execute('guest-fsfreeze-freeze'))
    }).catch(noneWhenFailed)

  const thaw = (folder: string): Promise<number> =>
    ask(folder, THAW_MILLISECONDS, async (agent) => {
      const thawed = countOf(await agent.execute('guest-fsfreeze-thaw'))
      await rm(markOf(folder), { force: true })
      return thawed
    })

  /** Returns whether nothing is left to do. */
  const thawOnce = (folder: string, isMarked: boolean): Promise<boolean> =>
    locks.run(folder, async () => {
      if (isMarked && !(await mayBeFrozen(folder))) return true
      return thaw(folder).then(
        () => true,
        (error: unknown) => {
          if (error instanceof GuestAgentFailed) return error.isGone
          throw error
        },
      )
    })

  async function thawUntilDone(folder: string, attempts: number): Promise<void> {
    const isMarked = attempts === Number.POSITIVE_INFINITY
    for (let failures = 0; failures < attempts && !signal.aborted; failures++) {
      if (await thawOnce(folder, isMarked)) return
      await clock.sleep(Math.min(BACKOFF.baseMilliseconds * 2 ** failures, BACKOFF.maximumMilliseconds), signal)
    }
  }
  const thawLater = (folder: string, attempts: number) =>
    void thawUntilDone(folder, attempts).catch((error: unknown) => log.error('guest may stay frozen', { error }))

  return {
    whileFrozen: ({ execute, folder }, work) =>
      locks.run(folder, async () => {
        const frozen = (await isPortOpen(execute)) ? await freeze(folder) : 0
        let thawed = 0
        try {
          const result = await work(frozen > 0)
          // Some guests thaw by themselves after a time. Then the point counts as not frozen.
          if (await mayBeFrozen(folder)) thawed = await thaw(folder).catch(noneWhenFailed)
          return { result, isFrozen: frozen > 0 && thawed > 0 }
        } finally {
          if (await mayBeFrozen(folder)) thawLater(folder, Number.POSITIVE_INFINITY)
        }
      }),
    recover: (folder, from) => thawLater(folder, from === 'this-host' ? Number.POSITIVE_INFINITY : ARRIVAL_ATTEMPTS),
  }
}

const CharacterDevices = z.array(z.looseObject({ label: z.string(), 'frontend-open': z.boolean() }))

/** Whether a program in the guest has the port open. Without one, nothing can answer. */
async function isPortOpen(execute: Qmp['execute']): Promise<boolean> {
  const devices = CharacterDevices.parse(await execute('query-chardev'))
  return devices.some((device) => device.label === GUEST_AGENT_DEVICE && device['frontend-open'])
}

const markOf = (folder: string): string => join(folder, GUEST_AGENT_FILES.frozen)
const mayBeFrozen = (folder: string): Promise<boolean> => isThere(markOf(folder))

/** Agents return a number of file systems; a guest may send anything. */
const countOf = (answer: unknown): number => (typeof answer === 'number' && answer > 0 ? answer : 0)

function noneWhenFailed(error: unknown): number {
  if (error instanceof GuestAgentFailed) return 0
  throw error
}
