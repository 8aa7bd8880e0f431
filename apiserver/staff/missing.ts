/** Resources that are missing although nobody deleted them, and what an operator decides about them, on the machine:
 *  the claims of one are given up, or sweeps continue after much went missing at once. Each decision is recorded in the
 *  log of staff. */
import type { Transaction } from 'kysely'
import { acceptAbsences, countAbsences, listAbsences, orderRemoval } from '../../db/removal/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { appendStaffAudit } from '../../db/staff/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import { auditEntry } from '../kit/change/audit.ts'

interface Parts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}

export interface Decision {
  /** Who decides, and why. */
  readonly by: string
  readonly reason: string
}

const NOBODY = { user_id: null, staff_id: null, token_id: null, token_name: null }

const LINES_MAXIMUM = 1_000

/** A line for each: `KIND/NAMESPACE/NAME`, since when, and whether it stops sweeps. Of more than a thousand, the first,
 *  and how many there are of each kind. */
export async function describeMissing({ db }: Pick<Parts, 'db'>): Promise<readonly string[]> {
  const lines = (await listAbsences(db, { limit: LINES_MAXIMUM })).map(
    ({ kind, namespace, name, foundAt, stopsSweeps }) =>
      `${kind}/${namespace}/${name}  since ${foundAt.toISOString()}${stopsSweeps ? '  stops sweeps' : ''}`,
  )
  if (lines.length < LINES_MAXIMUM) return lines
  const counts = (await countAbsences(db)).map(({ kind, count }) => `${count} of the kind ${kind}`)
  return [...lines, `These are the first ${LINES_MAXIMUM} of ${counts.join(', ')}.`]
}

/** Requests that the next sweep releases the claims of the missing resource, named as `describeMissing` does. Returns
 *  false for a resource that is not missing. */
export async function giveUpMissing(parts: Parts, subject: string, decision: Decision): Promise<boolean> {
  return await parts.db.transaction().execute(async (tx) => {
    const found = (await listAbsences(tx, { name: subject.split('/').at(-1) ?? '' })).find(
      ({ kind, namespace, name }) => `${kind}/${namespace}/${name}` === subject,
    )
    if (found === undefined) return false
    const { kind, namespace, name } = found
    await orderRemoval(tx, { kind, namespace, name, uid: '' }, { ...parts, reason: 'operator' })
    await write(
      tx,
      parts,
      { action: 'missing.give_up', resourceType: kind, resourceId: `${namespace}/${name}` },
      decision,
    )
    return true
  })
}

/** Lets sweeps continue; missing resources remain missing, and keep their claims. */
export async function resumeSweeps(parts: Parts, decision: Decision): Promise<void> {
  await parts.db.transaction().execute(async (tx) => {
    await acceptAbsences(tx)
    await write(tx, parts, { action: 'missing.resume_sweeps', resourceType: 'platform', resourceId: '' }, decision)
  })
}

async function write(
  tx: Transaction<Tables>,
  parts: Parts,
  act: { readonly action: string; readonly resourceType: string; readonly resourceId: string },
  { by, reason }: Decision,
): Promise<void> {
  const entry = auditEntry(
    '',
    { ...NOBODY, actor_email: by, actor_kind: 'operator' },
    { requestId: newUuid(parts.random), sourceIp: '', userAgent: 'npm run staff' },
    { ...act, detail: { reason } },
  )
  await appendStaffAudit(tx, { ...entry, account_id: null }, parts)
}
