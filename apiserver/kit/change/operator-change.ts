/** Changes by operators: ONE write to Kubernetes, then the entry in the operators' log. All entries wait for the head
 *  of that log, so nobody holds it while waiting for Kubernetes. If this process dies between write and entry, the
 *  reconciler of the resource writes the entry of the operation that it finds; the log accepts each request once. A
 *  change that is no operation has no entry then (docs/security.md, known limits). */
import { isConflict } from '../../../kit/kube/store.ts'
import { conflict, type ResourceReference } from '../../../domain/problem.ts'
import { requireStaffLog } from '../../../db/staff/index.ts'
import { type AuditFacts, throughOutage } from './audit.ts'
import { auditStaff, type OperatorAct } from './staff-audit.ts'
import type { Parts } from '../parts.ts'

const WRITE_ATTEMPTS_MAXIMUM = 5

export interface OperatorChange<T> {
  readonly resource: ResourceReference
  readonly audit: AuditFacts
  /** Affected accounts: the entry is written into their chains too. */
  readonly accountIds?: readonly string[]
  /** Called again after a 409: reads and validates again each time, throws a Problem to refuse. */
  readonly write: () => Promise<T>
}

/** Returns what was written. Throws a Problem when the change was refused; nothing has changed then. */
export async function changeAsOperator<T>(
  parts: Pick<Parts, 'db' | 'clock' | 'random'>,
  call: OperatorAct,
  { resource, audit, accountIds = [], write }: OperatorChange<T>,
): Promise<T> {
  await requireStaffLog(parts.db)
  const written = await writeAgainstOthers(resource, write)
  const facts = { resourceId: resource.id, resourceType: resource.type, ...audit }
  await throughOutage(parts, () =>
    parts.db.transaction().execute((tx) => auditStaff(tx, parts, call, facts, accountIds)),
  )
  return written
}

async function writeAgainstOthers<T>(resource: ResourceReference, write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (!isConflict(error)) throw error
      if (attempt >= WRITE_ATTEMPTS_MAXIMUM)
        throw conflict('state_not_allowed', 'The resource is being changed by others. Try again.', { resource })
    }
  }
}
