/** The command line of QEMU for the guest of a playground. The guest reaches only two ports of this machine. It runs as
 *  its own user when this process is root, and exits with this process. */
import { isRoot } from '../../../kit/sys/process.ts'

/** The guest's address of this machine, and the ports that it reaches there. */
export const GATEWAY = { address: '10.0.2.100', api: 6_443, tunnel: 8_132 } as const
/** The guest's address, in a network that contains only the guest. */
export const GUEST_ADDRESS = '10.0.2.15'
/** Files in the guest's folder. */
export const GUEST_FILES = {
  base: 'base.qcow2',
  warm: 'warm.qcow2',
  disk: 'disk.qcow2',
  state: 'state',
  kernel: 'vmlinuz',
  initialRamdisk: 'initrd.img',
  agent: 'agent.sock',
  monitor: 'monitor.sock',
} as const

export interface GuestSize {
  readonly vcpus: number
  readonly memoryMebibytes: number
}

export interface GuestMachine extends GuestSize {
  readonly folder: string
  readonly commandLine: string
  readonly hasKvm: boolean
  /** User of the guest, if this process can choose it. */
  readonly userId: number
  /** Ports of this machine behind those of the gateway; absent for a guest without a control plane. */
  readonly ports?: { readonly api: number; readonly tunnel: number }
}

/** The first start continues from the saved state. Later its disk has changed, so it boots. */
const START =
  'cd "$0" || exit 1; mkdir warm 2>/dev/null && test -f state && exec "$@" -incoming "exec:cat state"; exec "$@"'
const USERS_FIRST = 1_000_000
/** Size of the cache for translated code. A smaller one translates a node's programs repeatedly. From the state to a
 *  ready node: 63 seconds of processor time with 512, 105 with 256. */
const TRANSLATION_MEBIBYTES = 512
/** Limit for the guest's own user: QEMU's threads, and a process for each connection of the guest. */
export const GUEST_PROCESSES_MAXIMUM = 256
/** Time without traffic after which a connection of the guest is no longer needed. */
const SILENCE_SECONDS = 3_600

/** Different for each port. */
export const userIdOf = (port: number): number => USERS_FIRST + port

export function guestCommand(machine: GuestMachine): readonly string[] {
  return ['/bin/sh', '-c', START, machine.folder, ...userOf(machine), 'qemu-system-x86_64', ...argumentsOf(machine)]
}

/** An unprivileged user that cannot gain rights. Changing the user clears the parent-death signal, so it is set again.
 */
function userOf({ userId }: GuestMachine): readonly string[] {
  if (!isRoot()) return ['setpriv', '--no-new-privs', '--']
  return [
    'prlimit',
    `--nproc=${GUEST_PROCESSES_MAXIMUM}`,
    '--',
    'setpriv',
    `--reuid=${userId}`,
    `--regid=${userId}`,
    '--clear-groups',
    '--no-new-privs',
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--pdeathsig=KILL',
    '--',
  ]
}

function argumentsOf({ vcpus, memoryMebibytes, commandLine, hasKvm, ports }: GuestMachine): readonly string[] {
  const forward = (port: number, at: number) =>
    `guestfwd=tcp:${GATEWAY.address}:${port}-cmd:socat -T${SILENCE_SECONDS} - TCP4:127.0.0.1:${at}`
  const forwards = ports === undefined ? [] : [forward(GATEWAY.api, ports.api), forward(GATEWAY.tunnel, ports.tunnel)]
  return [
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
    '-machine',
    'q35',
    ...(hasKvm
      ? ['-accel', 'kvm', '-cpu', 'host']
      : ['-accel', `tcg,thread=multi,tb-size=${TRANSLATION_MEBIBYTES}`, '-cpu', 'qemu64,-cx16']),
    '-smp',
    String(vcpus),
    '-m',
    String(memoryMebibytes),
    '-rtc',
    'base=utc',
    '-kernel',
    GUEST_FILES.kernel,
    '-initrd',
    GUEST_FILES.initialRamdisk,
    '-append',
    commandLine,
    '-drive',
    `file=${GUEST_FILES.disk},if=virtio,cache=unsafe,format=qcow2`,
    '-device',
    'virtio-rng-pci',
    '-device',
    'vmgenid,guid=auto',
    '-netdev',
    ['user,id=net,restrict=on,ipv6=off', ...forwards].join(','),
    '-device',
    'virtio-net-pci,netdev=net',
    '-device',
    'virtio-serial-pci',
    '-chardev',
    `socket,id=agent,path=${GUEST_FILES.agent},server=on,wait=off`,
    '-device',
    'virtserialport,chardev=agent,name=org.qemu.guest_agent.0',
    '-qmp',
    `unix:${GUEST_FILES.monitor},server=on,wait=off`,
    // QEMU starts the programs behind the forwarded ports through setsid, which `elevateprivileges` also denies: then
    // no connection would work. Even without the option, its user cannot gain rights.
    '-sandbox',
    'on,obsolete=deny,resourcecontrol=deny',
  ]
}
