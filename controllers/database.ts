/** Asks the database; one that is away is Unavailable, so that the turn is tried again without being taken for a bug. */
import { databaseUnavailable } from '../db/failures.ts'

export async function asked<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw databaseUnavailable(error)
  }
}
