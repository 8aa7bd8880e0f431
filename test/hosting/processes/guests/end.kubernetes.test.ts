/** A playground ends by the clock of its host, whoever is away. Its guest is never begun here: that takes an image. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { GuestTemplates } from '../../../../hosting/processes/guests/template.ts'
import { probePort } from '../../../../embedded/kit/ports.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { until } from '../../../eventually.ts'
import { type Hosted, newDesired, openHosted, untilState } from '../hosted.ts'

let hosted: Hosted
/** By how much the clock of the host is ahead. */
let ahead = 0
const HOUR = 3_600_000

beforeAll(async () => {
  const templates = { obstacle: async () => '', find: async () => undefined, stop() {} } as unknown as GuestTemplates
  const port = await probePort('127.0.0.1', 0)
  const clock = { ...systemClock, now: () => new Date(Date.now() + ahead) }
  hosted = await openHosted({ clock, guests: { templates, appDomain: 'apps.test', port } })
})
afterAll(() => hosted.end())

test('it ends when its time is over, and leaves no process and no file', async () => {
  const limits = { vcpus: 2, memoryMebibytes: 1_024, storageGibibytes: 4, pods: 20, volumes: 4 }
  const endsAt = new Date(Date.now() + HOUR).toISOString()
  const desired = newDesired({ guest: { name: 'pg-0123456789', endsAt, ...limits } })
  const { reservedBytes } = await hosted.host.offer()
  await hosted.host.ensure(desired)
  const state = await untilState(hosted, desired.id, ({ apiServer }) => apiServer === 'healthy')
  // Without its node it is not ready.
  expect(state.phase).toBe('starting')
  expect((await hosted.host.offer()).reservedBytes).toBeGreaterThan(reservedBytes + limits.memoryMebibytes * 1024 ** 2)
  const pid = hosted.host.pid(desired.id, 'kube-apiserver-0') ?? 0
  expect(pid).toBeGreaterThan(0)
  ahead = HOUR
  await until(
    'its end',
    () => hosted.host.get(desired.id),
    (found) => found === undefined,
  )
  expect(() => process.kill(pid, 0)).toThrow()
  await expect(access(join(hosted.folder, desired.id))).rejects.toThrow()
  expect((await hosted.host.offer()).reservedBytes).toBe(reservedBytes)
})
