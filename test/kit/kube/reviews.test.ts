import { expect, test } from 'vitest'
import { Unavailable } from '../../../domain/problem.ts'
import { reviewAccess, reviewToken } from '../../../kit/kube/reviews.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

const answer = (status: number, text: string) => ({
  status,
  headers: {},
  text: async () => text,
  lines: () => {
    throw new Error('nobody reads lines')
  },
})

test.each<[string, Transport]>([
  ['does not answer', () => new Promise(() => {})],
  ['is unreachable', () => Promise.reject(new TypeError('fetch failed'))],
  ['fails', async () => answer(500, 'etcd has no leader')],
  ['answers with something else', async () => answer(200, '<html>')],
])('a cluster that %s is not available, in time', async (_what, kubernetes) => {
  const scheduler = new Scheduler(1)
  const process = new SimulatedProcess('apiserver', scheduler)
  process.begin()
  const reviewing = { kubernetes, clock: process.clock() }
  const attributes = { nonResourceAttributes: { path: '/metrics', verb: 'get' } }
  const failures: unknown[] = []
  for (const asked of [
    reviewToken(reviewing, 'token'),
    reviewAccess(reviewing, { name: 'alice', groups: [] }, attributes),
  ])
    void asked.catch((error: unknown) => failures.push(error))
  await scheduler.runUntil(30_000, () => failures.length === 2)
  expect(failures).toEqual([expect.any(Unavailable), expect.any(Unavailable)])
})

test('a cluster that answers is believed', async () => {
  const process = new SimulatedProcess('apiserver', new Scheduler(1))
  process.begin()
  const said = { authenticated: true, allowed: true, user: { username: 'alice' } }
  const reviewing = { kubernetes: async () => answer(201, JSON.stringify({ status: said })), clock: process.clock() }
  expect(await reviewToken(reviewing, 'token')).toEqual({ name: 'alice', groups: [] })
})
