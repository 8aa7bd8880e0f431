/** The command line of a guest. Pure and deterministic, so that a migration's target gets the same devices in the same
 *  order. */
import { WITHOUT_CX16 } from '../../images/debian-system.ts'
import { GUEST_AGENT_DEVICE, GUEST_AGENT_FILES } from '../../guest-agent/freeze.ts'
import { type GuestNetwork, isOvn, ovnBackend } from '../network/ovn.ts'
import { userModeArguments } from '../network/user-mode.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../../../domain/storage/rules.ts'
import type { Forward, GuestDefinition } from './hypervisor.ts'
import { deviceOf, blockNodesOf } from './qemu-disks.ts'
import { indexOf, INTERFACE_SLOTS, interfaceOf, interfacePort, slotBackend } from './qemu-interfaces.ts'

/** Option for a processor that hides cmpxchg16b. */
export const CX16_OFF = ',cx16=off'

export interface QemuMachine {
  readonly accelerator: 'kvm' | 'tcg'
  /** Versioned (`pc-q35-7.2`), so that an upgrade of QEMU does not change the hardware that the guest sees. */
  readonly machine: string
  readonly cpu: string
}

/** Files in the guest's folder, which is QEMU's working directory: relative, because socket addresses hold 107 bytes
 *  only. */
export const GUEST_FILES = {
  qmp: 'qmp.sock',
  consoleInput: 'console.in',
  consoleLog: 'console.log',
  /** Locked for as long as the process lives. */
  pid: 'qemu.pid',
  seed: 'seed.iso',
  output: 'qemu.log',
} as const

/** Cache of TCG for translated code. The default of 1 GiB is as large as many guests. Code that does not fit is
 *  translated repeatedly. Large guests run more programs, so they get more. */
const TRANSLATION_MEBIBYTES = { small: 32, medium: 128, large: 512 }
const SMALL_GUEST_MEBIBYTES = 256
const LARGE_GUEST_MEBIBYTES = 2_048

/** QEMU accepts memory sizes in steps of this size. */
const WITHHELD_KIBIBYTES = 8

/** An emulated guest gets slightly less memory, so that it does not end at a word of QEMU's dirty bitmap. QEMU before
 *  9.0 clears a bitmap of whole words without flushing the translated code, which then writes unrecorded. Such writes
 *  would be lost in a migration. */
const memoryKibibytes = (mebibytes: number, { accelerator }: QemuMachine): number =>
  mebibytes * 1024 - (accelerator === 'tcg' ? WITHHELD_KIBIBYTES : 0)

const json = (fields: object): string => JSON.stringify(fields)

/** `uuid` is the machine id of the guest, and identifies its process. `incoming`: the guest waits for its memory; with
 *  `held` it stays paused once the memory has arrived. */
export function qemuArguments(
  guest: GuestDefinition,
  uuid: string,
  machine: QemuMachine,
  network: GuestNetwork,
  forwards: readonly Forward[],
  incoming?: 'free' | 'held',
): string[] {
  return [
    '-name',
    `guest=${guest.name},debug-threads=on`,
    '-uuid',
    uuid,
    ...processArguments(network),
    ...machineArguments(guest, machine),
    ...bootArguments(guest),
    '-qmp',
    `unix:${GUEST_FILES.qmp},server=on,wait=off`,
    // Standard input and output are the files of `serial-line.ts`.
    '-chardev',
    'stdio,id=console,signal=off',
    '-serial',
    'chardev:console',
    ...range(DATA_STORAGES_PER_SERVER_MAXIMUM).flatMap((index) => [
      '-device',
      `pcie-root-port,id=spare${index},chassis=${index + 1}`,
    ]),
    ...range(INTERFACE_SLOTS).flatMap((index) => [
      '-device',
      `pcie-root-port,id=${interfacePort(index + 1)},chassis=${DATA_STORAGES_PER_SERVER_MAXIMUM + index + 1}`,
    ]),
    ...diskArguments(guest),
    ...interfaceArguments(guest, network, forwards),
    '-device',
    'virtio-balloon-pci,id=balloon',
    '-device',
    'virtio-rng-pci,id=rng',
    ...GUEST_AGENT_ARGUMENTS,
    ...(incoming === undefined ? [] : ['-incoming', 'defer']),
    ...(incoming === 'held' ? ['-S'] : []),
  ]
}

/** The virtio port for the guest agent. */
const GUEST_AGENT_ARGUMENTS = [
  '-chardev',
  `socket,id=${GUEST_AGENT_DEVICE},path=${GUEST_AGENT_FILES.socket},server=on,wait=off`,
  '-device',
  'virtio-serial-pci,id=agent-bus',
  '-device',
  `virtserialport,bus=agent-bus.0,id=agent-port,chardev=${GUEST_AGENT_DEVICE},name=org.qemu.guest_agent.0`,
]

function processArguments(network: GuestNetwork): string[] {
  // In user-mode networking, QEMU starts the program that connects guests to the metadata service. It does so through
  // setsid, which `elevateprivileges` also denies. Even without the option, its user cannot gain rights.
  const denied = isOvn(network) || network.metadata === undefined ? ',elevateprivileges=deny,spawn=deny' : ''
  return ['-nodefaults', '-no-user-config', '-display', 'none', '-sandbox', `on,obsolete=deny${denied}`]
}

function machineArguments(guest: GuestDefinition, machine: QemuMachine): string[] {
  const { memoryMebibytes } = guest
  const size =
    memoryMebibytes <= SMALL_GUEST_MEBIBYTES ? 'small' : memoryMebibytes < LARGE_GUEST_MEBIBYTES ? 'medium' : 'large'
  return [
    // With the VM description, data would follow the guest's memory in the migration stream. Without it, a receiver
    // that has read the memory to its end has everything.
    '-machine',
    `${machine.machine},suppress-vmdesc=on`,
    '-accel',
    machine.accelerator === 'kvm' ? 'kvm' : `tcg,tb-size=${TRANSLATION_MEBIBYTES[size]}`,
    '-cpu',
    cpuOf(guest, machine),
    '-smp',
    String(guest.cores),
    '-m',
    `${memoryKibibytes(guest.memoryMebibytes, machine)}K`,
    '-rtc',
    'base=utc',
    // A guest that powers itself off stays paused until the agent has observed it.
    '-action',
    'shutdown=pause',
  ]
}

/** Programs such as HAProxy need the instruction. A kernel that is configured not to use it may see it. */
const cpuOf = ({ boot }: GuestDefinition, { cpu }: QemuMachine): string =>
  boot?.commandLine.includes(WITHOUT_CX16) === true ? cpu.replace(CX16_OFF, '') : cpu

const bootArguments = ({ boot }: GuestDefinition): string[] =>
  boot === undefined ? [] : ['-kernel', boot.kernel, '-initrd', boot.initialRamdisk, '-append', boot.commandLine]

/** The seed is a disk too. So firmware needs a boot index when it boots a disk without a given kernel. */
const bootOrder = ({ boot }: GuestDefinition, index: number) =>
  boot === undefined && index === 0 ? { bootindex: 0 } : {}

const diskArguments = ({ disks, ...guest }: GuestDefinition): string[] => [
  ...disks.flatMap((disk, index) => [
    ...blockNodesOf(disk).flatMap((node) => ['-blockdev', json(node)]),
    '-device',
    json({ ...deviceOf(disk), ...bootOrder({ disks, ...guest }, index) }),
  ]),
  '-blockdev',
  json({ driver: 'file', 'node-name': 'seed-file', filename: GUEST_FILES.seed, 'read-only': true }),
  '-blockdev',
  json({ driver: 'raw', 'node-name': 'seed', file: 'seed-file', 'read-only': true }),
  '-device',
  json({ driver: 'virtio-blk-pci', id: 'seed-disk', drive: 'seed', serial: 'cidata' }),
]

const interfaceArguments = (
  { name, interfaces }: GuestDefinition,
  network: GuestNetwork,
  forwards: readonly Forward[],
): string[] =>
  interfaces.flatMap((each, position) => {
    const index = indexOf(each, position)
    const backend =
      each.slot !== undefined
        ? ['-netdev', options(slotBackend(network, name, each.slot))]
        : isOvn(network)
          ? ['-netdev', options(ovnBackend(name, index))]
          : userModeArguments(network, index, index === 0 ? forwards : [])
    return [...backend, '-device', json(interfaceOf(network, each, index))]
  })

const options = ({ type, ...rest }: { readonly type: string }): string =>
  [type, ...Object.entries(rest).map(([name, value]) => `${name}=${String(value)}`)].join(',')

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
