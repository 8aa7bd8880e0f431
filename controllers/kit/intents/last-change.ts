/** The evidence that an object was changed is deleted with the object: an intent that waits for it is resolved
 *  before. */
import { hasIntent, takeIntent } from '../../../db/change/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import { orUnavailable } from '../outage.ts'
import type { Parts } from '../parts.ts'

/** Writes the audit entry of the object's last change if it is still missing. Does nothing otherwise. */
export async function commitLastChange(
  { db, clock, random }: Pick<Parts, 'db' | 'clock' | 'random'>,
  { metadata }: KubeObject,
): Promise<void> {
  const change = metadata.annotations?.[LAST_CHANGE_ANNOTATION]
  if (change === undefined || !(await orUnavailable(hasIntent(db, change)))) return
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      const entry = await takeIntent(tx, change)
      if (entry !== undefined) await appendAudit(tx, entry, { clock, random })
    }),
  )
}
