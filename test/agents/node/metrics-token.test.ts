/** Metrics of an agent, which name accounts and servers, are for whoever has the token. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openMetricsToken } from '../../../agents/node/serve/metrics-token.ts'
import { startProbes } from '../../../kit/http/probes.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-metrics-'))
  file = join(folder, 'token')
})
afterEach(() => rm(folder, { recursive: true }))

it('the agent shows its metrics for the token of the file alone, also for another one later', async () => {
  await writeFile(file, 'secret-1\n')
  const probes = await startProbes({
    host: '127.0.0.1',
    port: 0,
    metrics: openRegistry({ isProcessWide: false }),
    missing: () => [],
    metricsAccess: openMetricsToken({ file, host: '127.0.0.1' }),
  })
  const statusOf = async (path: string, authorization?: string) =>
    (await fetch(`${probes.url}${path}`, authorization === undefined ? {} : { headers: { authorization } })).status
  try {
    expect(await statusOf('/metrics')).toBe(401)
    expect(await statusOf('/metrics', 'Bearer secret-2')).toBe(401)
    expect(await statusOf('/metrics', 'Bearer secret-1')).toBe(200)
    expect([await statusOf('/livez'), await statusOf('/readyz')]).toEqual([200, 200])
    await writeFile(file, 'secret-2\n')
    expect(await statusOf('/metrics', 'Bearer secret-1')).toBe(401)
    expect(await statusOf('/metrics', 'Bearer secret-2')).toBe(200)
  } finally {
    await probes.stop()
  }
})

it('a file without a token, or none where one is named, opens nothing', async () => {
  const access = openMetricsToken({ file, host: '127.0.0.1' })
  expect(await access('Bearer ')).toBe('unauthenticated')
  expect(await access('Bearer x')).toBe('unauthenticated')
  await writeFile(file, '\n')
  expect(await access(undefined)).toBe('unauthenticated')
})

it.each([
  ['127.0.0.1', 'allowed'],
  ['::1', 'allowed'],
  ['0.0.0.0', 'forbidden'],
  ['192.0.2.7', 'forbidden'],
])('without a file metrics that are served at %s are %s', async (host, expected) => {
  expect(await openMetricsToken({ file: undefined, host })('Bearer x')).toBe(expected)
})
