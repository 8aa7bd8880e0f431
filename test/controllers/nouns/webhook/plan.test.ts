import { expect, test } from 'vitest'
import { type Observed, plan } from '../../../../controllers/nouns/webhook/index.ts'
import type { WebhookRow } from '../../../../db/webhook/index.ts'

const SPEC = { name: 'hook', url: 'https://hooks.example.com/', events: ['server.*', 'audit.entry'], enabled: true }
const ROW: WebhookRow = {
  ...SPEC,
  id: 'hook',
  createdAt: new Date(0),
  failingSince: null,
  pausedAt: null,
  pauseReason: null,
  deliveredAt: null,
  removedAt: null,
  hasSecret: true,
}
const webhook = (metadata: object = {}, status: object = {}) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Webhook',
  metadata: { name: 'hook', ...metadata },
  spec: SPEC,
  status: { ...status },
})
const NOW = new Date('2026-01-01T00:00:00Z')
const doing = (observed: Partial<Observed>, metadata: object = {}, status: object = {}) =>
  plan(webhook(metadata, status), { accountId: 'acct', row: ROW, requests: [], ...observed }, NOW)
const claim = (change: string) =>
  expect.objectContaining({ do: 'effect', name: 'claim', input: { accountId: 'acct', change } })
const DELETING = { deletionTimestamp: '2026-01-01T00:00:00Z' }

test('one without a row is claimed, one with another row is configured', () => {
  expect(doing({ row: undefined })).toContainEqual(claim('create'))
  for (const other of [{ name: 'b' }, { url: 'https://b.example.com/' }, { events: ['server.*'] }, { enabled: false }])
    expect(doing({ row: { ...ROW, ...other } })).toContainEqual(claim('configure'))
})

test('one that is as its row shows what came of its events', () => {
  const [status] = doing({ row: { ...ROW, deliveredAt: new Date('2026-01-01T00:00:01.5Z') } })
  expect(status).toMatchObject({
    do: 'status',
    status: { deliveryState: 'active', deliveredAt: '2026-01-01T00:00:01Z' },
  })
})

test('one that is paused is stalled, and says why', () => {
  const [status] = doing({ row: { ...ROW, pausedAt: new Date(0), pauseReason: 'Gone.' } })
  expect(status).toMatchObject({
    status: { deliveryState: 'paused' },
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'Paused', message: 'Gone.' }),
    ]),
  })
})

test('one without a secret is stalled until somebody rotates it, and looked at soon while it is new', () => {
  const [status, wait] = doing({ row: { ...ROW, hasSecret: false } }, { creationTimestamp: '2025-12-31T23:59:00Z' })
  expect(status).toMatchObject({
    status: { deliveryState: 'no_secret' },
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'Stalled', status: 'True', reason: 'NoSecret' }),
    ]),
  })
  expect(wait).toMatchObject({ do: 'wait', seconds: 5 })
  const [, later] = doing({ row: { ...ROW, hasSecret: false } }, { creationTimestamp: '2025-12-31T23:58:00Z' })
  expect(later).toMatchObject({ do: 'wait', seconds: 60 })
})

test('a deletion that did not come about leaves the row', () =>
  expect(doing({ row: { ...ROW, removedAt: new Date(0) } }).map(({ do: what }) => what)).not.toContain('effect'))

test('a refused claim is shown until it is granted', () => {
  const conditions = [{ type: 'Claimed', status: 'False', reason: 'QuotaExceeded', message: 'Full.' }]
  expect(doing({ row: undefined }, {}, { conditions })).toContainEqual(
    expect.objectContaining({
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Stalled', reason: 'QuotaExceeded' })]),
    }),
  )
})

test('one that is deleted goes when its row has gone', () => {
  expect(doing({}, DELETING)).toContainEqual({ do: 'effect', name: 'remove', input: { accountId: 'acct' } })
  expect(doing({ row: undefined }, DELETING)).toEqual([{ do: 'finalized' }])
})

test('a namespace of no account has no webhooks', () => {
  expect(doing({ accountId: undefined })).toContainEqual(
    expect.objectContaining({
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Stalled', reason: 'NoAccount' })]),
    }),
  )
})
