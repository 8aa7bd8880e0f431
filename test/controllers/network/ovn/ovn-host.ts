/** A host of the public network, in the network namespace that it is started in: real guests, plugged in by the agent's
 *  own drivers, and the
 *  metadata service for them. Takes orders as lines of JSON from its standard input, one after the other, and answers
 *  each with a line of JSON.
 *  Ends with its input. Arguments: folder, its address for guests that move, zone, and `outbound`
 *  for user-mode networking instead of that of the zone. */
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type {
  GuestDefinition,
  ReceiveRequest,
  SendRequest,
} from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { letPass } from '../../../../agents/node/drivers/hypervisor/guest-users.ts'
import { openQemu } from '../../../../agents/node/drivers/hypervisor/qemu.ts'
import { probeQemu, QEMU_BINARY } from '../../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { openDiskServer } from '../../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../../agents/node/drivers/storage/qcow2.ts'
import { metadataDocument, seedDisk } from '../../../../agents/node/serve/metadata.ts'
import { runMetadataPort } from '../../../../agents/node/serve/metadata-port.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { exitProcess, printLine } from '../../../../kit/sys/process.ts'
import type { InstanceSpec } from '../../../../resources/instance/index.ts'
import { instanceSpec } from '../../../agents/node/instance-spec.ts'
import { USER_RANGE } from '../../../agents/node/qemu-machine.ts'
import { IMAGE_FOLDER, tinyLinux } from '../../../agents/node/real-host.ts'

/** What the host can be ordered to do. `disk`: of the guest that comes, which both hosts reach. */
export interface Orders {
  readonly start: { readonly interface: InstanceSpec['interfaces'][number] }
  readonly receive: {
    readonly interface: InstanceSpec['interfaces'][number]
    readonly disk: string
    readonly reception: ReceiveRequest
  }
  readonly send: { readonly sending: SendRequest }
  readonly inspect: object
  readonly counters: object
  readonly type: { readonly text: string }
  readonly console: object
  readonly serve: { readonly isEnabled: boolean }
  readonly forget: object
}

const [folder = '', address = '', zone = '', network = 'ovn'] = process.argv.slice(2)
const image = await tinyLinux()
const machine = await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId: 'boot', clock })
const volumes = await openQcow2Volumes({
  imageFolder: IMAGE_FOLDER,
  folder: join(folder, 'volumes'),
  server: await openDiskServer({ folder: join(folder, 'served'), host: address, clock }),
})
await letPass(join(folder, 'volumes'))
const fileFolders = [join(folder, 'volumes'), IMAGE_FOLDER]
const hypervisor = await openQemu({
  folder: join(folder, 'guests'),
  binary: QEMU_BINARY,
  machine,
  userRange: USER_RANGE,
  fileFolders: () => fileFolders,
  network: network === 'ovn' ? { kind: 'ovn' } : { isOutboundAllowed: true },
  bootId: 'boot',
  migrationHost: address,
  clock,
  log,
})
const specs = new Map<string, InstanceSpec>()
const stop = new AbortController()

const serving = runMetadataPort(
  {
    clock,
    log,
    zone: () => (specs.size === 0 ? undefined : zone),
    async guestOf(macAddress) {
      const [name, spec] = [...specs].find(([, { interfaces }]) => interfaces[0]?.macAddress === macAddress) ?? []
      return (
        spec && {
          isEnabled: spec.metadata.isEnabled,
          document: metadataDocument(spec),
          userData: async () => undefined,
          tokenKey: `key of ${name}`,
        }
      )
    },
  },
  stop.signal,
)

function definitionOf(name: string, own: InstanceSpec['interfaces'][number], disk: string): GuestDefinition {
  const spec = instanceSpec({
    hostname: name,
    interfaces: [own],
    metadata: { ...instanceSpec().metadata, isEnabled: true, zone },
  })
  specs.set(name, spec)
  return {
    name,
    uid: 'uid',
    incarnation: 1,
    hostname: name,
    cores: 1,
    memoryMebibytes: 128,
    boot: image.boot,
    disks: [{ path: disk, serial: 'boot' }],
    interfaces: [{ macAddress: own.macAddress }],
    forwardedPorts: [22],
    seed: seedDisk(metadataDocument(spec), undefined),
  }
}

const handlers: { readonly [Order in keyof Orders]: (name: string, order: Orders[Order]) => Promise<unknown> } = {
  async start(name, order) {
    await volumes.create({ name, sizeGibibytes: 1, source: image })
    const disk = await volumes.pathOf(name)
    await hypervisor.start(definitionOf(name, order.interface, disk))
    return { disk }
  },
  receive(name, order) {
    fileFolders.push(dirname(order.disk)) // as if both hosts had mounted it
    return hypervisor.receive(definitionOf(name, order.interface, order.disk), order.reception)
  },
  send: (name, order) => hypervisor.send(name, order.sending),
  inspect: (name) => hypervisor.inspect(name),
  counters: (name) => hypervisor.counters(name),
  type: async (name, order) => hypervisor.console(name).write(Buffer.from(order.text)),
  console: async (name) => hypervisor.console(name).tail().toString(),
  async serve(name, { isEnabled }) {
    const spec = specs.get(name)
    if (spec !== undefined) specs.set(name, { ...spec, metadata: { ...spec.metadata, isEnabled } })
  },
  async forget(name) {
    await hypervisor.forget(name)
    specs.delete(name)
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  // the tests write it
  const { do: what, name, ...order } = JSON.parse(line) as { readonly do: keyof Orders; readonly name: string }
  const answer = await (handlers[what] as (name: string, order: unknown) => Promise<unknown>)(name, order).catch(
    (error: unknown) => ({ error: String(error) }),
  )
  printLine(JSON.stringify(answer ?? null))
}
stop.abort()
await serving
await hypervisor.close()
exitProcess(0)
