/** Periodic work of identity: verifies every audit chain hourly, prunes old entries, deletes what can no longer be
 *  used. Any number of replicas may run it; one does the work at a time. */
import { accountsToPrune, accountsToVerify, pruneAudit, verifyAudit } from '../../db/audit/index.ts'
import { forgetOldAttempts, forgetOldEmailTokens, forgetOldSessions } from '../../db/identity/index.ts'
import { forgetIdempotencyKeys, forgetOldRequests } from '../../db/request/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { inTurn } from '../../db/turn/index.ts'
import { readTestimony } from '../nouns/audit/index.ts'
import { AUDIT_RETENTION_DAYS, AUDIT_VERIFY_SECONDS } from '../settings.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import { Outages } from '../../kit/sys/outages.ts'

const POLL_MILLISECONDS = 60_000
const ACCOUNTS_AT_ONCE = 100
const DAY_MILLISECONDS = 86_400_000

export interface UpkeepOptions {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** A chain is verified again when this much time has passed. */
  readonly auditVerifySeconds?: number
  readonly auditRetentionDays?: number
  /** Unseals the checkpoints against which chains are verified. */
  readonly sealing?: Sealing
  /** Where the checkpoints are; nowhere when absent. */
  readonly objectStorage?: ObjectStorageOffer
}

/** Works until the signal aborts. The first verification is immediate. */
export async function runUpkeep(options: UpkeepOptions, signal: AbortSignal): Promise<void> {
  const ageMilliseconds = (options.auditVerifySeconds ?? AUDIT_VERIFY_SECONDS) * 1000
  const outages = new Outages(options, 'upkeep failed')
  const readings = outagesOfReadings(options)
  let isFirst = true
  while (!signal.aborted) {
    try {
      const now = options.clock.now()
      await upkeep(options, new Date(now.getTime() - (isFirst ? 0 : ageMilliseconds)), readings)
      isFirst = false
      outages.over()
    } catch (error) {
      outages.failed(error)
    }
    await options.clock.sleep(POLL_MILLISECONDS, signal)
  }
}

const outagesOfReadings = (options: UpkeepOptions) =>
  new Outages(options, 'chains are not held against their checkpoints')

async function testimonyOf(options: UpkeepOptions, readings: Outages) {
  try {
    const testimony = await readTestimony(options)
    readings.over()
    return testimony
  } catch (error) {
    readings.failed(error)
    return undefined
  }
}

/** One round: chains that were last verified before `verifiedBefore` (never in the future) are verified now. Nothing
 *  when another replica is at it. */
export async function upkeep(
  options: UpkeepOptions,
  verifiedBefore: Date,
  readings = outagesOfReadings(options),
): Promise<void> {
  const { db, clock, log } = options
  const now = clock.now()
  const round = async (): Promise<void> => {
    let reading: ReturnType<typeof testimonyOf> | undefined
    for (let accounts; (accounts = await accountsToVerify(db, verifiedBefore, ACCOUNTS_AT_ONCE)).length > 0; ) {
      reading ??= testimonyOf(options, readings)
      const testimony = await reading
      for (const accountId of accounts) {
        const { status, break: found } = await verifyAudit(db, accountId, clock, testimony?.heads.get(accountId))
        if (status === 'broken')
          log.error('an audit chain is broken', {
            account_id: accountId,
            sequence: found?.sequence,
            reason: found?.reason,
          })
      }
    }
    const retention = new Date(now.getTime() - (options.auditRetentionDays ?? AUDIT_RETENTION_DAYS) * DAY_MILLISECONDS)
    for (const accountId of await accountsToPrune(db, retention, ACCOUNTS_AT_ONCE))
      await pruneAudit(db, accountId, retention)
    await forgetOldSessions(db, now)
    await forgetOldEmailTokens(db, now)
    await forgetOldRequests(db, now)
    await forgetIdempotencyKeys(db, now)
    await forgetOldAttempts(db, new Date(now.getTime() - DAY_MILLISECONDS))
  }
  await inTurn(options, { name: 'upkeep', waitMilliseconds: 0 }, round, () => {})
}
