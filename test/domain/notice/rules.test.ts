import { describe, expect, test } from 'vitest'
import { NOTICES_OF_KIND_MAXIMUM, type NoticeFacts, noticesOf } from '../../../domain/notice/rules.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const DAY = 86_400_000
const inDays = (days: number) => new Date(NOW.getTime() + days * DAY)
const NOTHING: NoticeFacts = {
  standing: null,
  maintenance: [],
  certificates: [],
  tokens: [],
  credits: [],
  quotas: [],
  unverifiedEmail: null,
}
const of = (facts: Partial<NoticeFacts>) => noticesOf({ ...NOTHING, ...facts }, NOW)
const token = (days: number, id = 't') => ({ id, name: 'ci', expiresAt: inDays(days) })
const credit = (days: number) => ({ id: 'c', leftCents: 1_250, expiresAt: inDays(days) })
const certificate = (days: number) => ({
  type: 'load_balancer' as const,
  id: 'lb',
  name: 'front',
  certificate: 'shop',
  expiresAt: inDays(days),
})
const quota = (used: number, limit = 10) => ({ name: 'networks', limit, used })
const work = (action: 'live' | 'cold', days = 1) => ({
  serverId: 's',
  hostname: 'web',
  plannedAt: inDays(days),
  reason: 'New memory.',
  action,
})

test('of nothing there are no notices', () => {
  expect(of({})).toEqual([])
})

test.each([
  ['a token in two weeks', { tokens: [token(14)] }, []],
  ['a token before', { tokens: [token(13)] }, ['warning']],
  ['a token in three days', { tokens: [token(3)] }, ['warning']],
  ['a token before', { tokens: [token(2)] }, ['critical']],
  ['an expired token', { tokens: [token(0)] }, []],
  ['a credit in two weeks', { credits: [credit(14)] }, []],
  ['a credit before', { credits: [credit(13)] }, ['warning']],
  ['an expired credit', { credits: [credit(-1)] }, []],
  ['a certificate in a month', { certificates: [certificate(30)] }, []],
  ['a certificate before', { certificates: [certificate(29)] }, ['warning']],
  ['an expired certificate', { certificates: [certificate(-9)] }, ['critical']],
  ['a quota with room', { quotas: [quota(8)] }, ['info']],
  ['a quota without', { quotas: [quota(10)] }, ['warning']],
  ['live work', { maintenance: [work('live')] }, ['info']],
  ['cold work', { maintenance: [work('cold')] }, ['warning']],
  ['an address', { unverifiedEmail: 'ada@example.com' }, ['warning']],
  ['a suspension', { standing: { reason: 'account_suspended' as const, since: NOW } }, ['critical']],
])('%s', (_what, facts, severities) => {
  expect(of(facts).map(({ severity }) => severity)).toEqual(severities)
})

test('a notice says what it is about, and when', () => {
  expect(of({ credits: [credit(5)] })).toMatchObject([
    { kind: 'credit_expiry', message: 'EUR 12.50 of credit expire soon.', resource: null, at: inDays(5) },
  ])
  expect(of({ certificates: [certificate(-1)] })).toMatchObject([
    { message: 'The certificate "shop" has expired.', resource: { type: 'load_balancer', id: 'lb', name: 'front' } },
  ])
})

describe('an id', () => {
  const idOf = (facts: Partial<NoticeFacts>, now = NOW) => noticesOf({ ...NOTHING, ...facts }, now)[0]?.id
  test('stays while its cause stays, whatever the time and the rest', () => {
    expect(idOf({ tokens: [token(5)] }, inDays(4))).toBe(idOf({ tokens: [token(5)] }))
    expect(idOf({ credits: [{ ...credit(5), leftCents: 1 }] })).toBe(idOf({ credits: [credit(5)] }))
    expect(idOf({ quotas: [quota(9)] })).toBe(idOf({ quotas: [quota(8)] }))
    expect(idOf({ maintenance: [{ ...work('cold'), hostname: 'new' }] })).toBe(idOf({ maintenance: [work('live')] }))
  })
  test('is another for another cause', () => {
    const ids = [
      idOf({ quotas: [quota(8)] }),
      idOf({ quotas: [quota(10)] }),
      idOf({ quotas: [quota(8, 9)] }),
      idOf({ tokens: [token(5)] }),
      idOf({ tokens: [token(5, 'u')] }),
      idOf({ tokens: [token(6)] }),
      idOf({ maintenance: [work('live')] }),
      idOf({ maintenance: [work('live', 2)] }),
      idOf({ standing: { reason: 'account_suspended', since: NOW } }),
      idOf({ standing: { reason: 'account_suspended', since: inDays(1) } }),
      idOf({ unverifiedEmail: 'a@example.com' }),
      idOf({ unverifiedEmail: 'b@example.com' }),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })
})

test('the most urgent come first, and of each kind there are only so many', () => {
  const found = of({
    quotas: [quota(8)],
    tokens: Array.from({ length: NOTICES_OF_KIND_MAXIMUM + 5 }, (_, index) => token(13 - index / 10, `t${index}`)),
    standing: { reason: 'payment_method_required', since: null },
  })
  expect(found.map(({ severity }) => severity)).toEqual(
    found
      .map(({ severity }) => severity)
      .toSorted(
        (one, other) => ['critical', 'warning', 'info'].indexOf(one) - ['critical', 'warning', 'info'].indexOf(other),
      ),
  )
  const tokens = found.filter(({ kind }) => kind === 'token_expiry')
  expect([found[0]?.kind, tokens.length]).toEqual(['standing', NOTICES_OF_KIND_MAXIMUM])
  expect(tokens[0]?.resource?.id).toBe(`t${NOTICES_OF_KIND_MAXIMUM + 4}`)
})
