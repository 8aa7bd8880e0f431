import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bootId } from '../../../agents/node/host.ts'
import { openQemu } from '../../../agents/node/drivers/hypervisor/qemu.ts'
import { bootsTrial, probeQemu, QEMU_BINARY } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { metadataDocument, seedDisk } from '../../../agents/node/serve/metadata.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { hypervisorContract } from './hypervisor-contract.ts'
import { instanceSpec } from './instance-spec.ts'
import { eventually, tinyLinux } from './real-host.ts'

hypervisorContract(async () => {
  const image = await tinyLinux()
  // Longer than a socket's address may be.
  const folder = await mkdtemp(join(tmpdir(), `svccloud-qemu-${'long-'.repeat(16)}`))
  const boot = (await bootId()) ?? 'unknown'
  const machine = await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId: boot, clock: systemClock, isOutboundAllowed: true })
  const volumes = await openQcow2Volumes(join(folder, 'volumes'))
  await volumes.create({ name: 'boot', sizeGibibytes: 1, source: image })
  const guests = join(folder, 'guests')
  return {
    attach: () => openQemu({ folder: guests, binary: QEMU_BINARY, machine, bootId: boot, clock: systemClock, log: silentLog }),
    definition: async (name, incarnation) => ({
      name, uid: 'uid-1', incarnation, hostname: 'web-1', cores: 1, memoryMebibytes: 128, boot: image.boot,
      disks: [{ path: volumes.pathOf('boot'), serial: 'boot' }], interfaces: [{ macAddress: '52:54:00:12:34:56' }], forwardedPorts: [22],
      seed: seedDisk(metadataDocument(instanceSpec({ hostname: 'web-1' })), undefined),
    }),
    async killGuest(name) {
      const pid = Number(await readFile(join(guests, name, 'qemu.pid'), 'utf8'))
      signalProcess(pid, 'SIGKILL')
      await eventually('the end of the process', () => !signalProcess(pid, 0) || undefined)
    },
    settled: (promise) => promise,
    until: async (isTrue) => void (await eventually('it', () => isTrue() || undefined)),
    close: () => rm(folder, { recursive: true, force: true }),
  }
})

it('believes in an accelerator that boots a marker, and in no other', async () => {
  expect(await bootsTrial('tcg', systemClock)).toBe(true)
})
