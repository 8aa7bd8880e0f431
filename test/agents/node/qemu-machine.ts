/** Two hosts of real guests, as the contracts of hypervisors ask for them. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openQemu } from '../../../agents/node/drivers/hypervisor/qemu.ts'
import { letPass, type UserRange } from '../../../agents/node/drivers/hypervisor/guest-users.ts'
import type { GuestDefinition } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { probeQemu, QEMU_BINARY } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { openDiskServer } from '../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { bootId } from '../../../agents/node/host.ts'
import { metadataDocument, seedDisk } from '../../../agents/node/serve/metadata.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { eventually } from '../../eventually.ts'
import type { openCephWorld } from './ceph-world.ts'
import { instanceSpec } from './instance-spec.ts'
import { IMAGE_FOLDER, tinyLinux } from './real-host.ts'

export const USER_RANGE = { first: 1_879_048_192, last: 2_147_352_575 }

/** One machine with a folder for its guests, and one for the guests of the host that plays the other end. Disks are in
 *  the cluster where there is one. */
export async function openQemuMachine(cluster?: Awaited<ReturnType<typeof openCephWorld>>) {
  const image = await tinyLinux()
  // Longer than a socket's address may be.
  const folder = await mkdtemp(join(tmpdir(), `svccloud-qemu-${'long-'.repeat(16)}`))
  const boot = (await bootId()) ?? 'unknown'
  const machine = await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId: boot, clock: systemClock })
  const volumes =
    (await cluster?.openHost('alpha')) ??
    (await openQcow2Volumes({
      folder: join(folder, 'volumes'),
      imageFolder: IMAGE_FOLDER,
      server: await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock: systemClock }),
    }))
  const [pool] = volumes.pools
  const place = pool === undefined ? {} : { pool }
  await mkdir(join(folder, 'volumes'), { recursive: true })
  const backups = join(folder, 'backups')
  await mkdir(backups)
  for (const each of [join(folder, 'volumes'), backups]) await letPass(each)
  for (const name of cluster === undefined ? ['boot', 'own-0', 'own-1'] : ['boot'])
    await volumes.create({ name, sizeGibibytes: 1, source: image, ...place })
  const definition = async (name: string, incarnation: number, volume: string): Promise<GuestDefinition> => ({
    name,
    uid: 'uid-1',
    incarnation,
    hostname: 'web-1',
    cores: 1,
    memoryMebibytes: 128,
    boot: image.boot,
    disks: [{ path: await volumes.pathOf(volume), serial: 'boot' }],
    interfaces: [{ macAddress: '52:54:00:12:34:56' }],
    forwardedPorts: [22],
    seed: seedDisk(metadataDocument(instanceSpec({ hostname: 'web-1' })), undefined),
  })
  return {
    folder,
    volumes,
    definition,
    async disk() {
      await volumes.create({ name: 'data', sizeGibibytes: 1, ...place })
      return { path: await volumes.pathOf('data'), serial: 'data', slot: 1 }
    },
    host(number: 0 | 1) {
      const guests = join(folder, `guests-${number}`)
      return {
        guestFolder: (name: string) => join(guests, name),
        /** Which processes of guests inherit. */
        folders: [join(folder, 'volumes'), IMAGE_FOLDER],
        attach: ({ range }: { readonly range: UserRange | undefined } = { range: USER_RANGE }) =>
          openQemu({
            folder: guests,
            binary: QEMU_BINARY,
            machine,
            network: { isOutboundAllowed: true },
            bootId: boot,
            userRange: range,
            fileFolders: () => [join(folder, 'volumes'), backups, IMAGE_FOLDER],
            ceph: cluster?.login,
            migrationHost: '127.0.0.1',
            clock: systemClock,
            log: silentLog,
          }),
        async killGuest(name: string) {
          const pid = Number(await readFile(join(guests, name, 'qemu.pid'), 'utf8'))
          signalProcess(pid, 'SIGKILL')
          await eventually('the end of the process', () => !signalProcess(pid, 0) || undefined)
        },
      }
    },
    settled: <T>(promise: Promise<T>) => promise,
    until: async (isTrue: () => boolean) => void (await eventually('it', () => isTrue() || undefined)),
    close: () => rm(folder, { recursive: true, force: true }),
  }
}
