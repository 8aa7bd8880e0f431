/** How long a guest is paused when it moves: by the agent's steps, with the handover requested by an agent, against a
 *  bare `migrate` with the same parameters (key, first downtime limit) between the same two QEMU processes. The pause
 *  is measured from outside, from STOP at the sender to RESUME at the receiver; QEMU's own estimate is reported too,
 *  and the cost of an unencrypted stream by the same steps. The unit is a handover, the seconds are those of the
 *  pause. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Transfer } from '../agents/node/drivers/hypervisor/hypervisor.ts'
import { freePort } from '../agents/node/drivers/hypervisor/listening-port.ts'
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
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'
import { eventually } from '../test/eventually.ts'
import { type Machine, type Machines, openMachines } from './guests.ts'
import { type Bench, median } from './runner.ts'

const HOST = '127.0.0.1'
const DOWNTIME_LIMIT_MILLISECONDS = 300
const POLL_MILLISECONDS = 5
const CREDENTIALS = 'bench-credentials'
/** For one run: a single one says little. */
const HAND_OVERS = { full: 3, short: 1 }
const SHARE = 'standstill against the clear'

type Side = 'subject' | 'peer' | 'clear'
type Way = (from: Machine, to: Machine, port: number) => Promise<number>

export const bench: Bench = {
  name: 'B07 live migration',
  question: 'hand-overs of an idle guest per second of standstill',
  subjectName: 'svccloud',
  peerName: 'bare QMP migrate with the same parameters',
  unit: 'hand-overs',
  goal: 0.83,
  limits: { [SHARE]: 2 },
  heldBy:
    'QEMU encrypts what is left of the memory, and the state of the devices, by one thread while the guest stands ' +
    'still; the agent does not take part in it.',
  tier: 'qemu',
  async open(round) {
    const machines = await openMachines()
    const standstills: Record<Side, number[]> = { subject: [], peer: [], clear: [] }
    const reckoned: Record<Side, number[]> = { subject: [], peer: [], clear: [] }
    let current = await start(machines)
    await current.booted()

    async function handOver(side: Side, way: Way): Promise<number> {
      const [from, to, port] = [current, await start(machines, 'free'), await freePort(HOST)]
      current = to
      reckoned[side].push(await way(from, to, port))
      const resumedAt = await eventually('the guest to go on', () => to.heard.get('RESUME'))
      const milliseconds = resumedAt - (from.heard.get('STOP') ?? Number.NaN)
      standstills[side].push(milliseconds)
      await from.qmp.execute('quit')
      return milliseconds / 1_000
    }

    async function several(side: Side, way: Way): Promise<{ units: number; seconds: number }> {
      let seconds = 0
      for (let run = 0; run < HAND_OVERS[round]; run++) seconds += await handOver(side, way)
      return { units: HAND_OVERS[round], seconds }
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
        [SHARE]: (median(standstills.subject) / median(standstills.clear)).toFixed(1),
        'QEMU says, ms': median(reckoned.subject).toFixed(0),
        'QEMU says by hand, ms': median(reckoned.peer).toFixed(0),
      }),
      close: machines.close,
    }
  },
}

/** A machine that has the key of the stream; `free`: it waits for a guest. */
async function start(machines: Machines, incoming?: 'free'): Promise<Machine> {
  const machine = await machines.start(machines.argumentsOf(machines.definition, incoming))
  await writeFile(join(machine.folder, KEY_FILE), keyFileText('ab'.repeat(32)))
  return machine
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
    // from an earlier handover
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
