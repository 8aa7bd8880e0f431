/** Queries of the database whose outage is Unavailable, so that the reconcile is retried and not reported as a bug. */
import { databaseUnavailable } from '../../db/kit/failures.ts'

/** Awaits a query of PostgreSQL. Throws Unavailable when PostgreSQL cannot be reached, so that the reconciler tries
 *  again; refusals pass through. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw databaseUnavailable(error)
  }
}
