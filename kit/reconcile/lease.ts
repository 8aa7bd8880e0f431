/** Leader election by a Lease. Two rules make it safe. Nobody takes a lease that was not released before its full
 *  duration has passed on its own clock since it last observed a change. The holder stops acting well before that,
 *  counted from the instant at which it sent the renewal. Clocks of different machines are never compared; only their
 *  rates must be alike (within a third). */
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import { Gauge, type Registry } from '../sys/metrics.ts'
import type { Random } from '../sys/random.ts'
import { Outages } from '../sys/outages.ts'
import { Lease, type KubeObject, type LeaseSpec } from '../kube/object.ts'
import { isAlreadyExists, isConflict, type Store } from '../kube/store.ts'

export interface ElectionOptions {
  readonly store: Store
  readonly namespace: string
  readonly name: string
  /** Different from that of any other process, ever; never reused after a restart. */
  readonly identity: string
  /** A holder whose process has certainly ended, according to a supervisor: its lease counts as released. */
  readonly endedIdentity?: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly registry: Registry
}

const DURATION_SECONDS = 15
const RENEW_DEADLINE_MILLISECONDS = 10_000
const RETRY_MILLISECONDS = 2_000
/** Requests of a leader may take no longer, so that one which was sent in time has ended before another process may
 *  lead. */
export const LEADER_REQUEST_TIMEOUT_MILLISECONDS = 4_000

export interface Lead {
  /** Aborts when the lead is lost or the process stops. */
  readonly signal: AbortSignal
  /** Exact at every instant, also before `signal` could abort. */
  readonly mayAct: () => boolean
}

/** Waits for the lead, runs `lead` and returns how it ended: `stopped` after the signal (the lease is released once
 *  `lead` has finished, so that the next takes over at once), or `lost` (the rest of `lead` must do nothing more; the
 *  process should end). */
export async function runElected(
  options: ElectionOptions,
  lead: (lead: Lead) => Promise<void>,
  signal: AbortSignal,
): Promise<'stopped' | 'lost'> {
  const { clock, random, name } = options
  const log = options.log.with({ lease: name })
  const isLeader = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process leads',
    labelNames: ['name'],
    registers: [options.registry],
  })
  isLeader.set({ name }, 0)
  const claimant = new Claimant(options)
  const unreached = new Outages({ log, clock }, 'lease not reached')
  const pause = (until: AbortSignal) => clock.sleep(RETRY_MILLISECONDS * (0.9 + random.fraction() / 5), until)

  while (
    !signal.aborted &&
    !(await claimant.claim().then(
      (isClaimed) => (unreached.over(), isClaimed),
      (error: unknown) => (unreached.failed(error), false),
    ))
  )
    await pause(signal)
  if (signal.aborted) return claimant.release().then(() => 'stopped')

  log.info('leading')
  isLeader.set({ name }, 1)
  const ended = new AbortController()
  const over = new AbortController()
  const work = lead({ signal: ended.signal, mayAct: () => claimant.isHeld() }).finally(() => over.abort())
  work.catch(() => {}) // awaited below, when it is time
  signal.addEventListener('abort', () => ended.abort(), { once: true })
  if (signal.aborted) ended.abort()
  while (!over.signal.aborted && claimant.isHeld()) {
    await pause(over.signal)
    if (over.signal.aborted) break
    // The lead is lost before a failure counts as lasting.
    const renewed = claimant.claim().catch((error: unknown) => log.info('lease not renewed', { error }))
    await claimant.untilExpiry(renewed) // a renewal that hangs must not hide that the time is up
  }
  isLeader.set({ name }, 0)
  if (over.signal.aborted) {
    await claimant.release()
    await work
    return 'stopped'
  }
  // The supervisor restarts the process, and metrics report that nobody leads.
  log.info('the lead is lost')
  claimant.abandon()
  ended.abort()
  return 'lost'
}

class Claimant {
  readonly #options: ElectionOptions
  /** The lease as last observed, and since when (monotonic) it has not changed. */
  #observed: { readonly lease: KubeObject<LeaseSpec>; readonly at: number } | undefined
  #heldUntil = Number.NEGATIVE_INFINITY
  #isAbandoned = false

  constructor(options: ElectionOptions) {
    this.#options = options
  }

  isHeld(): boolean {
    return !this.#isAbandoned && this.#options.clock.monotonicMilliseconds() < this.#heldUntil
  }

  /** Waits for the work, at most until the current lease expires. */
  async untilExpiry(work: Promise<unknown>): Promise<void> {
    const { clock } = this.#options
    const over = new AbortController()
    await Promise.race([
      work.finally(() => over.abort()),
      clock.sleep(Math.max(0, this.#heldUntil - clock.monotonicMilliseconds()), over.signal),
    ])
  }

  /** Gives up the lead from now on, even if a renewal that is still under way succeeds. */
  abandon(): void {
    this.#isAbandoned = true
  }

  /** Takes or renews the lease; false while another has it. */
  async claim(): Promise<boolean> {
    const { store, namespace, name, identity, endedIdentity, clock } = this.#options
    const current = await store.get(Lease, { namespace, name })
    const at = clock.monotonicMilliseconds()
    if (current !== undefined) this.#observe(current, at)
    const holder = current?.spec.holderIdentity ?? ''
    const isFree = holder === '' || holder === identity || holder === endedIdentity || this.#isExpired(at)
    if (!isFree) {
      this.#heldUntil = Number.NEGATIVE_INFINITY
      return false
    }
    const renewed = this.#renewal(current?.spec, holder)
    try {
      const written =
        current === undefined
          ? await store.create(Lease, { metadata: { namespace, name }, spec: renewed })
          : await store.replace(Lease, { ...current, spec: renewed })
      this.#observe(written, at)
      this.#heldUntil = at + RENEW_DEADLINE_MILLISECONDS
      return true
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) return false
      throw error
    }
  }

  /** Releases the lease, when it is ours. Best effort: otherwise it expires. */
  async release(): Promise<void> {
    if (!this.isHeld()) return
    this.#heldUntil = Number.NEGATIVE_INFINITY
    const { store, identity, log } = this.#options
    const lease = this.#observed?.lease
    if (lease?.spec.holderIdentity !== identity) return
    try {
      await store.replace(Lease, {
        ...lease,
        spec: { ...this.#renewal(lease.spec, identity), holderIdentity: '', leaseDurationSeconds: 1 },
      })
    } catch (error) {
      log.info('lease not given up: it runs out', { error })
    }
  }

  #observe(lease: KubeObject<LeaseSpec>, at: number): void {
    if (this.#observed?.lease.metadata.resourceVersion !== lease.metadata.resourceVersion)
      this.#observed = { lease, at }
  }

  #isExpired(now: number): boolean {
    if (this.#observed === undefined) return false
    return now - this.#observed.at >= (this.#observed.lease.spec.leaseDurationSeconds ?? DURATION_SECONDS) * 1000
  }

  #renewal(before: LeaseSpec | undefined, holder: string): LeaseSpec {
    const { identity, clock } = this.#options
    const now = clock.now().toISOString().replace('Z', '000Z') // microseconds
    const isOurs = holder === identity
    return {
      holderIdentity: identity,
      leaseDurationSeconds: DURATION_SECONDS,
      renewTime: now,
      acquireTime: isOurs ? (before?.acquireTime ?? now) : now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (isOurs || before === undefined ? 0 : 1),
    }
  }
}
