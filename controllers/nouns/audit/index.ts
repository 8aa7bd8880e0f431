/** Checkpoints of the audit log: the newest entry of each chain, stored where a writer of the database cannot change
 *  it. A chain that contradicts its previous checkpoint is broken, and its checkpoint stays as it is. */
import { hasEntry, listHeads, STAFF_CHAIN, verifyAudit, type WitnessedHead } from '../../../db/audit/index.ts'
import { findAuditTenant, internalBucketOf } from '../../../db/internal-tenant/index.ts'
import { accountExists } from '../../../db/server/index.ts'
import { AUDIT_PURPOSE, openAuditStore } from '../../../integrations/object-storage/audit-place.ts'
import {
  type CheckpointHead,
  readCheckpoints,
  type Testimony,
  writeCheckpoint,
} from '../../../integrations/object-storage/checkpoints.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import { openInternalTenant } from '../../kit/internal-tenant.ts'
import type { Parts } from '../../kit/parts.ts'
import { AUDIT_CHECKPOINT_SECONDS } from '../../settings.ts'

export interface CheckpointOptions {
  readonly sealing?: Sealing
  /** Seconds between two checkpoints; an hour when absent. */
  readonly auditCheckpointSeconds?: number
  /** Called with the time at which the newest was written. */
  readonly onCheckpoint?: (at: Date) => void
}
type CheckpointParts = Pick<Parts, 'db' | 'clock' | 'random' | 'log' | 'objectStorage'> & CheckpointOptions

const RETRY_MILLISECONDS = 60_000
const DAY_MILLISECONDS = 86_400_000
const OWNER = 'platform'

/** Writes checkpoints until the signal aborts, where there is object storage and a key to sign with. */
export async function runAuditCheckpoints(parts: CheckpointParts, signal: AbortSignal): Promise<void> {
  const { clock, auditCheckpointSeconds: seconds = AUDIT_CHECKPOINT_SECONDS, onCheckpoint } = parts
  const outages = new Outages(parts, 'no checkpoint of the audit log')
  if (parts.sealing?.isAvailable !== true || zonesOf(parts).length === 0) return
  // The start counts until the store answers: a store that never answers is noticed too.
  onCheckpoint?.(clock.now())
  while (!signal.aborted) {
    let waitMilliseconds = RETRY_MILLISECONDS
    try {
      const at = await checkpointAudit(parts)
      outages.over()
      if (at !== undefined) onCheckpoint?.(at)
      const untilMidnight = DAY_MILLISECONDS - (clock.now().getTime() % DAY_MILLISECONDS)
      waitMilliseconds = Math.min(seconds * 1_000, untilMidnight)
    } catch (error) {
      outages.failed(error)
    }
    await clock.sleep(waitMilliseconds, signal)
  }
}

const zonesOf = ({ objectStorage }: Pick<Parts, 'objectStorage'>): readonly string[] =>
  (objectStorage?.stores ?? []).flatMap(({ zones }) => zones).toSorted()

/** One round. Answers when the newest checkpoint was written; undefined where none can be stored. Throws Unavailable
 *  and StoreFailed. */
export async function checkpointAudit(parts: CheckpointParts): Promise<Date | undefined> {
  const { db, clock, log, objectStorage, sealing } = parts
  const zone = (await findAuditTenant(db))?.zone ?? zonesOf(parts)[0]
  if (zone === undefined || objectStorage === undefined || sealing?.isAvailable !== true) return undefined
  await openInternalTenant({ ...parts, sealing }, { purpose: AUDIT_PURPOSE, owner: OWNER, zone })
  const row = await findAuditTenant(db)
  const store = row && openAuditStore({ objectStorage, sealing, clock }, { ...row, bucket: internalBucketOf(row) })
  if (store === undefined) return undefined
  const now = clock.now()
  const before = await readCheckpoints(store, sealing, now)
  if (before.forged.length > 0) log.error('audit checkpoints that nobody signed', { objects: before.forged })
  const heads = await listHeads(db)
  const broken = await findBroken(parts, before, heads)
  const isFull = before.fullAt === undefined || dayOf(before.fullAt) !== dayOf(now)
  const isDue = before.at === undefined || now.getTime() - before.at.getTime() >= secondsOf(parts) * 1_000
  if (!isFull && !isDue) return before.at
  const good = heads.filter(({ chain }) => !broken.has(chain))
  const named = isFull
    ? [...good, ...broken.values()]
    : good.filter((head) => !isSame(head, before.heads.get(head.chain)))
  await writeCheckpoint(store, { at: now, isFull, heads: named }, { sealing, random: parts.random })
  return now
}

const secondsOf = ({ auditCheckpointSeconds = AUDIT_CHECKPOINT_SECONDS }: CheckpointOptions): number =>
  auditCheckpointSeconds
const dayOf = (at: Date): string => at.toISOString().slice(0, 10)
const isSame = (one: CheckpointHead, other: CheckpointHead | undefined): boolean =>
  one.sequence === other?.sequence && one.entryHash === other.entryHash

/** Chains that contradict their checkpoints, with the entry from the checkpoint. Each is reported as broken. */
async function findBroken(
  { db, clock, log }: CheckpointParts,
  { heads: known }: Testimony,
  heads: readonly CheckpointHead[],
): Promise<ReadonlyMap<string, CheckpointHead & WitnessedHead>> {
  const byChain = new Map(heads.map((head) => [head.chain, head]))
  const broken = new Map<string, CheckpointHead & WitnessedHead>()
  for (const witnessed of known.values()) {
    const { chain } = witnessed
    if (isSame(witnessed, byChain.get(chain)) || (await hasEntry(db, chain, witnessed))) continue
    // The chain of an account is deleted with the account.
    if (chain !== STAFF_CHAIN && !(await accountExists(db, chain))) continue
    broken.set(chain, witnessed)
    const { break: found } = await verifyAudit(db, chain, clock, witnessed)
    log.error('an audit chain is not what its checkpoint says', {
      account_id: chain,
      sequence: found?.sequence,
      reason: found?.reason,
    })
  }
  return broken
}
