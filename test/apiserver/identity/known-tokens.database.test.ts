/** What many clients with tokens cost the database. */
import type { KyselyPlugin } from 'kysely'
import { beforeAll, expect, test } from 'vitest'
import { createKnownTokens } from '../../../apiserver/identity/known-tokens.ts'
import { formatToken } from '../../../kit/sys/token-format.ts'
import { createToken, findTokens, revokeToken } from '../../../db/identity/index.ts'
import type { Database } from '../../../db/kit/open.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { newBase62, newUuid, systemRandom as random } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { movableClock } from '../../kit/http/clock.ts'

const database = useDatabase()
const accountId = newUuid(random)
const userId = newUuid(random)
const texts = Array.from({ length: 50 }, () => formatToken('read', newBase62(random, 40)))
const createdAt = new Date('2026-03-01T12:00:00Z')
const KEPT_MILLISECONDS = 500

beforeAll(async () => {
  const { db } = database
  await db.insertInto('account').values({ id: accountId, name: 'A', created_at: createdAt }).execute()
  await db
    .insertInto('app_user')
    .values({
      id: userId,
      email: 'a@example.com',
      name: null,
      password_hash: null,
      email_verified_at: createdAt,
      own_account_id: accountId,
      active_account_id: accountId,
      created_at: createdAt,
    })
    .execute()
  await db
    .insertInto('membership')
    .values({ account_id: accountId, user_id: userId, role: 'owner', joined_at: createdAt })
    .execute()
  for (const [index, token] of texts.entries())
    await createToken(db, {
      id: newUuid(random),
      accountId,
      userId,
      name: `token ${index}`,
      token,
      scope: 'read',
      allowedCidrs: [],
      createdAt,
      expiresAt: null,
    })
})

/** Of a token its name is known. */
const readNames = (db: Database, clock: Clock) => async (hashes: readonly Buffer[]) =>
  (await findTokens(db, hashes, clock.now())).map(({ secretHash, token }) => ({ secretHash, known: token.name }))

function open() {
  const clock = movableClock(createdAt.toISOString())
  let queries = 0
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      queries += 1
      return result
    },
  }
  const keeping = { clock, keptMilliseconds: KEPT_MILLISECONDS, keptMaximum: 1_000 }
  const known = createKnownTokens({ ...keeping, read: readNames(database.db.withPlugin(counting), clock) })
  const findAll = () => Promise.all(texts.map((text) => known.find(text)))
  /** Those that were answered. */
  return { clock, known, findAll, queries: () => queries }
}
const names = texts.map((_, index) => `token ${index}`)

test('tokens that are asked for together are one query', async () => {
  const { findAll, known, queries } = open()
  expect(await findAll()).toEqual(names)
  expect(queries()).toBe(1)
  expect(await findAll()).toEqual(names)
  expect(await known.find(formatToken('read', '0'.repeat(40)))).toBeUndefined()
  expect(queries()).toBe(2)
})

test('tokens in use are refreshed together, before they are needed', async () => {
  const { clock, findAll, queries } = open()
  await findAll()
  for (let round = 1; round <= 5; round += 1) {
    clock.move(0.3)
    await findAll()
    await expect.poll(queries).toBe(1 + round)
    expect(await findAll()).toEqual(names)
  }
  expect(queries()).toBe(6)
})

test('a revoked token stops within the time that answers are kept, also when it is in use', async () => {
  const { clock, known } = open()
  const text = formatToken('read', newBase62(random, 40))
  const id = newUuid(random)
  await createToken(database.db, {
    id,
    accountId,
    userId,
    name: 'revoked',
    token: text,
    scope: 'read',
    allowedCidrs: [],
    createdAt,
    expiresAt: null,
  })
  expect(await known.find(text)).toBe('revoked')
  clock.move(0.3)
  expect(await known.find(text)).toBe('revoked')
  await revokeToken(database.db, { accountId, id, now: clock.now() })
  clock.move(0.5)
  expect(await known.find(text)).toBeUndefined()
})

test('unused tokens are not refreshed', async () => {
  const { clock, findAll, known, queries } = open()
  await findAll()
  clock.move(6)
  expect(await known.find(texts[0] ?? '')).toBe('token 0')
  expect(queries()).toBe(2)
  clock.move(0.3)
  expect(await known.find(texts[0] ?? '')).toBe('token 0')
  await expect.poll(queries).toBe(3)
})

test('a failure is heard by those who asked, and not kept', async () => {
  const clock = movableClock(createdAt.toISOString())
  let isDown = true
  const failing: KyselyPlugin = {
    transformQuery: ({ node }) => {
      if (isDown) throw new Error('away')
      return node
    },
    transformResult: async ({ result }) => result,
  }
  const keeping = { clock, keptMilliseconds: KEPT_MILLISECONDS, keptMaximum: 10 }
  const known = createKnownTokens({ ...keeping, read: readNames(database.db.withPlugin(failing), clock) })
  await expect(known.find(texts[0] ?? '')).rejects.toThrow('away')
  isDown = false
  expect(await known.find(texts[0] ?? '')).toBe('token 0')
})
