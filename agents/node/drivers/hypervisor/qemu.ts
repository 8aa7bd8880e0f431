/** Guests as separate QEMU processes, which outlive the agent. The host's process table decides which guests run; the
 *  guest's folder only records which incarnation it is. Three checks prevent a second copy: the record and the process
 *  table are read first, the process holds a lock of its pidfile, and QEMU locks the disks. */
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defined } from '../../../../domain/defined.ts'
import { byTheMachine, type Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { environment, isRoot, signalProcess } from '../../../../kit/sys/process.ts'
import { insideCommand, withoutRights } from '../network/namespace.ts'
import { type GuestNetwork, isOvn, plugIn, type PluggedInterface, unplug } from '../network/ovn.ts'
import { type Gate, openGate } from '../network/gate/client.ts'
import { passedObject, pipeFile, PORT_FILE } from '../network/user-mode.ts'
import { ConsoleLine } from './console-line.ts'
import { ConsoleLog } from './console-log.ts'
import {
  findGuestProcess,
  guestUuid,
  type GuestRecord,
  INCARNATION_FILES,
  isGuestProcess,
  readGuestRecord,
  writeGuestRecord,
} from './guest-record.ts'
import {
  type Forward,
  type Guest,
  type GuestConsole,
  type GuestCounters,
  type GuestDefinition,
  type GuestDisk,
  type GuestInterface,
  type GuestMonitor,
  GuestExists,
  GuestStartFailed,
  type Hypervisor,
  portNameOf,
  type ReceiveRequest,
  type SendRequest,
  type SnapshotChange,
  type Transfer,
} from './hypervisor.ts'
import type { CephLogin } from '../storage/ceph-pool.ts'
import {
  give,
  guestPath,
  type GuestUser,
  type GuestUsers,
  openFolders,
  openGuestUsers,
  type UserRange,
} from './guest-users.ts'
import { freePort, freePortInside, type PortRange } from './listening-port.ts'
import { indexOf } from './qemu-interfaces.ts'
import { GUEST_FILES, qemuArguments, type QemuMachine } from './qemu-arguments.ts'
import {
  beginReceive,
  beginSend,
  KEY_FILE,
  keyFileText,
  type Move,
  queryStatus,
  sendMemory,
  transferOf,
} from './qemu-migration.ts'
import { type MigrationDriver, startMigrationDriver } from './qemu-migration-driver.ts'
import { connectQmp, type Qmp } from './qmp.ts'
import { MACHINE_SCRIPT } from '../../images/managed/recipe.ts'
import { runInGuest } from '../../guest-agent/run-in-guest.ts'
import { type Freezer, GUEST_AGENT_FILES, openFreezer } from '../../guest-agent/freeze.ts'
import { assertReachable, assertReachableInside } from './assert-reachable.ts'
import { openInputPipe, openSerialLine, type SerialLine } from './serial-line.ts'
import { KeyedMutex } from '../../../../kit/sys/mutex.ts'

import { GuestFiles, OWN_FOLDER } from './guest-files.ts'
import { readCounters, readTraffic } from './guest-counters.ts'
import { type AttachedGuest, findDisks, GuestDevices } from './guest-devices.ts'

export interface QemuOptions {
  /** Holds one folder per guest. */
  readonly folder: string
  readonly binary: string
  readonly machine: QemuMachine
  readonly network: GuestNetwork
  readonly bootId: string
  /** The users that guests run as when the agent is root. When absent, guests run as the agent. */
  readonly userRange?: UserRange | undefined
  /** Folders with files of guests, besides their own folders. */
  readonly fileFolders?: () => readonly string[]
  /** The Ceph cluster that holds disks; absent when there is none. */
  readonly ceph?: CephLogin | undefined
  /** Address at which other hosts reach this one. */
  readonly migrationHost: string
  /** Ports for moves; any port when absent. */
  readonly migrationPorts?: PortRange | undefined
  /** Limit of the bandwidth that one send may use; unlimited when absent. */
  readonly migrationMebibytesPerSecond?: number | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** Emulated guests are slow, and a configuration is tested before it is applied. */
const MACHINE_MILLISECONDS = 120_000
const START_TIMEOUT_MILLISECONDS = 30_000
const START_POLL_MILLISECONDS = 20
/** Another process may take a free port before QEMU does. */
const START_ATTEMPTS_MAXIMUM = 3
const PORT_TAKEN = /host forwarding|Failed to find an available port|Address already in use/
const QUIT_TIMEOUT_MILLISECONDS = 2_000
const KILL_TIMEOUT_MILLISECONDS = 10_000
const END_POLL_MILLISECONDS = 20
const REATTACH_MILLISECONDS = 500
const FORWARD_HOST = '127.0.0.1'
const DETAIL_CHARACTERS_MAXIMUM = 300
/** States of QEMU's `query-status` in which the guest cannot continue. */
const DEAD_STATES = ['internal-error', 'guest-panicked']
/** The state in which QEMU pauses a guest whose write found no space (`werror=enospc`, its default). Other errors of
 *  disks are reported to the guest. */
const DISK_FULL_STATE = 'io-error'

interface Attachment extends AttachedGuest {
  readonly line: SerialLine
  transfer?: Transfer
  migration?: MigrationDriver
}

interface ConsoleState {
  readonly line: ConsoleLine
  readonly log: ConsoleLog
}

/** Attaches to a guest of an earlier agent when the guest is first accessed. */
export async function openQemu(options: QemuOptions): Promise<Hypervisor> {
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  const { network, clock, log } = options
  const folder = await realpath(options.folder)
  const gate = !isOvn(network) && network.isOutboundAllowed ? openGate({ folder, clock, log }) : undefined
  const users = await openGuestUsers({
    range: options.userRange,
    folder,
    folders: options.fileFolders ?? (() => []),
    accelerator: options.machine.accelerator,
    hasTaps: isOvn(network),
    log,
  })
  return new QemuHypervisor({ ...options, folder }, gate, users)
}

class QemuHypervisor implements Hypervisor {
  readonly kind: 'qemu-kvm' | 'qemu-tcg'
  readonly #options: QemuOptions
  /** Filters what guests with user-mode networking send; undefined when they reach nothing. */
  readonly #gate: Gate | undefined
  readonly #users: GuestUsers | undefined
  readonly #attachments = new Map<string, Attachment>()
  readonly #consoles = new Map<string, ConsoleState>()
  readonly #listeners = new Set<(name: string) => void>()
  readonly #locks = new KeyedMutex()
  readonly #trafficLocks = new KeyedMutex()
  readonly #closing = new AbortController()
  readonly #freezer: Freezer
  readonly #silences: Outages
  readonly #files: GuestFiles
  readonly #devices: GuestDevices

  constructor(options: QemuOptions, gate: Gate | undefined, users: GuestUsers | undefined) {
    this.#options = options
    this.#users = users
    this.#gate = gate
    this.#files = new GuestFiles({ ...options, folderOf: (name) => this.#folder(name), users })
    this.#devices = new GuestDevices({
      attached: (name) => this.#attachments.get(name),
      locks: this.#locks,
      folderOf: (name) => this.#folder(name),
      files: this.#files,
      users,
      network: options.network,
      log: options.log,
      changed: (name) => this.#changed(name),
    })
    this.#silences = new Outages(options, 'guest does not answer')
    this.#freezer = openFreezer({ ...options, signal: this.#closing.signal })
    gate?.onRestart(() => {
      for (const [name, { qmp }] of this.#attachments)
        void this.#joinGate(name, qmp).catch((error: unknown) =>
          options.log.warn('guest sends nothing', { guest: name, error }),
        )
    })
    this.kind = options.machine.accelerator === 'kvm' ? 'qemu-kvm' : 'qemu-tcg'
  }

  async list(): Promise<readonly Guest[]> {
    const guests = await Promise.all((await readdir(this.#options.folder)).map((name) => this.inspect(name)))
    return guests.filter((guest) => guest !== undefined)
  }

  inspect(name: string): Promise<Guest | undefined> {
    return this.#locks.run(name, async () => {
      const record = await readGuestRecord(this.#folder(name))
      return record === undefined ? undefined : this.#observe(record)
    })
  }

  start(definition: GuestDefinition): Promise<Guest> {
    return this.#locks.run(definition.name, () => this.#make(definition))
  }

  receive(definition: GuestDefinition, reception: ReceiveRequest): Promise<Guest> {
    return this.#locks.run(definition.name, () => this.#make(definition, reception))
  }

  send(name: string, sending: SendRequest): Promise<void> {
    return this.#locks.run(name, async () => {
      const attachment = this.#attachments.get(name)
      const record = await readGuestRecord(this.#folder(name))
      if (attachment?.state !== 'running' || record === undefined) return
      const before = record.move?.role === 'send' ? record.move : undefined
      if (
        before !== undefined &&
        (before.end === undefined || (before.id === sending.id && before.attempt >= sending.attempt))
      )
        return
      const { key, id, attempt, mirroredDisks, host, port, diskPort, ...orders } = sending
      const isStarted = mirroredDisks.length === 0
      const begun: Move = {
        role: 'send',
        id,
        attempt,
        mirroredDisks: [...mirroredDisks],
        host,
        port,
        diskPort,
        orders,
        isStarted,
        beganAt: this.#options.clock.now().toISOString(),
      }
      await this.#files.lend(name, KEY_FILE, keyFileText(key), record.user)
      await writeGuestRecord(this.#folder(name), { ...record, move: begun })
      let refusal: string | undefined
      try {
        // QEMU blocks while it connects.
        if (diskPort !== undefined) await this.#assertReachable(host, diskPort)
        await beginSend(attachment.qmp, begun, this.#options.migrationMebibytesPerSecond)
        if (isStarted) await sendMemory(attachment.qmp, begun)
      } catch (error) {
        refusal = describe(error) // only QEMU can report how far it got
      }
      this.#startMigration(record, attachment, begun, refusal)
      this.#changed(name)
    })
  }

  async cancelSend(name: string): Promise<void> {
    this.#attachments.get(name)?.migration?.cancel()
  }

  plugDisk(name: string, disk: GuestDisk): Promise<boolean> {
    return this.#devices.plugDisk(name, disk)
  }

  unplugDisk(name: string, path: string, isForced: boolean): Promise<void> {
    return this.#devices.unplugDisk(name, path, isForced)
  }

  plugInterface(name: string, added: GuestInterface): Promise<void> {
    return this.#devices.plugInterface(name, added)
  }

  unplugInterface(name: string, portName: string): Promise<void> {
    return this.#devices.unplugInterface(name, portName)
  }

  growDisk(name: string, path: string, gibibytes: number): Promise<boolean> {
    return this.#devices.growDisk(name, path, gibibytes)
  }

  changeSnapshots(name: string, path: string, change: SnapshotChange): Promise<boolean> {
    return this.#devices.changeSnapshots(name, path, change)
  }

  async resume(name: string): Promise<void> {
    const attachment = this.#attachments.get(name)
    if (attachment?.state === 'running' && attachment.isDiskFull) await attachment.qmp.execute('cont')
  }

  async pressPowerButton(name: string): Promise<void> {
    const attachment = this.#attachments.get(name)
    if (attachment?.state === 'running') await attachment.qmp.execute('system_powerdown')
  }

  destroy(name: string): Promise<void> {
    return this.#locks.run(name, async () => {
      const record = await readGuestRecord(this.#folder(name))
      if (record !== undefined) await this.#end(record)
    })
  }

  async forget(name: string): Promise<void> {
    await this.destroy(name)
    await rm(this.#folder(name), { recursive: true, force: true })
    this.#consoles.get(name)?.line.removed()
    this.#consoles.delete(name)
  }

  console(name: string): GuestConsole {
    return this.#console(name).line
  }

  async counters(name: string): Promise<GuestCounters | undefined> {
    const attachment = this.#attachments.get(name)
    if (attachment === undefined) return undefined
    const traffic = () =>
      this.#trafficLocks.run(name, () => readTraffic(name, this.#folder(name), this.#options.network))
    return readCounters(attachment, traffic, byTheMachine(this.#options.clock.now()))
  }

  askMachine(name: string, request: Buffer): Promise<Buffer> {
    const socket = join(this.#folder(name), GUEST_AGENT_FILES.socket)
    const { clock } = this.#options
    return runInGuest(
      { socket, clock, timeoutMilliseconds: MACHINE_MILLISECONDS },
      { path: MACHINE_SCRIPT, input: request },
    )
  }

  monitorOf(name: string): GuestMonitor | undefined {
    const attachment = this.#attachments.get(name)
    if (attachment?.state !== 'running') return undefined
    const { user, qmp } = attachment
    const guest = { execute: qmp.execute, folder: this.#folder(name) }
    return {
      ...guest,
      whileFrozen: (work) => this.#freezer.whileFrozen(guest, work),
      backupSocket: user === undefined ? 'backup.sock' : `${OWN_FOLDER}/backup`,
      nameOf: (path) => guestPath(user, path),
      async give(path) {
        if (user !== undefined) await give(path, user.id)
        return guestPath(user, path)
      },
    }
  }

  onChange(listener: (name: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#gate?.close()
    for (const { qmp, line } of this.#attachments.values()) {
      qmp.close()
      line.close()
    }
    this.#attachments.clear()
  }

  /** Call it under the lock of the name. */
  async #make(definition: GuestDefinition, reception?: ReceiveRequest): Promise<Guest> {
    const { name, uid, incarnation } = definition
    const folder = this.#folder(name)
    const uuid = guestUuid(name)
    if ((await readGuestRecord(folder)) !== undefined || (await findGuestProcess(folder, uuid)) !== undefined)
      throw new GuestExists(name)
    const { network } = this.#options
    const pipe = isOvn(network) || network.metadata === undefined ? undefined : pipeFile(name, network.metadata)
    for (let attempt = 1; ; attempt++) {
      const { user, started } = await this.#files.prepare(definition)
      if (pipe !== undefined) await this.#files.lend(name, pipe.name, pipe.text, user)
      await this.#files.lendCluster(name, definition.disks, user)
      await this.#files.lend(name, GUEST_FILES.seed, definition.seed, user)
      if (reception !== undefined) await this.#files.lend(name, KEY_FILE, keyFileText(reception.key), user)
      const forwards = await Promise.all(
        (isOvn(network) ? [] : definition.forwardedPorts).map(
          async (guestPort): Promise<Forward> => ({
            guestPort,
            host: FORWARD_HOST,
            hostPort: await freePort(FORWARD_HOST),
          }),
        ),
      )
      const now = this.#options.clock.now().toISOString()
      const move: Move | undefined = reception && {
        role: 'receive',
        id: reception.id,
        attempt: reception.attempt,
        mirroredDisks: [...reception.mirroredDisks],
        beganAt: now,
        isStarted: false,
      }
      const record: GuestRecord = {
        name,
        uid,
        incarnation,
        uuid,
        startedAt: now,
        bootId: this.#options.bootId,
        forwards,
        interfaces: [...definition.interfaces],
        disks: definition.disks.map(({ path }) => path),
        ...defined({ user, move }),
      }
      await writeGuestRecord(folder, record)
      try {
        await this.#spawn(started, record)
        return await this.#observe(move === undefined ? record : await this.#listenForGuest(record, move))
      } catch (error) {
        const output = await readFile(join(folder, GUEST_FILES.output), 'utf8').catch(() => '')
        await this.#end(record)
        if (attempt < START_ATTEMPTS_MAXIMUM && PORT_TAKEN.test(`${output}${describe(error)}`)) continue
        throw new GuestStartFailed(output.trim().split('\n').at(-1) || describe(error), { cause: error })
      }
    }
  }

  /** Returns the record with the address, once the guest can arrive. */
  async #listenForGuest(record: GuestRecord, move: Move): Promise<GuestRecord> {
    const { migrationHost: host, migrationPorts } = this.#options
    const attachment = this.#attachments.get(record.name)
    if (attachment === undefined) throw new Error('QEMU has ended')
    const free = (portsInUse: readonly number[]) =>
      this.#namespace === undefined
        ? freePort(host, migrationPorts, portsInUse)
        : freePortInside(this.#namespace, migrationPorts, portsInUse)
    const port = await free([])
    const diskPort = move.mirroredDisks.length === 0 ? undefined : await free([port])
    const listening: Move = { ...move, host, port, diskPort }
    await beginReceive(attachment.qmp, move.mirroredDisks, { host, port, diskPort })
    await writeGuestRecord(this.#folder(record.name), { ...record, move: listening })
    this.#startMigration(record, attachment, listening)
    return { ...record, move: listening }
  }

  /** Drives the attempt until it ends. */
  #startMigration(record: GuestRecord, attachment: Attachment, move: Move, reason?: string): void {
    const { name, incarnation } = record
    const isMine = () => this.#attachments.get(name) === attachment
    attachment.transfer = transferOf(move, this.#options.clock.now())
    attachment.migration = startMigrationDriver({
      qmp: attachment.qmp,
      move,
      reason,
      clock: this.#options.clock,
      log: this.#options.log,
      isDetached: () => !isMine() || this.#closing.signal.aborted,
      isGuestOff: () => attachment.state === 'off',
      persist: (noted) =>
        this.#locks.run(name, async () => {
          if (!isMine()) throw new Error(`guest ${name} no longer runs`)
          const newest = (await readGuestRecord(this.#folder(name))) ?? record
          await writeGuestRecord(this.#folder(name), { ...newest, move: noted })
        }),
      report: (transfer, status = '') => {
        const isPhaseChange = transfer.phase !== attachment.transfer?.phase
        attachment.transfer = transfer
        if (transfer.phase === 'completed' && transfer.role === 'send') {
          attachment.state = 'handed_over'
          attachment.line.read()
          this.#console(name).line.stopped()
        } else if (transfer.phase === 'completed' && attachment.state === 'receiving') {
          attachment.state = stateOf(status, undefined)
          if (attachment.state === 'running') {
            this.#connectConsole(name, incarnation, attachment)
            this.#freezer.recover(this.#folder(name), 'another-host')
          }
        }
        if (isPhaseChange) this.#changed(name)
      },
    })
  }

  /** Network namespace of QEMU; undefined when it is the agent's. */
  get #namespace(): string | undefined {
    const { network } = this.#options
    return isOvn(network) ? network.namespace : undefined
  }

  #assertReachable(host: string, port: number): Promise<void> {
    return this.#namespace === undefined
      ? assertReachable(host, port, this.#options.clock)
      : assertReachableInside(this.#namespace, host, port)
  }

  #folder(name: string): string {
    return join(this.#options.folder, name)
  }

  #console(name: string): ConsoleState {
    const known = this.#consoles.get(name)
    if (known !== undefined) return known
    const log = new ConsoleLog(this.#folder(name))
    const console = { log, line: new ConsoleLine(log.history(), log.position()) }
    this.#consoles.set(name, console)
    return console
  }

  async #observe(record: GuestRecord): Promise<Guest> {
    const { name, uid, incarnation, startedAt, forwards, move } = record
    const guestIn = (
      state: Guest['state'],
      isResponsive: boolean,
      transfer: Transfer | undefined,
      disks: readonly string[] = [],
      interfaces: readonly GuestInterface[] = [],
    ): Guest => ({
      name,
      uid,
      incarnation,
      startedAt,
      forwards,
      state,
      isResponsive,
      disks,
      interfaces: interfaces.map((each) => portNameOf(name, each)),
      ...leavingIn(name, interfaces),
      ...defined({ transfer }),
    })
    const recorded = move && (move.end ?? transferOf(move, new Date(move.beganAt)))
    // The agent was killed before it had published the port.
    if (move?.role === 'receive' && move.port === undefined) return guestIn('gone', false, recorded)
    const known = this.#attachments.get(name)
    if (known !== undefined)
      return {
        ...guestIn(known.state, true, known.transfer, [...known.disks.values()], known.interfaces),
        ...disksIn(known),
      }
    const pid = await this.#processOf(record)
    if (pid === undefined) {
      this.#console(name).line.stopped()
      const output =
        recorded?.phase === 'transferring'
          ? await readFile(join(this.#folder(name), GUEST_FILES.output), 'utf8').catch(() => '')
          : ''
      return guestIn(
        'gone',
        false,
        recorded && {
          ...recorded,
          detail: recorded.detail || (output.trim().split('\n').at(-1) ?? '').slice(0, DETAIL_CHARACTERS_MAXIMUM),
        },
      )
    }
    try {
      const found = await this.#attach(record, pid)
      this.#silences.over(name)
      return {
        ...guestIn(found.state, true, found.transfer, [...found.disks.values()], found.interfaces),
        ...disksIn(found),
      }
    } catch (error) {
      this.#silences.failed(error, { guest: name }, name)
      const state =
        move?.role === 'receive' && move.end === undefined
          ? 'receiving'
          : move?.role === 'send' && move.end?.phase === 'completed'
            ? 'handed_over'
            : 'running'
      if (state === 'running') this.#console(name).line.running(incarnation, undefined)
      void this.#awaitEnd(record)
      return guestIn(state, false, recorded, record.disks, record.interfaces)
    }
  }

  async #processOf(record: GuestRecord): Promise<number | undefined> {
    return record.bootId === this.#options.bootId ? findGuestProcess(this.#folder(record.name), record.uuid) : undefined
  }

  /** Starts the process and waits until it answers. */
  async #spawn(definition: GuestDefinition, record: GuestRecord): Promise<void> {
    const { binary, machine, network, clock } = this.#options
    const folder = this.#folder(record.name)
    for (const file of [GUEST_FILES.qmp, GUEST_FILES.consoleInput, ...Object.values(GUEST_AGENT_FILES)])
      await rm(join(folder, file), { force: true })
    if (isOvn(network)) await plugIn(network, record.name, pluggedIn(record), record.user?.id)
    const typed = await openInputPipe(folder)
    const printed = openSync(join(folder, GUEST_FILES.consoleLog), 'a', 0o600)
    const errors = openSync(join(folder, GUEST_FILES.output), 'w', 0o600)
    let ended: string | undefined
    let pid: number | undefined
    await this.#files.letMakeFiles(record.name, record.user, true)
    const folders = openFolders(record.user)
    try {
      // Detached: its own process group and session, so that no signal to the agent reaches it. It inherits nothing
      // secret.
      const input = qemuArguments(definition, record.uuid, machine, network, record.forwards, incomingOf(record))
      const command = insideCommand(
        this.#namespace,
        record.user === undefined || this.#users === undefined
          ? [...(this.#namespace === undefined || isRoot() ? [] : withoutRights), binary, ...input]
          : this.#users.command(record.user, binary, input),
      )
      const child = spawn('flock', ['--no-fork', '--nonblock', GUEST_FILES.pid, ...command], {
        cwd: folder,
        detached: true,
        stdio: [typed, printed, errors, ...folders],
        env: { PATH: environment()['PATH'] },
      })
      child.once('error', (error) => void (ended = error.message))
      child.once('exit', (code, signal) => {
        ended ??= `QEMU ended with ${signal ?? `code ${code}`}`
        // Shows whether QEMU crashed or its guest shut down; only the agent that started it learns that.
        this.#options.log.info('QEMU ended', { guest: record.name, code, signal })
      })
      child.unref()
      pid = child.pid
      await writeFile(join(folder, GUEST_FILES.pid), `${pid ?? ''}\n`, { mode: 0o600 })
    } finally {
      for (const file of [typed, printed, errors, ...folders]) closeSync(file)
    }
    const deadline = clock.monotonicMilliseconds() + START_TIMEOUT_MILLISECONDS
    while (ended === undefined) {
      const isAttached =
        pid !== undefined &&
        (await this.#attach(record, pid).then(
          () => true,
          () => false,
        ))
      if (isAttached) return
      if (clock.monotonicMilliseconds() > deadline) throw new Error('QEMU did not answer in time')
      await clock.sleep(START_POLL_MILLISECONDS)
    }
    throw new Error(ended)
  }

  async #attach(record: GuestRecord, pid: number): Promise<Attachment> {
    const { name, incarnation, uuid } = record
    const folder = this.#folder(name)
    let connected: Qmp | undefined
    let isDiskFull: boolean | undefined
    const qmp = await connectQmp(join(folder, GUEST_FILES.qmp), {
      clock: this.#options.clock,
      onEvent: (event) => {
        if (event.name === 'SHUTDOWN' && event.data['guest'] === true) this.#ended(name, 'off')
        if (event.name === 'GUEST_PANICKED') this.#ended(name, 'gone')
        const isStopped = event.name === 'BLOCK_IO_ERROR' && event.data['action'] === 'stop'
        if (isStopped || event.name === 'RESUME') this.#diskFull(name, (isDiskFull = isStopped))
        // If this fails, the agent asks for the disk again and finds it released.
        if (event.name === 'DEVICE_DELETED')
          void this.#devices.closeReleased(name, event.data['device']).catch(() => undefined)
        this.#attachments.get(name)?.migration?.wake(event)
      },
      onClose: () => {
        if (connected !== undefined && this.#attachments.get(name)?.qmp === connected) this.#detached(record)
      },
    })
    connected = qmp
    try {
      const answer = (await qmp.execute('query-uuid')) as { readonly UUID: string } // shape of QEMU's documented answer
      if (answer.UUID !== uuid) throw new Error(`the process in the folder of ${name} is another guest`)
      await this.#files.letMakeFiles(name, record.user, false)
      await this.#notePort(name, record.user)
      await this.#joinGate(name, qmp)
      const status = await queryStatus(qmp)
      const console = this.#console(name)
      const line = openSerialLine({
        folder,
        log: console.log,
        onOutput: (bytes) => console.line.append(bytes, console.log.position()),
        clock: this.#options.clock,
        logger: this.#options.log,
      })
      const attachment: Attachment = {
        pid,
        qmp,
        line,
        ...(await findDisks(qmp, record.user)),
        interfaces: record.interfaces,
        user: record.user,
        state: stateOf(status, record.move),
        isDiskFull: false,
        ...defined({ transfer: record.move?.end }),
      }
      // An agent that was killed may not have done so.
      await this.#devices.closeReleasedInterfaces(name, attachment)
      attachment.isDiskFull = isDiskFull ?? status === DISK_FULL_STATE
      this.#attachments.set(name, attachment)
      if (attachment.state === 'running') {
        this.#connectConsole(name, incarnation, attachment)
        this.#freezer.recover(folder, 'this-host')
      } else console.line.stopped()
      if (record.move !== undefined && record.move.end === undefined && record.move.port !== undefined)
        this.#startMigration(record, attachment, record.move)
      return attachment
    } catch (error) {
      qmp.close()
      throw error
    }
  }

  /** Writes down where the metadata service listens now, for connections of the guest. */
  async #notePort(name: string, user: GuestUser | undefined): Promise<void> {
    const { network } = this.#options
    if (isOvn(network) || network.metadata === undefined) return
    const port = await readFile(network.metadata.portFile, 'utf8').catch(() => '')
    await this.#files.lend(name, PORT_FILE, port, user)
  }

  /** QEMU accepts frames of a new gate only through a new object. */
  async #joinGate(name: string, qmp: Qmp): Promise<void> {
    const record = await readGuestRecord(this.#folder(name))
    if (this.#gate === undefined || record === undefined) return
    await this.#gate.join(name)
    for (const [index, { slot }] of record.interfaces.entries()) {
      if (slot !== undefined) continue
      const object = passedObject(index)
      await qmp.execute('object-del', { id: object.id }).catch(() => undefined) // the agent before may have deleted it
      await qmp
        .execute('object-add', object)
        .catch((error: unknown) =>
          this.#options.log.warn('guest of an earlier agent is not behind the gate', { guest: name, error }),
        )
    }
  }

  #connectConsole(name: string, incarnation: number, { line }: Attachment): void {
    this.#console(name).line.running(incarnation, (bytes) => line.write(bytes))
  }

  #diskFull(name: string, isDiskFull: boolean): void {
    const attachment = this.#attachments.get(name)
    if (attachment === undefined || attachment.isDiskFull === isDiskFull) return
    attachment.isDiskFull = isDiskFull
    this.#changed(name)
  }

  #ended(name: string, state: 'off' | 'gone'): void {
    const attachment = this.#attachments.get(name)
    if (attachment !== undefined) attachment.state = state
    attachment?.line.read()
    this.#console(name).line.stopped()
    this.#changed(name)
  }

  /** Handles a lost connection. The process has ended or will end soon, or the agent must attach again. */
  #detached(record: GuestRecord): void {
    this.#attachments.get(record.name)?.line.close()
    this.#attachments.delete(record.name)
    if (!this.#closing.signal.aborted) void this.#awaitEnd(record)
  }

  async #awaitEnd(record: GuestRecord): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + REATTACH_MILLISECONDS
    while (
      !this.#closing.signal.aborted &&
      clock.monotonicMilliseconds() < deadline &&
      (await this.#processOf(record)) !== undefined
    ) {
      await clock.sleep(END_POLL_MILLISECONDS, this.#closing.signal)
    }
    if (!this.#closing.signal.aborted) this.#changed(record.name)
  }

  /** Ends the process by any means, and removes what belongs to the incarnation. */
  async #end(record: GuestRecord): Promise<void> {
    const { name } = record
    const attachment = this.#attachments.get(name)
    this.#attachments.delete(name) // its end needs no event
    const pid = attachment?.pid ?? (await this.#processOf(record))
    if (pid !== undefined) {
      if (attachment !== undefined)
        await attachment.qmp.execute('quit', undefined, QUIT_TIMEOUT_MILLISECONDS).catch(() => undefined)
      else signalProcess(pid, 'SIGTERM')
      if (!(await this.#isGone(record, pid, QUIT_TIMEOUT_MILLISECONDS))) {
        signalProcess(pid, 'SIGKILL')
        if (!(await this.#isGone(record, pid, KILL_TIMEOUT_MILLISECONDS)))
          throw new Error(`process ${pid} of guest ${name} does not end`)
      }
    }
    attachment?.qmp.close()
    attachment?.line.close()
    this.#console(name).line.stopped()
    const { network } = this.#options
    if (isOvn(network)) {
      const { interfaces } = (await readGuestRecord(this.#folder(name))) ?? record
      await unplug(
        network,
        name,
        pluggedIn({ ...record, interfaces }).map(({ index }) => index),
      )
    }
    for (const file of [OWN_FOLDER, ...INCARNATION_FILES])
      await rm(join(this.#folder(name), file), { recursive: true, force: true })
  }

  async #isGone(record: GuestRecord, pid: number, timeoutMilliseconds: number): Promise<boolean> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + timeoutMilliseconds
    while (await isGuestProcess(pid, this.#folder(record.name), record.uuid)) {
      if (clock.monotonicMilliseconds() > deadline) return false
      await clock.sleep(END_POLL_MILLISECONDS)
    }
    return true
  }

  #changed(name: string): void {
    for (const listener of Array.from(this.#listeners)) listener(name)
  }
}

/** Remaining parts of disks that the guest does not have, and whether one could not grow. */
const disksIn = ({
  state,
  isDiskFull,
  disks,
  unheld,
  cutOff,
}: AttachedGuest): Pick<Guest, 'unheldDisks' | 'cutOffSlots' | 'isDiskFull'> => ({
  ...(isDiskFull && state === 'running' ? { isDiskFull } : {}),
  ...(unheld.length === 0 ? {} : { unheldDisks: unheld.flatMap((slot) => disks.get(slot) ?? []) }),
  ...(cutOff.length === 0 ? {} : { cutOffSlots: cutOff }),
})

function leavingIn(name: string, interfaces: readonly GuestInterface[]): Pick<Guest, 'leavingInterfaces'> {
  const leaving = interfaces.filter(({ isLeaving }) => isLeaving).map((each) => portNameOf(name, each))
  return leaving.length === 0 ? {} : { leavingInterfaces: leaving }
}

const pluggedIn = ({ name, interfaces }: Pick<GuestRecord, 'name' | 'interfaces'>): PluggedInterface[] =>
  interfaces.map((each, position) => ({ index: indexOf(each, position), portName: portNameOf(name, each) }))

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const incomingOf = ({ move }: GuestRecord): 'free' | 'held' | undefined =>
  move === undefined ? undefined : move.mirroredDisks.length === 0 ? 'free' : 'held'

/** Maps QEMU's run state. A guest that is being received counts as receiving until the attempt's end is recorded. */
function stateOf(status: string, move: Move | undefined): Guest['state'] {
  if (move?.role === 'receive' && move.end === undefined) return 'receiving'
  if (status === 'postmigrate') return 'handed_over'
  return status === 'shutdown' ? 'off' : DEAD_STATES.includes(status) ? 'gone' : 'running'
}
