/** Asks the database; one that is away is Unavailable, so that the reconcile is tried again without being taken for a
 *  bug. */
import { databaseUnavailable } from '../../db/kit/failures.ts'

/** Awaits what PostgreSQL is asked. Throws Unavailable when it cannot be reached, so that the reconciler comes again;
 *  refusals pass. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw databaseUnavailable(error)
  }
}
