/** What a person has set for the portal. */
import { appendAudit } from '../../../db/audit/index.ts'
import {
  findPreferences,
  lockPreferences,
  type StoredPreferences,
  writePreferences,
} from '../../../db/preference/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { etagOf, requireMatch } from '../../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { getPreferences, setPreferences } from '../../../resources/preference/index.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { noun } from '../../kit/noun.ts'

const preferenceEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(getPreferences, async ({ caller }) => answerOf(await findPreferences(parts.db, caller.userId))),
  customerEndpoint(setPreferences, (call) => set(parts, call)),
]

const etagOfStored = (stored: StoredPreferences | undefined): string => etagOf(stored?.generation ?? 0)

const answerOf = (stored: StoredPreferences | undefined): Answer => ({
  status: 200,
  body: {
    preferences: JSON.parse(stored?.preferences ?? '{}') as object, // as it was written
    updated_at: stored?.updatedAt.toISOString() ?? null,
  },
  headers: { etag: etagOfStored(stored) },
})

/** The entry in the audit log says that they were changed, not what they are. */
const set = (parts: IdentityParts, call: Call<typeof setPreferences, Customer>): Promise<Answer> =>
  parts.db.transaction().execute(async (tx) => {
    const { userId } = call.caller
    await lockPreferences(tx, userId)
    const before = await findPreferences(tx, userId)
    requireMatch(call.request, etagOfStored(before))
    const stored = {
      preferences: JSON.stringify(call.body.preferences),
      generation: (before?.generation ?? 0) + 1,
      updatedAt: call.now,
    }
    await writePreferences(tx, userId, stored)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: userId }), parts)
    return answerOf(stored)
  })

export const preference = noun<IdentityParts>({ name: 'preference', endpoints: preferenceEndpoints })
