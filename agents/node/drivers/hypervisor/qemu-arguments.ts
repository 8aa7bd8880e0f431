/** The command line of a guest. Pure and deterministic, so that a migration's target gets the same devices in the same
 *  order. */
import { type GuestNetwork, isOvn, OVN_DEVICE, ovnArguments } from '../network/ovn.ts'
import { userModeArguments } from '../network/user-mode.ts'
import type { Forward, GuestDefinition } from './hypervisor.ts'

export interface QemuMachine {
  readonly accelerator: 'kvm' | 'tcg'
  /** Versioned (`pc-q35-7.2`): what the guest sees never changes under it when QEMU is upgraded. */
  readonly machine: string
  readonly cpu: string
}

/** Files in the guest's folder, which is QEMU's working directory: relative, because socket addresses hold 107 bytes
 *  only. */
export const GUEST_FILES = {
  qmp: 'qmp.sock',
  consoleInput: 'console.in',
  consoleLog: 'console.log',
  pid: 'qemu.pid',
  seed: 'seed.iso',
  output: 'qemu.log',
} as const

/** Ports that later hot-plugged disks and interfaces take; q35 cannot add them at run time. */
const SPARE_PORTS = 8
/** Translated code kept by TCG. The default of 1 GiB is as large as many guests. */
const TRANSLATION_MEBIBYTES = { small: 32, large: 128 }
const SMALL_GUEST_MEBIBYTES = 256

/** The step in which QEMU takes sizes of memory. */
const WITHHELD_KIBIBYTES = 8

/** An emulated guest has a little less, so that its memory does not end at a word of QEMU's dirty bitmap: QEMU before
 *  9.0 clears a bitmap of whole words without flushing the translated code that still writes unrecorded, and what a
 *  guest writes then during a migration is lost. */
const memoryKibibytes = (mebibytes: number, { accelerator }: QemuMachine): number =>
  mebibytes * 1024 - (accelerator === 'tcg' ? WITHHELD_KIBIBYTES : 0)

const json = (fields: object): string => JSON.stringify(fields)

/** `uuid` is what the guest sees as its machine id, and what its process is recognised by. `incoming`: it waits for its
 *  memory, and is `held` when it must not go on by itself once it has that. */
export function qemuArguments(
  guest: GuestDefinition,
  uuid: string,
  machine: QemuMachine,
  network: GuestNetwork,
  forwards: readonly Forward[],
  incoming?: 'free' | 'held',
): string[] {
  return [
    ...['-name', `guest=${guest.name},debug-threads=on`],
    ...['-uuid', uuid],
    ...processArguments(network),
    ...machineArguments(guest, machine),
    ...['-kernel', guest.boot.kernel],
    ...['-initrd', guest.boot.initialRamdisk],
    ...['-append', guest.boot.commandLine],
    ...['-qmp', `unix:${GUEST_FILES.qmp},server=on,wait=off`],
    // Standard input and output are the files of `serial-line.ts`.
    ...['-chardev', 'stdio,id=console,signal=off'],
    ...['-serial', 'chardev:console'],
    ...range(SPARE_PORTS).flatMap((index) => ['-device', `pcie-root-port,id=spare${index},chassis=${index + 1}`]),
    ...diskArguments(guest),
    ...interfaceArguments(guest, network, forwards),
    ...['-device', 'virtio-balloon-pci,id=balloon'],
    ...['-device', 'virtio-rng-pci,id=rng'],
    ...['-pidfile', GUEST_FILES.pid],
    ...(incoming === undefined ? [] : ['-incoming', 'defer']),
    ...(incoming === 'held' ? ['-S'] : []),
  ]
}

function processArguments(network: GuestNetwork): string[] {
  // What joins guests of user-mode networking to the metadata service is a program that QEMU starts.
  const denied = isOvn(network) || network.metadata === undefined ? ',elevateprivileges=deny,spawn=deny' : ''
  return ['-nodefaults', '-no-user-config', '-display', 'none', '-sandbox', `on,obsolete=deny${denied}`]
}

function machineArguments(guest: GuestDefinition, machine: QemuMachine): string[] {
  const translationMebibytes =
    guest.memoryMebibytes <= SMALL_GUEST_MEBIBYTES ? TRANSLATION_MEBIBYTES.small : TRANSLATION_MEBIBYTES.large
  return [
    // Without the description the stream of a migration ends with the guest's memory: a receiver that has read its end
    // has everything.
    ...['-machine', `${machine.machine},suppress-vmdesc=on`],
    ...['-accel', machine.accelerator === 'kvm' ? 'kvm' : `tcg,tb-size=${translationMebibytes}`],
    ...['-cpu', machine.cpu],
    ...['-smp', String(guest.cores)],
    ...['-m', `${memoryKibibytes(guest.memoryMebibytes, machine)}K`],
    ...['-rtc', 'base=utc'],
    // A guest that powers itself off stays, paused, until the agent has observed it.
    ...['-action', 'shutdown=pause'],
  ]
}

const diskArguments = ({ disks }: GuestDefinition): string[] => [
  ...disks.flatMap((disk, index) => [
    '-blockdev',
    json({ driver: 'file', 'node-name': `file${index}`, filename: disk.path, locking: 'on', discard: 'unmap' }),
    '-blockdev',
    json({ driver: 'qcow2', 'node-name': `disk${index}`, file: `file${index}`, discard: 'unmap' }),
    '-device',
    json({ driver: 'virtio-blk-pci', id: `vd${index}`, drive: `disk${index}`, serial: disk.serial }),
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
  interfaces.flatMap(({ macAddress }, index) => [
    ...(isOvn(network) ? ovnArguments(name, index) : userModeArguments(network, index, index === 0 ? forwards : [])),
    '-device',
    json({
      driver: 'virtio-net-pci',
      id: `nic${index}`,
      netdev: `net${index}`,
      mac: macAddress,
      romfile: '',
      ...(isOvn(network) ? OVN_DEVICE : {}),
    }),
  ])

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
