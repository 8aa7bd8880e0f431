/** A host that boots while its Ceph cluster does not let it in. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { openHostDrivers } from '../../../agents/node/host-drivers.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useCeph } from '../../ceph.ts'

const cluster = useCeph()
const impatient: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / 20, signal),
}
const OTHER_KEY = 'AQDHhgJrgFUZEBAA8UZ3rvAdc/YbzFYu4bKpKA=='

it('starts without the pool, and has it as soon as it is admitted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-host-'))
  await mkdir(join(folder, 'data'))
  const { user, pool, keyring, configuration } = cluster.ceph
  const keyringFile = join(folder, 'keyring')
  await writeFile(keyringFile, `[client.${user}]\nkey = ${OTHER_KEY}\n`)
  const host = await openHostDrivers({
    choice: 'qemu',
    folder: join(folder, 'data'),
    imageFolder: join(folder, 'images'),
    bootId: 'boot',
    guestNetwork: 'isolated',
    migrationHost: '127.0.0.1',
    ceph: { pool, user, keyringFile, configurationFile: configuration },
    clock: impatient,
    random: systemRandom,
    log: silentLog,
  })
  expect([host.volumes.pools, await host.hypervisor.list()]).toEqual([[], []])
  await host.volumes.create({ name: 'own', sizeGibibytes: 1 })
  await writeFile(keyringFile, await readFile(keyring))
  await vi.waitFor(() => expect(host.volumes.pools).toEqual([expect.stringContaining(`.${pool}`)]), { timeout: 60_000 })
  await host.volumes.create({ name: 'shared', sizeGibibytes: 1, pool: host.volumes.pools[0] ?? '' })
  expect((await host.volumes.list()).map(({ name }) => name)).toEqual(['own', 'shared'])
  await host.volumes.remove('shared')
  await host.hypervisor.close()
  await rm(folder, { recursive: true, force: true })
})
