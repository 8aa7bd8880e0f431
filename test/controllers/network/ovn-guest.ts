/** Runs one real guest in the network namespace that it is started in, with the agent's own driver, until its standard input ends. Says
 *  `running` when the guest runs, answers every line with the guest's counters as JSON, and says `gone` when nothing of the guest is left.
 *  Arguments: folder, and the Instance's name, hardware address and interface as JSON. */
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openQemu } from '../../../agents/node/drivers/hypervisor/qemu.ts'
import { probeQemu, QEMU_BINARY } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { openDiskServer } from '../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { metadataDocument, seedDisk } from '../../../agents/node/serve/metadata.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../kit/sys/log.ts'
import { exitProcess, printLine } from '../../../kit/sys/process.ts'
import type { InstanceSpec } from '../../../resources/instance.ts'
import { instanceSpec } from '../../agents/node/instance-spec.ts'
import { tinyLinux } from '../../agents/node/real-host.ts'

const [folder = '', name = '', text = ''] = process.argv.slice(2)
const own = JSON.parse(text) as InstanceSpec['interfaces'][number] // the test wrote it
const image = await tinyLinux()
const machine = await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId: 'boot', clock })
const volumes = await openQcow2Volumes({ folder: join(folder, 'volumes'), server: await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock }) })
await volumes.create({ name: 'boot', sizeGibibytes: 1, source: image })
const hypervisor = await openQemu({ folder: join(folder, 'guests'), binary: QEMU_BINARY, machine, network: { kind: 'ovn' }, bootId: 'boot', migrationHost: '127.0.0.1', clock, log })
await hypervisor.start({
  name, uid: 'uid', incarnation: 1, hostname: name, cores: 1, memoryMebibytes: 128, boot: image.boot, disks: [{ path: await volumes.pathOf('boot'), serial: 'boot' }],
  interfaces: [{ macAddress: own.macAddress }], forwardedPorts: [22], seed: seedDisk(metadataDocument(instanceSpec({ hostname: name, interfaces: [own] })), undefined),
})
printLine('running')
for await (const _line of createInterface({ input: process.stdin })) printLine(JSON.stringify(await hypervisor.counters(name)))
await hypervisor.forget(name)
printLine('gone')
await hypervisor.close()
exitProcess(0)
