/** How long a guest stands still when it moves: by the agent's steps, with the hand-over ordered by an agent, against a
 *  bare `migrate` with the same
 *  parameters (key, first downtime limit) between the same two QEMU processes. The standstill is measured from outside,
 *  from STOP at the sender to
 *  RESUME at the receiver; what QEMU itself reckons is beside it, and what a stream in the clear would cost. The unit
 *  is a hand-over, the seconds are
 *  those of the standstill. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guestUuid } from '../agents/node/drivers/hypervisor/guest-record.ts'
import type { GuestDefinition, Transfer } from '../agents/node/drivers/hypervisor/hypervisor.ts'
import { freePort } from '../agents/node/drivers/hypervisor/listening-port.ts'
import { qemuArguments } from '../agents/node/drivers/hypervisor/qemu-arguments.ts'
import {
  beginReceive,
  beginSend,
  downtimeLimitAt,
  KEY_FILE,
  keyFileText,
  type Move,
  sendMemory,
} from '../agents/node/drivers/hypervisor/qemu-migration.ts'
import { startMigrationDriver } from '../agents/node/drivers/hypervisor/qemu-migration-driver.ts'
import { probeQemu, QEMU_BINARY } from '../agents/node/drivers/hypervisor/qemu-probe.ts'
import { connectQmp, type Qmp, type QmpEvent } from '../agents/node/drivers/hypervisor/qmp.ts'
import { bootId } from '../agents/node/host.ts'
import { runProgram } from '../agents/node/run-program.ts'
import { metadataDocument, seedDisk } from '../agents/node/serve/metadata.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'
import { instanceSpec } from '../test/agents/node/instance-spec.ts'
import { tinyLinux } from '../test/agents/node/real-host.ts'
import { eventually } from '../test/eventually.ts'
import { type Bench, median } from './runner.ts'

const HOST = '127.0.0.1'
const NAME = 'bench'
const PROMPT = 'root@web-1:~# '
const DOWNTIME_LIMIT_MILLISECONDS = 300
const POLL_MILLISECONDS = 5
const CREDENTIALS = 'bench-credentials'
/** Of one run: a single one says little. */
const HAND_OVERS = 3

interface Machine {
  readonly qmp: Qmp
  readonly folder: string
  /** When each event was heard last. */
  readonly heard: Map<string, number>
  listener: ((event: QmpEvent) => void) | undefined
}

type Side = 'subject' | 'peer' | 'clear'
type Way = (from: Machine, to: Machine, port: number) => Promise<number>

export const bench: Bench = {
  name: 'B07 live migration',
  question: 'hand-overs of an idle guest per second of standstill',
  subjectName: 'svccloud',
  peerName: 'bare QMP migrate with the same parameters',
  unit: 'hand-overs',
  goal: 0.83,
  async open() {
    const root = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
    const image = await tinyLinux()
    const machine = await probeQemu({
      cacheFile: join(root, 'accelerator'),
      bootId: (await bootId()) ?? 'unknown',
      clock,
    })
    const disk = join(root, 'disk.qcow2')
    await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '1G'])
    const definition: GuestDefinition = {
      name: NAME,
      uid: NAME,
      incarnation: 1,
      hostname: 'web-1',
      cores: 1,
      memoryMebibytes: 128,
      boot: image.boot,
      disks: [{ path: disk, serial: 'boot' }],
      interfaces: [{ macAddress: '52:54:00:12:34:56' }],
      forwardedPorts: [],
      seed: seedDisk(metadataDocument(instanceSpec()), undefined),
    }
    let number = 0
    const children: ChildProcess[] = []
    const clear = async () => {
      for (const child of children) child.kill('SIGKILL')
      await rm(root, { recursive: true, force: true })
    }
    async function start(incoming?: 'free'): Promise<Machine> {
      const folder = join(root, String(number++))
      await mkdir(folder)
      await writeFile(join(folder, 'seed.iso'), definition.seed)
      await writeFile(join(folder, KEY_FILE), keyFileText('ab'.repeat(32)))
      const child = spawn(
        QEMU_BINARY,
        qemuArguments(
          definition,
          guestUuid(NAME),
          machine,
          { isOutboundAllowed: false, metadata: undefined },
          [],
          incoming,
        ),
        { cwd: folder, stdio: 'ignore' },
      )
      children.push(child)
      const heard = new Map<string, number>()
      let found: Machine | undefined
      const onEvent = (event: QmpEvent) => {
        heard.set(event.name, clock.monotonicMilliseconds())
        found?.listener?.(event)
      }
      const qmp = await eventually('QMP', () =>
        connectQmp(join(folder, 'qmp.sock'), { clock, onEvent, onClose: () => {} }).catch(() => undefined),
      )
      found = { qmp, folder, heard, listener: undefined }
      return found
    }

    const standstills: Record<Side, number[]> = { subject: [], peer: [], clear: [] }
    const reckoned: Record<Side, number[]> = { subject: [], peer: [], clear: [] }
    let current = await start().catch((error: unknown) => clear().then(() => Promise.reject(error)))
    await eventually(
      'the prompt',
      async () =>
        (await readFile(join(current.folder, 'console.log'), 'utf8').catch(() => '')).includes(PROMPT) || undefined,
    )

    async function handOver(side: Side, way: Way): Promise<{ units: number; seconds: number }> {
      const [from, to, port] = [current, await start('free'), await freePort(HOST)]
      current = to
      reckoned[side].push(await way(from, to, port))
      const resumedAt = await eventually('the guest to go on', () => to.heard.get('RESUME'))
      const milliseconds = resumedAt - (from.heard.get('STOP') ?? Number.NaN)
      standstills[side].push(milliseconds)
      await from.qmp.execute('quit')
      return { units: 1, seconds: milliseconds / 1_000 }
    }

    async function several(side: Side, way: Way): Promise<{ units: number; seconds: number }> {
      const runs = []
      for (let run = 0; run < HAND_OVERS; run++) runs.push(await handOver(side, way))
      return { units: HAND_OVERS, seconds: runs.reduce((total, { seconds }) => total + seconds, 0) }
    }

    const byTheAgent: Way = async (from, to, port) => {
      await beginReceive(to.qmp, [], { host: HOST, port })
      const move: Move = {
        role: 'send',
        id: 'op',
        attempt: 1,
        mirroredDisks: [],
        beganAt: clock.now().toISOString(),
        host: HOST,
        port,
        isStarted: true,
        orders: { downtimeLimitMilliseconds: DOWNTIME_LIMIT_MILLISECONDS, isThrottled: false, timeoutSeconds: 60 },
      }
      await beginSend(from.qmp, move)
      await sendMemory(from.qmp, move)
      let last: Transfer | undefined
      const mover = startMigrationDriver({
        qmp: from.qmp,
        move,
        clock,
        log: silentLog,
        persist: async () => {},
        report: (transfer) => void (last = transfer),
        isGuestOff: () => false,
        isDetached: () => false,
      })
      from.listener = (event) => mover.wake(event)
      const end = await eventually('the end', () =>
        last !== undefined && last.phase !== 'transferring' ? last : undefined,
      )
      if (end.phase === 'failed') throw new Error(end.detail)
      return end.downtimeMilliseconds
    }

    const byHand =
      (isEncrypted: boolean): Way =>
      async (from, to, port) => {
        // of an earlier hand-over
        for (const { qmp } of [from, to]) await qmp.execute('object-del', { id: CREDENTIALS }).catch(() => undefined)
        for (const [{ qmp }, endpoint] of [
          [to, 'server'],
          [from, 'client'],
        ] as const) {
          if (isEncrypted)
            await qmp.execute('object-add', { 'qom-type': 'tls-creds-psk', id: CREDENTIALS, dir: '.', endpoint })
          const plain = { events: true, 'pause-before-switchover': false, 'auto-converge': false }
          await qmp.execute('migrate-set-capabilities', {
            capabilities: Object.entries(plain).map(([capability, state]) => ({ capability, state })),
          })
          await qmp.execute('migrate-set-parameters', {
            'tls-creds': isEncrypted ? CREDENTIALS : '',
            'downtime-limit': downtimeLimitAt(0, DOWNTIME_LIMIT_MILLISECONDS),
            'max-bandwidth': 16 * 1024 ** 3,
          })
        }
        await to.qmp.execute('migrate-incoming', { uri: `tcp:${HOST}:${port}` })
        await from.qmp.execute('migrate', { uri: `tcp:${HOST}:${port}` })
        for (;;) {
          const { status, downtime } = (await from.qmp.execute('query-migrate')) as {
            readonly status: string
            readonly downtime?: number
          } // shape of QEMU's documented answer
          if (status === 'failed') throw new Error('the migration failed')
          if (status === 'completed' && downtime !== undefined) return downtime
          await clock.sleep(POLL_MILLISECONDS)
        }
      }

    return {
      subject: { run: () => several('subject', byTheAgent) },
      peer: {
        async run() {
          await handOver('clear', byHand(false))
          return several('peer', byHand(true))
        },
      },
      facts: () => ({
        'standstill, ms': median(standstills.subject).toFixed(0),
        'by hand, ms': median(standstills.peer).toFixed(0),
        'in the clear, ms': median(standstills.clear).toFixed(0),
        'QEMU says, ms': median(reckoned.subject).toFixed(0),
        'QEMU says by hand, ms': median(reckoned.peer).toFixed(0),
      }),
      close: clear,
    }
  },
}
