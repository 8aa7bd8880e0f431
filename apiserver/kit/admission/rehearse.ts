/** Claims that are only tried: quotas, names and room are validated by the code that claims them. */
import type { Transaction } from 'kysely'
import { rehearse as rehearseIn } from '../../../db/kit/begin.ts'
import type { Tables } from '../../../db/tables.ts'
import type { AdmissionParts } from './kind.ts'

/** Does the work in a transaction that is rolled back. Throws what the work throws. */
export const rehearse = (
  { db }: Pick<AdmissionParts, 'db'>,
  work: (tx: Transaction<Tables>) => Promise<unknown>,
): Promise<void> => rehearseIn(db, work)
