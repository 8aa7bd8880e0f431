/** The hypervisor interface of the agent. Two implementations, `qemu.ts` and `simulated.ts`, pass one contract suite. A
 *  guest outlives the agent. Its name is the Instance's name; uid and incarnation identify the start of the Instance. A
 *  host has at most one guest of a name, running or ended. A guest moves in three stages: the receiver waits for it
 *  (`receive`), the sender copies its memory while it runs (`send`), and it is handed over. Until the hand-over starts,
 *  the move can be cancelled and the guest continues on the sender; after that it cannot. Once the sender has written
 *  everything, the guest never continues there, whatever happens to the receiver. */
import type { InstanceStatus } from '../../../../resources/instance/index.ts'
import type { FreezeResult, FrozenWork } from '../../guest-agent/freeze.ts'
import type { Qmp } from './qmp.ts'

export interface GuestIdentity {
  /** Name of the Instance. */
  readonly name: string
  /** uid of the Instance object that requested the start. */
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
  /** Slot of a disk that can be plugged and unplugged while the guest runs, from 1; the boot disk has none. */
  readonly slot?: number | undefined
  /** The file that this one is an overlay of, when the path in its header differs from the path that the hypervisor
   *  uses. */
  readonly backing?: string | undefined
}

export interface GuestInterface {
  readonly macAddress: string
  /** Network port of the interface; when absent, the port has the guest's name. */
  readonly portName?: string | undefined
  /** Slot of an interface that can be plugged and unplugged while the guest runs, from 1; others have none. */
  readonly slot?: number | undefined
  /** It is disconnected from its network, and the guest was asked to release it. */
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
  /** In order; forwarded ports belong to the first one. */
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
  /** `off`: the guest powered itself off. It is kept until `destroy`, so that the fact survives the agent. `gone`: its
   *  process ended in another way. */
  readonly state:
    | 'running'
    | 'off'
    | 'gone'
    /** It waits for a guest from another host and does not run. Becomes `running`, or `gone` when the attempt fails. */
    | 'receiving'
    /** It was sent completely to another host and is paused here permanently. */
    | 'handed_over'
  /** False when it runs and does not answer, because it hangs or the agent is still attaching. */
  readonly isResponsive: boolean
  /** It runs, and the hypervisor has paused it because a disk of it could not grow. Absent otherwise. */
  readonly isDiskFull?: true
  /** RFC 3339. */
  readonly startedAt: string
  readonly forwards: readonly Forward[]
  /** Paths of the disks that it has open, or may have open, in no order. */
  readonly disks: readonly string[]
  /** Those of `disks` that the guest does not have; none when absent. */
  readonly unheldDisks?: readonly string[]
  /** Slots of disks that were taken by force and whose devices the guest has yet to release; none when absent. */
  readonly cutOffSlots?: readonly number[]
  /** Ports of the interfaces that it has, in no order. */
  readonly interfaces: readonly string[]
  /** Ports of interfaces that are disconnected and that the guest was asked to release; none when absent. */
  readonly leavingInterfaces?: readonly string[]
  /** The last attempt to move it to this host or away, as long as it is here. */
  readonly transfer?: Transfer
}

/** Whether its process has ended and cannot continue. */
export const hasGuestEnded = ({ state }: Pick<Guest, 'state'>): boolean => state === 'off' || state === 'gone'

/** The progress of an attempt, in the terms of `Instance.status`. Its figures are at most a second old. */
export type Transfer = NonNullable<InstanceStatus['transfer']>

export interface ReceiveRequest {
  /** Id of the operation that moves the guest. */
  readonly id: string
  readonly attempt: number
  /** Slots of the disks that are copied from the sender, 0 for the boot disk; the others are shared with it. */
  readonly mirroredDisks: readonly number[]
  /** The pre-shared key, 64 hex digits: encrypts the stream and authenticates both hosts. */
  readonly key: string
}

export interface SendRequest extends ReceiveRequest {
  /** Address where the receiver listens, from its `Transfer`. */
  readonly host: string
  readonly port: number
  readonly diskPort?: number | undefined
  /** Limit of the guest's downtime. */
  readonly downtimeLimitMilliseconds: number
  /** Whether the guest may be slowed down so that the transfer completes. */
  readonly isThrottled: boolean
  /** After this time the attempt has failed, unless the hand-over has started. */
  readonly timeoutSeconds: number
}

export interface SnapshotChange {
  readonly verb: 'take' | 'remove'
  /** The snapshot's name in the disk. */
  readonly label: string
}

/** Counted since the guest's start. Counters that the hypervisor does not have are absent. */
export interface GuestCounters {
  readonly diskReadBytes: number
  readonly diskWrittenBytes: number
  readonly diskReadOperations: number
  readonly diskWriteOperations: number
  readonly cpuMilliseconds?: number
  /** Reported by the guest, and at most its memory. Not a counter. */
  readonly memoryUsedBytes?: number
  readonly networkReceivedBytes?: number
  readonly networkTransmittedBytes?: number
}

export type HypervisorKind = 'qemu-kvm' | 'qemu-tcg' | 'simulated'

export interface Hypervisor {
  readonly kind: HypervisorKind
  /** Every guest of this host that is not destroyed, running or ended. Attaches to guests that an earlier agent
   *  started. */
  list(): Promise<readonly Guest[]>
  /** The guest of this name, or undefined. Attaches to it like `list`. */
  inspect(name: string): Promise<Guest | undefined>
  /** Resolves when the guest runs. GuestExists when a guest of this name exists, even an ended one. GuestStartFailed
   *  when it did not start and nothing is left of it. */
  start(definition: GuestDefinition): Promise<Guest>
  /** Creates a guest that waits for its memory from another host instead of booting. Resolves when it listens
   *  (`Transfer.host`, `port`). Same errors as `start`. A receiver whose agent was killed before it listened is `gone`.
   */
  receive(definition: GuestDefinition, reception: ReceiveRequest): Promise<Guest>
  /** Starts to send the running guest; idempotent for an attempt. Continues without an agent, except for the hand-over,
   *  which an agent must order. `Guest.transfer` shows the result: `completed`, or `failed`, and the guest continues
   *  here. */
  send(name: string, sending: SendRequest): Promise<void>
  /** Cancels the send. Does nothing when there is none, or when the hand-over has started. */
  cancelSend(name: string): Promise<void>
  /** Plugs the disk into the running guest. Returns true when the guest has it; does nothing when it has this disk
   *  already. Returns false while the guest has yet to release a disk that was taken from the slot by force, and asks
   *  the guest again. Rejects when the slot has another disk, and with Unavailable when the guest does not run. */
  plugDisk(name: string, disk: GuestDisk): Promise<boolean>
  /** Asks the guest to release the disk of this path. Once it has, and nothing on the host has the disk open,
   *  `Guest.disks` lacks it. Does nothing when the guest does not have it. With `isForced` the disk is taken at once:
   *  further reads and writes of the guest fail, and the guest is asked to release the device. */
  unplugDisk(name: string, path: string, isForced: boolean): Promise<void>
  /** Plugs the interface into the running guest and joins it to its port; does nothing when that is done. Rejects when
   *  its slot is taken, even by an interface that the guest has yet to release, and with Unavailable when the guest
   *  does not run. */
  plugInterface(name: string, added: GuestInterface): Promise<void>
  /** Disconnects the interface of this port at once, and asks the guest to release it. Once it has, `Guest.interfaces`
   *  lacks it. Does nothing when the guest does not have it. An interface without a slot stays. */
  unplugInterface(name: string, portName: string): Promise<void>
  /** Grows the disk of this path; the guest sees it at once. False when no running guest of the name has it. */
  growDisk(name: string, path: string, gibibytes: number): Promise<boolean>
  /** Takes or removes a snapshot in the disk of this path, while the guest runs. False when no running guest of the
   *  name has the disk; rejects while a backup reads the disk. */
  changeSnapshots(name: string, path: string, change: SnapshotChange): Promise<boolean>
  /** Lets a guest that a full disk has paused go on: it writes again what failed. Does nothing for any other. */
  resume(name: string): Promise<void>
  /** Presses the power button, which the guest may ignore. Does nothing when the guest is not running. */
  pressPowerButton(name: string): Promise<void>
  /** Kills the guest and releases its resources. Resolves when its process has ended. Its console history stays. */
  destroy(name: string): Promise<void>
  /** Does `destroy` and also deletes everything else of the guest, including the console history. */
  forget(name: string): Promise<void>
  /** Sends a request to the script of a managed machine in the guest. Returns its answer, some kilobytes at most, which
   *  the caller must check. GuestAgentFailed when the script does not answer in time. */
  askMachine(name: string, request: Buffer): Promise<Buffer>
  /** The console of a guest, whether it runs or not. */
  console(name: string): GuestConsole
  counters(name: string): Promise<GuestCounters | undefined>
  /** The monitor of a guest that runs in QEMU; undefined for any other. */
  monitorOf(name: string): GuestMonitor | undefined
  /** Calls back with the name of a guest whose state may have changed. Returns a function that stops the calls. */
  onChange(listener: (name: string) => void): () => void
  /** Detaches from all guests without affecting them. */
  close(): Promise<void>
}

/** Access to the QEMU process of a guest, for features that not every hypervisor has. */
export interface GuestMonitor {
  readonly execute: Qmp['execute']
  /** QEMU's working directory. Paths of its sockets are relative to it. */
  readonly folder: string
  /** Path in the folder at which QEMU may create a socket for a backup. */
  readonly backupSocket: string
  /** The name that QEMU uses for the file. */
  nameOf(path: string): string
  /** Lets QEMU open the file; returns the name that QEMU uses for it. */
  give(path: string): Promise<string>
  /** Does the work once. The file systems of the guest are frozen meanwhile if its agent freezes them in time. They are
   *  always thawed afterwards. */
  whileFrozen<Result>(work: FrozenWork<Result>): Promise<FreezeResult<Result>>
}

export type ConsoleEvent =
  | { readonly type: 'output'; readonly bytes: Buffer }
  | { readonly type: 'status'; readonly status: ConsoleStatus }
  | { readonly type: 'removed' }

export interface ConsoleStatus {
  /** The agent is attached to the guest's serial line. */
  readonly isConnected: boolean
  readonly isRunning: boolean
  readonly incarnation: number
}

/** End of the output that was read so far. */
export interface ConsolePosition {
  /** Identifies the log that the position refers to. Changes when counting restarts. Lower-case letters and digits. */
  readonly log: string
  /** Bytes since the start of the log. */
  readonly end: number
}

export interface GuestConsole {
  /** The last CONSOLE_TAIL_BYTES of output, over all incarnations. */
  tail(): Buffer
  position(): ConsolePosition
  status(): ConsoleStatus
  /** The bytes of one call stay together. False when the serial line is not attached, or when too much earlier input is
   *  still unread. */
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
