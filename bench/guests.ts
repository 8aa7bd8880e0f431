/** QEMU processes with the guest of the template `tiny-linux`, for benchmarks that compare the agent's work with the
 *  same work by hand: no agent manages them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guestUuid } from '../agents/node/drivers/hypervisor/guest-record.ts'
import type { GuestDefinition } from '../agents/node/drivers/hypervisor/hypervisor.ts'
import { GUEST_FILES, type QemuMachine, qemuArguments } from '../agents/node/drivers/hypervisor/qemu-arguments.ts'
import { probeQemu, QEMU_BINARY } from '../agents/node/drivers/hypervisor/qemu-probe.ts'
import { connectQmp, type Qmp, type QmpEvent } from '../agents/node/drivers/hypervisor/qmp.ts'
import { bootId } from '../agents/node/host.ts'
import { runProgram } from '../agents/node/run-program.ts'
import { metadataDocument, seedDisk } from '../agents/node/serve/metadata.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { instanceSpec } from '../test/agents/node/instance-spec.ts'
import { tinyLinux } from '../test/agents/node/real-host.ts'
import { eventually } from '../test/eventually.ts'

const NAME = 'bench'
const PROMPT = 'root@web-1:~# '
const BOOT_MILLISECONDS = 120_000
const POLL_MILLISECONDS = 5

export interface Machine {
  readonly qmp: Qmp
  readonly folder: string
  /** When each event was last received. */
  readonly heard: Map<string, number>
  listener: ((event: QmpEvent) => void) | undefined
  /** The output of the guest. */
  printed(): Promise<string>
  /** Waits until the guest is at its prompt for the first time. */
  booted(): Promise<void>
  /** Types into the guest's shell, and waits for output at the start of a line. */
  type(line: string, expected: RegExp): Promise<RegExpExecArray>
}

export interface Machines {
  /** A folder for files of the benchmark. */
  readonly root: string
  readonly machine: QemuMachine
  readonly definition: GuestDefinition
  /** With an empty boot disk, and the arguments that the agent would use unless others are given. */
  start(input?: readonly string[]): Promise<Machine>
  argumentsOf(definition: GuestDefinition, incoming?: 'free'): string[]
  close(): Promise<void>
}

/** A qcow2 file of that many GiB, as sparse as possible. */
export async function newDisk(path: string, gibibytes: number, ...options: readonly string[]): Promise<string> {
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', ...options, path, `${gibibytes}G`])
  return path
}

export async function openMachines(): Promise<Machines> {
  const root = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const image = await tinyLinux()
  const definition: GuestDefinition = {
    name: NAME,
    uid: NAME,
    incarnation: 1,
    hostname: 'web-1',
    cores: 1,
    memoryMebibytes: 128,
    boot: image.boot,
    disks: [{ path: await newDisk(join(root, 'disk.qcow2'), 1), serial: 'boot' }],
    interfaces: [{ macAddress: '52:54:00:12:34:56' }],
    forwardedPorts: [],
    seed: seedDisk(metadataDocument(instanceSpec()), undefined),
  }
  const machine = await probeQemu({
    cacheFile: join(root, 'accelerator'),
    bootId: (await bootId()) ?? 'unknown',
    clock,
  })
  const argumentsOf: Machines['argumentsOf'] = (guest, incoming) =>
    qemuArguments(guest, guestUuid(NAME), machine, { isOutboundAllowed: false, metadata: undefined }, [], incoming)
  const children: ChildProcess[] = []
  return {
    root,
    machine,
    definition,
    argumentsOf,
    async start(input = argumentsOf(definition)) {
      const folder = join(root, String(children.length))
      await mkdir(folder)
      await writeFile(join(folder, GUEST_FILES.seed), definition.seed)
      const log = join(folder, GUEST_FILES.consoleLog)
      const printing = openSync(log, 'a')
      const child = spawn(QEMU_BINARY, input, { cwd: folder, stdio: ['pipe', printing, 'ignore'] })
      children.push(child)
      closeSync(printing)
      return openMachine(child, folder)
    },
    async close() {
      for (const child of children) child.kill('SIGKILL')
      await rm(root, { recursive: true, force: true })
    },
  }
}

async function openMachine(child: ChildProcess, folder: string): Promise<Machine> {
  const heard = new Map<string, number>()
  let opened: Machine | undefined
  const onEvent = (event: QmpEvent) => {
    heard.set(event.name, clock.monotonicMilliseconds())
    opened?.listener?.(event)
  }
  const qmp = await eventually('QMP', () =>
    connectQmp(join(folder, GUEST_FILES.qmp), { clock, onEvent, onClose: () => {} }).catch(() => undefined),
  )
  const printed = () => readFile(join(folder, GUEST_FILES.consoleLog), 'latin1').catch(() => '')
  opened = {
    qmp,
    folder,
    heard,
    listener: undefined,
    printed,
    async booted() {
      await eventually('the prompt', async () => (await printed()).includes(PROMPT), BOOT_MILLISECONDS)
    },
    async type(line, expected) {
      const from = (await printed()).length
      child.stdin?.write(`${line}\n`)
      const until = clock.monotonicMilliseconds() + BOOT_MILLISECONDS
      for (;;) {
        const text = (await printed()).slice(from)
        const found = expected.exec(text)
        if (found !== null) return found
        if (clock.monotonicMilliseconds() > until) throw new Error(`the guest said ${JSON.stringify(text)}`)
        await clock.sleep(POLL_MILLISECONDS)
      }
    },
  }
  return opened
}
