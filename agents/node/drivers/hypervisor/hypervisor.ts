/** What the agent needs of a hypervisor. Two implementations behind one contract suite: `qemu.ts` and `simulated.ts`.
 *  A guest outlives the agent. Its name is the Instance's name; uid and incarnation say which start of which Instance
 *  it is.
 *  There is never more than one guest of a name on a host, running or ended.
 *
 *  A guest moves in three stages: the receiver waits for it (`receive`), the sender copies its memory while it goes on
 *  (`send`), and it is handed
 *  over. Until the hand-over begins the move can be given up and the guest goes on at the sender; from then on nobody
 *  cancels. Once the
 *  sender has written everything the guest never goes on there, whatever became of the receiver. */
import type { InstanceStatus } from '../../../../resources/instance/index.ts'

export interface GuestIdentity {
  /** Name of the Instance. */
  readonly name: string
  /** uid of the Instance object that asked for it. */
  readonly uid: string
  readonly incarnation: number
}

/** How a guest's firmware is skipped: the kernel is loaded by the hypervisor. Absolute paths. */
export interface GuestBoot {
  readonly kernel: string
  readonly initialRamdisk: string
  readonly commandLine: string
}

export interface GuestDefinition extends GuestIdentity {
  readonly hostname: string
  readonly cores: number
  readonly memoryMebibytes: number
  readonly boot: GuestBoot
  /** In order; the first one is `vda`. Absolute paths of qcow2 files. */
  readonly disks: readonly { readonly path: string; readonly serial: string }[]
  /** In order; the first one takes the forwards. */
  readonly interfaces: readonly { readonly macAddress: string }[]
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
    /** It waits for a guest that another host sends; nothing of it runs. Ends as `running`, or as `gone` when the
     *  attempt is over without that. */
    | 'receiving'
    /** It was sent whole to another host and stands still here. Never goes on. */
    | 'handed_over'
  /** False when it runs and does not answer (hung, or just being attached). */
  readonly isResponsive: boolean
  /** RFC 3339. */
  readonly startedAt: string
  readonly forwards: readonly Forward[]
  /** The last attempt to bring it here or away, for as long as it is here. */
  readonly transfer?: Transfer
}

/** How far an attempt is, in the words of `Instance.status`. Its figures are at most a second old. */
export type Transfer = NonNullable<InstanceStatus['transfer']>

export interface ReceiveRequest {
  /** Of the operation that moves the guest. */
  readonly id: string
  readonly attempt: number
  /** Positions in `GuestDefinition.disks` of those that are copied from the sender; the others are shared with it. */
  readonly mirroredDisks: readonly number[]
  /** What both ends know, 64 hex digits: the stream is encrypted with it, and nobody else is let in. */
  readonly key: string
}

export interface SendRequest extends ReceiveRequest {
  /** Where the receiver listens, as its `Transfer` says. */
  readonly host: string
  readonly port: number
  readonly diskPort?: number | undefined
  /** How long the guest may stand still. */
  readonly downtimeLimitMilliseconds: number
  /** Whether the guest may be slowed so that the transfer ends. */
  readonly isThrottled: boolean
  /** After this the attempt has failed, unless the hand-over has begun. */
  readonly timeoutSeconds: number
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
  /** Begins to send the running guest, once: free when this attempt has begun. Goes on by itself, also when the agent
   *  is killed, except for the
   *  hand-over, which takes an agent. Its end is seen in `Guest.transfer`: `completed`, or `failed` and the guest goes
   *  on here. */
  send(name: string, sending: SendRequest): Promise<void>
  /** Gives the sending up. Free when there is none, and when the hand-over has begun. */
  cancelSend(name: string): Promise<void>
  /** Presses the power button; the guest decides. Free when it is not running. */
  pressPowerButton(name: string): Promise<void>
  /** Ends the guest if it runs, at once, and lets go of what it had. Resolves when its process is gone. Its console
   *  history stays. */
  destroy(name: string): Promise<void>
  /** `destroy`, and nothing is left of it, console history included. */
  forget(name: string): Promise<void>
  /** The console of a guest, whether it runs or not. */
  console(name: string): GuestConsole
  counters(name: string): Promise<GuestCounters | undefined>
  /** Calls back with the name of a guest whose state may have changed. The answer ends it. */
  onChange(listener: (name: string) => void): () => void
  /** Lets go of all guests without touching them. */
  close(): Promise<void>
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

export interface GuestConsole {
  /** The last CONSOLE_TAIL_BYTES of output, over all incarnations. */
  tail(): Buffer
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
