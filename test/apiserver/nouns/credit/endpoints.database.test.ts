import { beforeAll, expect, test } from 'vitest'
import { checkCoupon } from '../../../../domain/billing/coupon.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { GOOD_PASSWORD, openHarness } from '../../identity/harness.ts'

const database = useDatabase()
let harness: Awaited<ReturnType<typeof openHarness>>
beforeAll(async () => void (harness = await openHarness(database.db)))

const now = new Date('2026-03-01T12:00:00Z')
const facts = {
  isActive: true,
  validFrom: null,
  validUntil: null,
  redemptionsMaximum: null,
  redemptions: 5,
  isRedeemed: false,
}
test.each([
  ['unknown', undefined],
  ['inactive', { ...facts, isActive: false }],
  ['not_yet_valid', { ...facts, validFrom: new Date(now.getTime() + 1) }],
  ['expired', { ...facts, validUntil: now }],
  ['exhausted', { ...facts, redemptionsMaximum: 5 }],
  ['already_redeemed', { ...facts, isRedeemed: true, redemptionsMaximum: 5 }],
  ['applied', { ...facts, validFrom: now, redemptionsMaximum: 6 }],
] as const)('a coupon is %s', (outcome, coupon) => expect(checkCoupon(coupon, now)).toBe(outcome))

const makeCoupon = (code: string, rest: object = {}) =>
  database.db
    .insertInto('coupon')
    .values({
      id: newUuid(systemRandom),
      code,
      label: `Coupon ${code}`,
      amount_cents: 1_000,
      max_redemptions: null,
      credit_days: 30,
      created_at: now,
      ...rest,
    })
    .execute()

test('a coupon gives its credit once; the last redemption goes to one account only', async () => {
  await makeCoupon('spring', { max_redemptions: 1 })
  const people = [
    await harness.signUpAndIn('c1@example.com'),
    await harness.signUpAndIn('c2@example.com'),
    await harness.signUpAndIn('c3@example.com'),
  ]
  const replies = await Promise.all(
    people.map((person) => person.send('POST', '/v1/account/coupons', { body: { code: ' SPRING ' } })),
  )
  expect(replies.map((reply) => [reply.status, reply.body['reason']]).sort()).toEqual([
    [201, undefined],
    [422, 'coupon_exhausted'],
    [422, 'coupon_exhausted'],
  ])
  const winner = people[replies.findIndex((reply) => reply.status === 201)]!
  expect((await winner.send('POST', '/v1/account/coupons', { body: { code: 'spring' } })).body['reason']).toBe(
    'coupon_already_redeemed',
  )
  expect((await winner.send('POST', '/v1/account/coupons', { body: { code: 'nothing' } })).body['reason']).toBe(
    'coupon_unknown',
  )
  const credits = (await winner.send('GET', '/v1/account/credits')).body
  expect(credits).toMatchObject({
    balance_cents: 25_900,
    items: [
      { source: 'coupon', amount_cents: 1_000, state: 'live' },
      { source: 'sign_up', remaining_cents: 24_900 },
    ],
  })
  expect((credits['coupon_outcomes'] as { outcome: string }[]).map(({ outcome }) => outcome).sort()).toEqual([
    'already_redeemed',
    'applied',
    'unknown',
  ])
  harness.clock.move(61 * 86_400)
})

test('a coupon of a sign-up is redeemed silently, and one that cannot be never fails it', async () => {
  await makeCoupon('welcome')
  for (const [email, code, balance] of [
    ['s1@example.com', 'welcome', 25_900],
    ['s2@example.com', 'no such coupon', 24_900],
  ] as const) {
    const browser = harness.openBrowser('203.0.113.80')
    const reply = await browser.send('POST', '/v1/auth/signup', {
      body: { name: 'S', email, password: GOOD_PASSWORD, coupon_code: code },
    })
    expect([reply.status, Object.keys(reply.body)]).toEqual([202, ['detail', 'email']])
    await browser.send('POST', '/v1/auth/login', { body: { email, password: GOOD_PASSWORD } })
    expect((await browser.send('GET', '/v1/account/credits')).body).toMatchObject({ balance_cents: balance })
  }
})
