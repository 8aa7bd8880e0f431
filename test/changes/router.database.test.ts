/** What the changes of a router's networks claim. */
import { beforeEach, expect, test } from 'vitest'
import { routerChanges } from '../../changes/router.ts'
import { claimNetwork } from '../../db/network/index.ts'
import { findRouter } from '../../db/router/index.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import type { RouterSpec } from '../../resources/router/index.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
const MEANS = { changeId: 'change', caches: { of: () => never() }, clock: systemClock, random: systemRandom }
let accountId: string

function never(): never {
  throw new Error('a claim of a router reads no cache')
}
const spec = (networkIds: readonly string[]): RouterSpec => ({
  zone: 'z1',
  name: 'out',
  natEnabled: false,
  staticRoutes: [],
  labels: {},
  networkIds: [...networkIds],
})
async function claim(name: string, networkIds: readonly string[], before?: readonly string[]): Promise<void> {
  const rules = [routerChanges.create, ...routerChanges.changes]
  const subject = { accountId, id: 'out', facts: undefined, spec: spec(networkIds), before: before && spec(before) }
  await database.db
    .transaction()
    .execute(async (tx) => rules.find((each) => each.name === name)?.claim?.(tx, subject, MEANS))
}
const networks = async () =>
  (await findRouter(database.db, { accountId, routerId: 'out' }))?.networks.map(
    ({ networkId, isLeaving }) => `${networkId}${isLeaving ? ' leaves' : ''}`,
  )

beforeEach(async () => {
  accountId = await createAccount(database.db)
  for (const networkId of ['a', 'b', 'c'])
    await database.db
      .transaction()
      .execute((tx) => claimNetwork(tx, { accountId, networkId, zone: 'z1', name: networkId }, systemRandom))
  await claim('create', ['a', 'b'])
})

test('a request takes what it adds and what it takes out, and leaves alone what another added meanwhile', async () => {
  await claim('attach_network', ['a', 'b', 'c'], ['a', 'b'])
  await claim('detach_network', ['a'], ['a', 'b'])
  expect(await networks()).toEqual(['a', 'b leaves', 'c'])
  await claim('attach_network', ['a', 'b'], ['a'])
  expect(await networks()).toEqual(['a', 'b', 'c'])
})

test('a controller takes what the whole spec says, and more than once costs nothing', async () => {
  for (const _ of [1, 2]) {
    await claim('attach_network', ['b', 'c'])
    expect(await networks()).toEqual(['a leaves', 'b', 'c'])
  }
  await claim('detach_network', ['c'])
  expect(await networks()).toEqual(['a leaves', 'b leaves', 'c'])
})

test('nothing is claimed for a router that has claimed nothing', async () => {
  await database.db.deleteFrom('router_network').where('account_id', '=', accountId).execute()
  await database.db.deleteFrom('router').where('account_id', '=', accountId).execute()
  await claim('attach_network', ['a'], [])
  await claim('enable_nat', ['a'])
  expect(await networks()).toBeUndefined()
})
