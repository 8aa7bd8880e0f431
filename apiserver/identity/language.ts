/** The language of new users: that of the browser that they sign up with, until they choose another in the portal. */
import { writePreferences } from '../../db/preference/index.ts'
import type { Tables } from '../../db/tables.ts'
import { acceptedLanguage } from '../../domain/mail/language.ts'
import type { RequestFacts } from '../../kit/http/call.ts'
import type { Transaction } from 'kysely'

/** Nothing for a client that names no language of ours. */
export async function keepLanguage(
  tx: Transaction<Tables>,
  userId: string,
  request: Pick<RequestFacts, 'header'>,
  now: Date,
): Promise<void> {
  const locale = acceptedLanguage(request.header('accept-language'))
  if (locale === undefined) return
  await writePreferences(tx, userId, { preferences: JSON.stringify({ locale }), generation: 1, updatedAt: now })
}
