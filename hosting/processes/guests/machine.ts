/** The guest of a playground: how QEMU is called for it. It reaches two ports of this machine and nothing else, runs as
 *  a user of its own where this process is root, and ends with this process. */
import { isRoot } from '../../../kit/sys/process.ts'

/** What the guest calls this machine, and the ports that it reaches there. */
export const GATEWAY = { address: '10.0.2.100', api: 6_443, tunnel: 8_132 } as const
/** Its own address, in a network that only it is in. */
export const GUEST_ADDRESS = '10.0.2.15'
/** Files in its folder. */
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
  /** Of whoever it runs as, where this process may choose. */
  readonly userId: number
  /** Ports of this machine behind those of the gateway; absent for one that has no control plane. */
  readonly ports?: { readonly api: number; readonly tunnel: number }
}

/** The first start goes on from the state that was saved; after that its disk is another one, and it boots. */
const START =
  'cd "$0" || exit 1; mkdir warm 2>/dev/null && test -f state && exec "$@" -incoming "exec:cat state"; exec "$@"'
const USERS_FIRST = 1_000_000
/** Of translated code: with less, what a node runs is translated again and again (from the state to a ready node with
 *  512: 63 seconds of processor time, with 256: 105). */
const TRANSLATION_MEBIBYTES = 512
/** Of the guest's own user: QEMU's threads, and a process for each connection of the guest. */
export const GUEST_PROCESSES_MAXIMUM = 256
/** Nothing of it is needed after an hour of silence. */
const SILENCE_SECONDS = 3_600

/** Another one for each port. */
export const userIdOf = (port: number): number => USERS_FIRST + port

export function guestCommand(machine: GuestMachine): readonly string[] {
  return ['/bin/sh', '-c', START, machine.folder, ...userOf(machine), 'qemu-system-x86_64', ...argumentsOf(machine)]
}

/** Nobody who can become anybody. Entering another user undoes what ties it to this process: that is said again. */
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
    // What is behind the forwarded ports is started by setsid among others, which `elevateprivileges` denies too:
    // nobody could connect. Its user cannot gain any rights all the same.
    '-sandbox',
    'on,obsolete=deny,resourcecontrol=deny',
  ]
}
