/** Hosts that lose their power, or that nobody hears while their guests go on; and what their management controllers
 *  and other nodes say of them. After the chaos all have power and are heard. */
import type { ProbeHost } from '../../agents/node/host-probe.ts'
import type { OpenPowerControl } from '../../controllers/fencing/effects.ts'
import { type PowerControl, PowerControlFailed } from '../../controllers/fencing/power-control.ts'
import type { Database } from '../../db/kit/open.ts'
import type { FinishedOperation, OperationKind } from '../../domain/operations.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

interface PoweredHost {
  readonly name: string
  readonly machine: { running(): readonly unknown[] }
}

export interface Power {
  isOn(host: string): boolean
  cut(host: string): void
  restore(host: string): void
  /** Its guests go on, but nothing hears it: neither the control plane nor other nodes. */
  isHidden(host: string): boolean
  hide(host: string, milliseconds: number): void
  /** Its management controller does not answer. */
  disconnectController(host: string, milliseconds: number): void
  /** As a process of the control plane reaches the controllers. */
  controlFrom(process: SimulatedProcess): OpenPowerControl
  /** As the agent of a host sees other hosts. */
  lookFrom(host: string, isServing: (host: string) => boolean): ProbeHost
  calm(): void
}

interface PowerOptions {
  readonly scheduler: Scheduler
  readonly hosts: () => readonly PoweredHost[]
  /** Everything that runs on the host stops, its agent first. */
  readonly onCut: (host: string) => void
  readonly onRestore: (host: string) => void
  /** Controllers say that power is off and leave it on. */
  readonly isLying: boolean
}

/** The controller of a host has the host's name as its address. */
export const bmcOf = (host: string) => ({ address: host, protocol: 'redfish', secretName: 'bmc' }) as const
export const endpointOf = (host: string) => ({ url: `https://${host}`, certificateFingerprint: host })

/** A host that is fenced after the chaos comes back by itself. */
const REPAIR_MILLISECONDS = 60_000
const ANSWER_MILLISECONDS = { least: 20, most: 3_000 }

export function newPower({ scheduler, hosts, onCut, onRestore, isLying }: PowerOptions): Power {
  const { random } = scheduler
  const off = new Set<string>()
  let isCalm = false
  const until = { hidden: new Map<string, number>(), disconnected: new Map<string, number>() }
  const isUntil = (times: ReadonlyMap<string, number>, host: string) =>
    (times.get(host) ?? 0) > scheduler.nowMilliseconds
  const answer = () =>
    new Promise<void>(
      (resolve) =>
        void scheduler.after(
          ANSWER_MILLISECONDS.least + random.fraction() * (ANSWER_MILLISECONDS.most - ANSWER_MILLISECONDS.least),
          resolve,
        ),
    )

  const power: Power = {
    isOn: (host) => !off.has(host),
    cut(host) {
      if (off.has(host)) return
      scheduler.note(`cut ${host}`)
      off.add(host)
      onCut(host)
      if (isCalm) scheduler.after(REPAIR_MILLISECONDS, () => power.restore(host))
    },
    restore(host) {
      if (!off.delete(host)) return
      scheduler.note(`restore ${host}`)
      onRestore(host)
    },
    isHidden: (host) => isUntil(until.hidden, host),
    hide(host, milliseconds) {
      scheduler.note(`hide ${host}`)
      until.hidden.set(host, scheduler.nowMilliseconds + milliseconds)
    },
    disconnectController(host, milliseconds) {
      scheduler.note(`disconnect ${host}`)
      until.disconnected.set(host, scheduler.nowMilliseconds + milliseconds)
    },
    controlFrom:
      (process) =>
      async ({ address }) =>
        process.boundTo<PowerControl>({
          async powerState() {
            await answer()
            if (isUntil(until.disconnected, address)) throw new PowerControlFailed('The BMC did not answer in time.')
            return isLying || off.has(address) ? 'off' : 'on'
          },
          async powerOff() {
            await answer()
            if (isUntil(until.disconnected, address)) throw new PowerControlFailed('The BMC did not answer in time.')
            if (!isLying) power.cut(address)
          },
        }),
    lookFrom:
      (host, isServing) =>
      async ({ certificateFingerprint: other }) => {
        await answer()
        if (off.has(other) || isUntil(until.hidden, other) || isUntil(until.hidden, host))
          return { answer: 'nothing', detail: '' }
        return isServing(other) ? { answer: 'agent', detail: '' } : { answer: 'host', detail: '' }
      },
    calm() {
      isCalm = true
      for (const times of Object.values(until)) times.clear()
      for (const { name } of hosts()) power.restore(name)
    },
  }
  return power
}

/** Where most guests run, a loss hurts most. */
const busiest = (hosts: readonly PoweredHost[]): PoweredHost | undefined =>
  hosts.toSorted((a, b) => b.machine.running().length - a.machine.running().length)[0]

/** Others have to be there, or nothing could go on elsewhere. */
const LOST_AT_ONCE_MAXIMUM = 2

/** Hosts are lost now and then, and come back. */
export function runLosses(
  power: Power,
  scheduler: Scheduler,
  hosts: readonly PoweredHost[],
  isOver: () => boolean,
): void {
  const { random } = scheduler
  const isLost = ({ name }: PoweredHost) => !power.isOn(name) || power.isHidden(name)
  void scheduler.repeat({ least: 4_000, most: 20_000 }, isOver, async () => {
    const host = random.fraction() < 0.5 ? busiest(hosts) : scheduler.pick(hosts)
    if (host === undefined || (!isLost(host) && hosts.filter(isLost).length >= LOST_AT_ONCE_MAXIMUM)) return
    const dice = random.fraction()
    if (dice < 0.4) {
      power.cut(host.name)
      if (random.fraction() < 0.7) scheduler.after(2_000 + random.fraction() * 80_000, () => power.restore(host.name))
    } else if (dice < 0.85) power.hide(host.name, 10_000 + random.fraction() * 110_000)
    else power.disconnectController(host.name, 5_000 + random.fraction() * 30_000)
  })
}

const findOperationsOf = async (db: Database, kind: OperationKind): Promise<readonly FinishedOperation[]> =>
  (await db.selectFrom('operation_history').select('body').where('kind', '=', kind).execute()).map(
    ({ body }) => body as FinishedOperation,
  ) // written by the product

/** A server left a lost node only after that node was fenced. */
export async function checkRecoveries(db: Database): Promise<string[]> {
  const fences = (await findOperationsOf(db, 'node.fence')).filter(({ status }) => status === 'succeeded')
  return (await findOperationsOf(db, 'server.recover')).flatMap(({ id, events }) =>
    events
      .filter(({ kind }) => kind === 'recovery_started')
      .flatMap(({ at, data }) => {
        const lost = String(data?.['lost_node_id'])
        const isProven = fences.some(({ target, finishedAt }) => target.id === lost && finishedAt <= at)
        return isProven ? [] : [`operation ${id} took a server from ${lost}, which was not fenced by ${at}`]
      }),
  )
}
