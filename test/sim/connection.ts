/** What simulations that are tests have in common: a database, and the one connection to it. */
import type pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { useDatabase } from '../database.ts'
import { connectSimulation } from './simulate.ts'

/** For the tests of the enclosing `describe` or file; ask for it inside tests and hooks only. */
export function useConnection(): () => pg.Client {
  const database = useDatabase()
  let client: pg.Client | undefined
  beforeAll(async () => {
    client = await connectSimulation(database.url)
  })
  afterAll(() => client?.end())
  return () => {
    if (client === undefined) throw new Error('the connection is there while tests and hooks run, not before')
    return client
  }
}
