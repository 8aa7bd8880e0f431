/** Somebody deletes namespaces, takes finalizers and deletes what hosts hold, among all other faults: all that must
 *  hold of a world holds. A failing seed is replayed with
 *  `npm run sim -- --first SEED --seeds 1 --accidents --trace`. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

const connection = useConnection()

it.each([1, 2])('loses nothing by accidents in seed %i', async (seed) => {
  const { violations, reached } = await simulate(seed, connection(), { hasAccidents: true })
  expect(violations).toEqual([])
  expect(reached.some((what) => /^fault (namespaceDeleted|finalizersTaken|heldDeleted) /.test(what))).toBe(true)
})
