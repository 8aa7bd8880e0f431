/** What the agent needs of a hypervisor. Two implementations, `qemu.ts` and `simulated.ts`, pass one contract suite. A
 *  guest outlives the agent. Its name is the Instance's name; uid and incarnation identify the start of the Instance. A
 *  host has at most one guest of a name, running or ended. A guest moves in three stages: the receiver waits for it
 *  (`receive`), the sender copies its memory while it runs (`send`), and it is handed over. Until the hand-over begins
 *  the move can be cancelled and the guest continues on the sender; after that it cannot. Once the sender has written
 *  everything, the guest never continues there, whatever happens to the receiver. */
import type { InstanceStatus } from '../../../../resources/instance/index.ts'
import type { Frozen, FrozenWork } from '../../guest-agent/freeze.ts'
import type { Qmp } from './qmp.ts'

export interface GuestIdentity {
  /** Name of the Instance. */
  readonly name: string
  /** uid of the Instance object that asked for it. */
  readonly uid: string
  readonly incarnation: number
}

/** A kernel that the hypervisor loads instead of firmware. Absolute paths. */
export interface GuestBoot {
  readonly kernel: string
  readonly initialRamdisk: string
  readonly commandLine: string
}

export interface GuestDisk {
  /** Absolute path of a qcow2 file, or an image in a Ceph cluster as `rbd-path.ts` names it. */
  readonly path: string
  readonly serial: string
  /** Of a disk that may come and go while the guest runs, from 1; the boot disk has none. */
  readonly slot?: number | undefined
  /** The file that this one is an overlay of, when its header names it otherwise than the hypervisor finds it. */
  readonly backing?: string | undefined
}

export interface GuestInterface {
  readonly macAddress: string
  /** Port of the network that it is joined to; that of the guest's name when absent. */
  readonly portName?: string | undefined
  /** Of an interface that may come and go while the guest runs, from 1; others have none. */
  readonly slot?: number | undefined
  /** It is out of its network, and the guest was asked for it. */
  readonly isLeaving?: true | undefined
}

export const portNameOf = (guest: string, { portName = guest }: Pick<GuestInterface, 'portName'>): string => portName

export interface GuestDefinition extends GuestIdentity {
  readonly hostname: string
  readonly cores: number
  readonly memoryMebibytes: number
  /** Undefined when the firmware boots the first disk. */
  readonly boot: GuestBoot | undefined
  /** In order; the first one is `vda`, and the only one without a slot. */
  readonly disks: readonly GuestDisk[]
  /** In order; the first one takes the forwards. */
  readonly interfaces: readonly GuestInterface[]
  /** Guest TCP ports that must be reachable from the host. */
  readonly forwardedPorts: readonly number[]
  /** The bytes of the read-only NoCloud disk (label `cidata`). */
  readonly seed: Buffer
}

export interface Forward {
  readonly guestPort: number
  readonly host: string
  readonly hostPort: number
}

export interface Guest extends GuestIdentity {
  /** `off`: the guest powered itself off, and is kept until `destroy` so that the fact survives the agent. `gone`: its
   *  process ended without that. */
  readonly state:
    | 'running'
    | 'off'
    | 'gone'
    /** It waits for a guest that another host sends, and does not run. Becomes `running`, or `gone` when the attempt
     *  fails. */
    | 'receiving'
    /** It was sent completely to another host and is paused here for good. */
    | 'handed_over'
  /** False when it runs and does not answer (hung, or just being attached). */
  readonly isResponsive: boolean
  /** RFC 3339. */
  readonly startedAt: string
  readonly forwards: readonly Forward[]
  /** Paths of the disks that it has open, or may have open, in no order. */
  readonly disks: readonly string[]
  /** Those of them that the guest has not got; none when absent. */
  readonly unheldDisks?: readonly string[]
  /** Slots of disks that were taken from it by force, whose devices it has yet to release; none when absent. */
  readonly cutOffSlots?: readonly number[]
  /** Ports of the interfaces that it has, in no order. */
  readonly interfaces: readonly string[]
  /** Those of them that are out of their networks, and that it was asked for; none when absent. */
  readonly leavingInterfaces?: readonly string[]
  /** The last attempt to bring it here or away, for as long as it is here. */
  readonly transfer?: Transfer
}

/** Nothing of it runs, or can go on. */
export const hasEnded = ({ state }: Pick<Guest, 'state'>): boolean => state === 'off' || state === 'gone'

/** The progress of an attempt, in the terms of `Instance.status`. Its figures are at most a second old. */
export type Transfer = NonNullable<InstanceStatus['transfer']>

export interface ReceiveRequest {
  /** Of the operation that moves the guest. */
  readonly id: string
  readonly attempt: number
  /** Slots of the disks that are copied from the sender, 0 for the boot disk; the others are shared with it. */
  readonly mirroredDisks: readonly number[]
  /** The pre-shared key, 64 hex digits: encrypts the stream and authenticates both hosts. */
  readonly key: string
}

export interface SendRequest extends ReceiveRequest {
  /** Where the receiver listens, as its `Transfer` says. */
  readonly host: string
  readonly port: number
  readonly diskPort?: number | undefined
  /** Limit of the guest's downtime. */
  readonly downtimeLimitMilliseconds: number
  /** Whether the guest may be slowed so that the transfer ends. */
  readonly isThrottled: boolean
  /** After this the attempt has failed, unless the hand-over has begun. */
  readonly timeoutSeconds: number
}

export interface SnapshotChange {
  readonly verb: 'take' | 'remove'
  /** As it is named in the disk. */
  readonly label: string
}

/** Since the guest's start. What the hypervisor cannot count is absent. */
export interface GuestCounters {
  readonly diskReadBytes: number
  readonly diskWrittenBytes: number
  readonly diskReadOperations: number
  readonly diskWriteOperations: number
  readonly cpuMilliseconds?: number
  readonly networkReceivedBytes?: number
  readonly networkTransmittedBytes?: number
}

export type HypervisorKind = 'qemu-kvm' | 'qemu-tcg' | 'simulated'

export interface Hypervisor {
  readonly kind: HypervisorKind
  /** Every guest of this host, running or ended and not destroyed yet; attaches to those that an earlier agent started.
   */
  list(): Promise<readonly Guest[]>
  /** The guest of this name, or undefined. Attaches to it like `list`. */
  inspect(name: string): Promise<Guest | undefined>
  /** Resolves when the guest runs. GuestExists when there is one of this name (also an ended one); GuestStartFailed
   *  when it did not come to life and nothing is left of it. */
  start(definition: GuestDefinition): Promise<Guest>
  /** Makes a guest of the definition that waits for its memory from another host instead of booting. Resolves when it
   *  listens (`Transfer.host`, `port`).
   *  Errors as `start`. A receiver whose agent was killed before it listened is `gone`. */
  receive(definition: GuestDefinition, reception: ReceiveRequest): Promise<Guest>
  /** Begins to send the running guest; idempotent for an attempt. Continues without an agent, except for the hand-over,
   *  which an agent orders. `Guest.transfer` shows its end: `completed`, or `failed`, and the guest continues here. */
  send(name: string, sending: SendRequest): Promise<void>
  /** Cancels the send. Does nothing when there is none, or when the hand-over has begun. */
  cancelSend(name: string): Promise<void>
  /** Gives the disk to the running guest, which has it when this answers true; free when it has this very one. False
   *  while the guest has yet to release one that was taken from the slot by force: it is asked again. Rejects when the
   *  slot has another disk, and with Unavailable when the guest does not run any more. */
  plugDisk(name: string, disk: GuestDisk): Promise<boolean>
  /** Asks the guest to release the disk of this path; `Guest.disks` lacks it once it has, and nothing of the host has
   *  it open. Free when it has not got it. With `isForced` it is taken at once: what the guest reads or writes there
   *  from then on fails, and it is asked to release the device. */
  unplugDisk(name: string, path: string, isForced: boolean): Promise<void>
  /** Gives the interface to the running guest, joined to its port; free when it has it so. Rejects when its slot is
   *  taken, also by one that the guest has yet to release, and with Unavailable when the guest runs no more. */
  plugInterface(name: string, added: GuestInterface): Promise<void>
  /** Takes the interface of this port out of its network at once, and asks the guest to release it; `Guest.interfaces`
   *  lacks it once it has. Free when it has not got it; one without a slot stays. */
  unplugInterface(name: string, portName: string): Promise<void>
  /** Makes the disk of this path larger; the guest sees it at once. False when no running guest of the name has it. */
  growDisk(name: string, path: string, gibibytes: number): Promise<boolean>
  /** Keeps the point that the disk of this path is at in the disk itself, or removes one. The guest runs on. False when
   *  no running guest of the name has it; rejects while the disk is read for a backup. */
  changeSnapshots(name: string, path: string, change: SnapshotChange): Promise<boolean>
  /** Presses the power button, which the guest may ignore. Does nothing when it is not running. */
  pressPowerButton(name: string): Promise<void>
  /** Ends the guest at once and releases its resources. Resolves when its process is gone. Its console history stays.
   */
  destroy(name: string): Promise<void>
  /** `destroy`, and nothing is left of it, console history included. */
  forget(name: string): Promise<void>
  /** What the script of a managed machine answers in the guest, at most some kilobytes: to be checked. GuestAgentFailed
   *  when it does not, or not in time. */
  askMachine(name: string, request: Buffer): Promise<Buffer>
  /** The console of a guest, whether it runs or not. */
  console(name: string): GuestConsole
  counters(name: string): Promise<GuestCounters | undefined>
  /** Of a guest that runs in QEMU; undefined for any other. */
  monitorOf(name: string): GuestMonitor | undefined
  /** Calls back with the name of a guest whose state may have changed. The answer ends it. */
  onChange(listener: (name: string) => void): () => void
  /** Detaches from all guests without affecting them. */
  close(): Promise<void>
}

/** How QEMU is spoken to about a guest, beyond what every hypervisor can do. */
export interface GuestMonitor {
  readonly execute: Qmp['execute']
  /** QEMU's working directory, where the paths of its sockets begin. */
  readonly folder: string
  /** Path in the folder at which QEMU may make a socket for a backup. */
  readonly backupSocket: string
  /** How QEMU names the file. */
  nameOf(path: string): string
  /** Lets QEMU open the file; answers how QEMU names it. */
  give(path: string): Promise<string>
  /** Does the work once, while the file systems of the guest are frozen if its agent does that in time. They are thawed
   *  whatever happens. */
  whileFrozen<Result>(work: FrozenWork<Result>): Promise<Frozen<Result>>
}

export type ConsoleEvent =
  | { readonly type: 'output'; readonly bytes: Buffer }
  | { readonly type: 'status'; readonly status: ConsoleStatus }
  | { readonly type: 'removed' }

export interface ConsoleStatus {
  /** Attached to the guest's serial line. */
  readonly isConnected: boolean
  readonly isRunning: boolean
  readonly incarnation: number
}

/** Where the output ends that was read so far. */
export interface ConsolePosition {
  /** Names what the output is counted in: another one when it is counted anew. Lower-case letters and digits. */
  readonly log: string
  /** Bytes since its beginning. */
  readonly end: number
}

export interface GuestConsole {
  /** The last CONSOLE_TAIL_BYTES of output, over all incarnations. */
  tail(): Buffer
  position(): ConsolePosition
  status(): ConsoleStatus
  /** Bytes of one call stay together. False when the serial line is not attached, or the guest has yet to take too much
   *  of what was typed before. */
  write(bytes: Buffer): boolean
  subscribe(listener: (event: ConsoleEvent) => void): () => void
}

export const CONSOLE_TAIL_BYTES = 65_536

export class GuestExists extends Error {
  constructor(name: string) {
    super(`there is a guest ${name} already`)
    this.name = 'GuestExists'
  }
}

export class GuestStartFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GuestStartFailed'
  }
}
