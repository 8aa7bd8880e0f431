/** A host that boots while its shared storage does not let it in. */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openHostDrivers } from '../../../agents/node/host-drivers.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const impatient: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / 100, signal),
}
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-host-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const open = () =>
  openHostDrivers({
    choice: 'qemu',
    folder: join(folder, 'data'),
    imageFolder: join(folder, 'images'),
    bootId: 'boot',
    guestNetwork: 'isolated',
    migrationHost: '127.0.0.1',
    sharedFolder: join(folder, 'shared'),
    clock: impatient,
    random: systemRandom,
    log: silentLog,
  })

it('starts without it, and has it as soon as it is mounted', async () => {
  await mkdir(join(folder, 'data'))
  const before = await open()
  const { pools } = before.volumes
  expect(pools).toHaveLength(1)
  await before.hypervisor.close()
  await rename(join(folder, 'shared'), join(folder, 'elsewhere'))
  await mkdir(join(folder, 'shared'))

  const host = await open()
  expect(host.volumes.pools).toEqual([])
  expect(await host.hypervisor.list()).toEqual([])
  await rm(join(folder, 'shared'), { recursive: true })
  await rename(join(folder, 'elsewhere'), join(folder, 'shared'))
  await vi.waitFor(() => expect(host.volumes.pools).toEqual(pools), { timeout: 60_000 })
  await host.hypervisor.close()
})
