import { expect, test } from 'vitest'
import { listCouponAttempts, redeemCoupon } from '../../db/account/index.ts'
import { systemRandom as random } from '../../kit/sys/random.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()

test('the newest attempts of an account stay, and those of others', async () => {
  const [guesser, other] = [await createAccount(database.db), await createAccount(database.db)]
  const attempt = (accountId: string, second: number) =>
    database.db
      .transaction()
      .execute((tx) => redeemCoupon(tx, { accountId, code: `guess-${second}`, now: new Date(second * 1_000), random }))
  await attempt(other, 0)
  for (let second = 1; second <= 103; second++) await attempt(guesser, second)
  const times = async (accountId: string) =>
    (await listCouponAttempts(database.db, accountId, 1_000)).map(({ at }) => at.getTime() / 1_000)
  expect(await times(guesser)).toEqual(Array.from({ length: 100 }, (_, index) => 103 - index))
  expect(await times(other)).toEqual([0])
})
