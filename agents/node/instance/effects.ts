/** The effects of the plan for Instances. Each may be repeated, even when it has happened completely before. Facts that
 *  must outlive the guest are written to the ledger before the guest changes. */
import { defined } from '../../../domain/defined.ts'
import { type InstanceSpec } from '../../../resources/instance/index.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { GuestStartFailed, portNameOf, type Transfer } from '../drivers/hypervisor/hypervisor.ts'
import type { Ledger, LedgerEntry } from '../ledger.ts'
import { noteCurrent, noteSuperseded } from '../volume/bytes.ts'
import { readMoveKey } from '../secrets.ts'
import {
  definitionOf,
  guestOf,
  type InstanceOptions,
  interfacesOf,
  isUsable,
  requireNewest,
  volumesOf,
  withDisks,
} from './guest-definition.ts'
import { DETAIL_CHARACTERS_MAXIMUM, type InstanceEffects, type InstanceObject, POWER_BUTTON_SECONDS } from './plan.ts'

const RESUMES_APART_MILLISECONDS = 1_000
const RESUME_AGAIN_MILLISECONDS = 10_000

interface Parts extends InstanceOptions {
  /** Time of the last press of each guest's power button, by the monotonic clock. */
  readonly lastPress: Map<string, number>
  /** Time of the last attempt to resume each guest, by the monotonic clock. */
  readonly lastResume: Map<string, number>
}

type Handler<Name extends keyof InstanceEffects> = (
  input: InstanceEffects[Name],
  instance: InstanceObject,
) => Promise<void>
type Handlers = { readonly [Name in keyof InstanceEffects]: Handler<Name> }

/** The handlers by name of the effect. */
export function instanceEffects(options: InstanceOptions): Handlers {
  const parts: Parts = { ...options, lastPress: new Map(), lastResume: new Map() }
  const { hypervisor, images, ledger, usage } = options
  return {
    start: (input, instance) => withDisks(options, instance.spec, () => start(parts, input, instance)),
    receive: (input, instance) => withDisks(options, instance.spec, () => receive(parts, input, instance)),
    send: (input, instance) => send(parts, input, instance),
    plug: (input, instance) => plug(parts, input, instance),
    unplug: (input, instance) => unplug(parts, input, instance),
    plugInterface: (input, instance) => plugInterface(parts, input, instance),
    async unplugInterface({ portName }, { metadata: { name } }) {
      await hypervisor.unplugInterface(name, portName)
    },
    resume: (_input, instance) => resume(parts, instance),
    async forgetVolume({ volume }, { metadata: { name } }) {
      await giveBack(parts, [volume])
      changeEntry(ledger, name, (entry) => ({
        ...entry,
        volumes: (entry.volumes ?? []).filter((known) => known !== volume),
      }))
    },
    requestStop: (input, instance) => requestStop(parts, input, instance),
    end: (input, instance) => end(parts, input, instance),
    accept: (input, instance) => accept(parts, input, instance),
    async cancelSend(_input, { metadata: { name } }) {
      await hypervisor.cancelSend(name)
    },
    async noteTransfer({ transfer }, { metadata: { name }, spec: { send: order } }) {
      // Recorded first: a guest that was reported as handed over never starts here again.
      if (transfer.role === 'send' && transfer.phase === 'completed' && order?.id === transfer.id)
        for (const volume of order.mirroredVolumes)
          noteSuperseded(parts, volume, { transferId: transfer.id, instance: name })
      recordTransfer(parts, name, transfer)
    },
    async endReception({ transfer }, { metadata: { name } }) {
      recordTransfer(parts, name, transfer)
      await hypervisor.destroy(name)
    },
    async prepare(_input, { spec }) {
      images.prepare(spec.template)
    },
    async giveUpStop({ id }, { metadata: { name } }) {
      const now = nowText(parts)
      changeEntry(ledger, name, (entry) => ({
        ...entry,
        stop: { id, since: entry.stop?.since ?? now, outcome: 'timed_out' },
      }))
    },
    async noteStopped({ id }, { metadata: { name } }) {
      const since = nowText(parts)
      changeEntry(ledger, name, (entry) => ({ ...entry, stop: { id, since, outcome: 'stopped' } }))
    },
    async discard(_input, { metadata: { name } }) {
      await usage.takeReading(name)
      await hypervisor.destroy(name)
    },
    async forget(_input, { metadata: { name, uid = '' } }) {
      // Recorded first: this object's guest is never started again, even if parts of it remain.
      if (ledger.bytesOf('guest', uid) === undefined)
        ledger.putBytes('guest', uid, { uid, state: 'removed', at: nowText(parts) })
      const guest = await hypervisor.inspect(name)
      // It has arrived and was not accepted yet.
      if (guest?.transfer?.role === 'receive' && guest.transfer.phase === 'completed')
        for (const volume of ledger.get(name)?.volumes ?? []) noteCurrent(parts, volume)
      await usage.takeReading(name)
      await hypervisor.forget(name)
      await giveBack(parts, ledger.get(name)?.volumes ?? [])
      ledger.remove(name)
      // Reported before it counts as removed, because observers then read the count of the host.
      await parts.reportHeld()
    },
  }
}

/** One guest after the other, because each of them takes some of the room, and each of them after a pause: its disk may
 *  be full for another reason. */
async function resume({ hypervisor, clock, lastResume }: Parts, { metadata: { name } }: InstanceObject): Promise<void> {
  const now = clock.monotonicMilliseconds()
  const last = Math.max(...lastResume.values(), Number.NEGATIVE_INFINITY)
  const own = lastResume.get(name) ?? Number.NEGATIVE_INFINITY
  if (now - last < RESUMES_APART_MILLISECONDS || now - own < RESUME_AGAIN_MILLISECONDS) return
  for (const [other, at] of lastResume) if (now - at > RESUME_AGAIN_MILLISECONDS) lastResume.delete(other)
  lastResume.set(name, now)
  await hypervisor.resume(name)
}

/** Returns volumes that no guest has. A volume that cannot be returned now is returned at the next look at the host. */
async function giveBack({ ownership, log }: Parts, volumes: readonly string[]): Promise<void> {
  for (const volume of volumes)
    await ownership
      .give(volume)
      .catch((error: unknown) => log.info('a disk of shared storage is not given back yet', { volume, error }))
}

const nowText = ({ clock }: Parts): string => clock.now().toISOString()

function changeEntry(ledger: Ledger, name: string, update: (entry: LedgerEntry) => LedgerEntry): void {
  const entry = ledger.get(name)
  if (entry === undefined) throw new Error(`the ledger has no entry of ${name}`)
  ledger.put(name, update(entry))
}

async function accept(
  parts: Parts,
  { generation, incarnation }: InstanceEffects['accept'],
  { metadata: { name, uid = '' }, spec }: InstanceObject,
): Promise<void> {
  const { ledger } = parts
  const known = ledger.get(name)
  const guest = guestOf(spec)
  if (known === undefined) ledger.put(name, { uid, generation, incarnation, guest })
  // The guest of an earlier object of the name has ended.
  else if (known.uid !== uid) {
    const ended = known.ended ?? { at: nowText(parts), reason: 'crashed' as const }
    ledger.put(name, {
      uid,
      generation,
      incarnation,
      guest,
      ...(known.incarnation === 0 || incarnation > known.incarnation ? {} : { ended }),
    })
  } else if (incarnation === known.incarnation) ledger.put(name, { ...known, generation, guest })
  // The guest is here, and the ledger lacks its start. A guest that has arrived has the disks that the receiver was
  // prepared with.
  else {
    const { volumes } = known
    for (const volume of volumes ?? []) {
      await parts.ownership.take(volume, true)
      noteCurrent(parts, volume)
    }
    ledger.put(name, {
      uid,
      generation,
      incarnation,
      guest,
      startedAt: nowText(parts),
      ...defined({ volumes }),
    })
  }
}

/** Resolves when only guests read the disk. */
async function yieldDisk({ backups, diskReads }: Parts, volume: string): Promise<void> {
  await backups?.yieldDisk(volume)
  await diskReads.end(volume)
}

async function start(parts: Parts, { incarnation }: InstanceEffects['start'], instance: InstanceObject): Promise<void> {
  const { hypervisor, volumes, ledger, lastPress, log } = parts
  const { name } = instance.metadata
  const definition = await definitionOf(parts, instance, incarnation)
  for (const { volume } of instance.spec.disks) {
    await volumes.stopServing(volume)
    await yieldDisk(parts, volume)
    await volumes.requireClosed(volume)
  }
  await requireNewest(parts, instance)
  for (const volume of volumesOf(instance.spec)) await parts.ownership.take(volume)
  // The guest starts here after all, because it did not arrive at the other host.
  for (const volume of volumesOf(instance.spec)) {
    noteSuperseded(parts, volume, undefined)
    noteCurrent(parts, volume)
  }
  // Recorded before the process starts: a crash in between costs an incarnation, and never causes a second copy.
  changeEntry(ledger, name, ({ uid, generation, stop }) => ({
    uid,
    generation,
    incarnation,
    guest: guestOf(instance.spec),
    startedAt: nowText(parts),
    volumes: volumesOf(instance.spec),
    ...defined({ stop }),
  }))
  lastPress.delete(name)
  try {
    await hypervisor.start(definition)
    log.info('guest started', { instance: name, incarnation })
  } catch (error) {
    if (!(error instanceof GuestStartFailed)) throw error
    log.warn('guest did not start', { instance: name, incarnation, error })
    const ended = { at: nowText(parts), reason: 'crashed', detail: error.message } as const
    changeEntry(ledger, name, (entry) => ({ ...entry, ended }))
    await giveBack(parts, volumesOf(instance.spec))
  }
}

/** Slots of the mirrored volumes among the disks; that of the boot disk is 0. */
const slotsOf = (mirrored: readonly string[], { disks }: InstanceSpec): number[] =>
  disks.flatMap(({ volume, slot = 0 }) => (mirrored.includes(volume) ? [slot] : []))

async function receive(parts: Parts, { attempt }: InstanceEffects['receive'], instance: InstanceObject): Promise<void> {
  const { store, hypervisor, ledger, log, namespace } = parts
  const { spec } = instance
  const { name } = instance.metadata
  const order = spec.receive
  if (order?.attempt !== attempt) return
  const key = await readMoveKey(store, namespace, order.secretName)
  const definition = await definitionOf(parts, instance, spec.incarnation)
  await requireNewest(parts, instance)
  changeEntry(ledger, name, (entry) => ({ ...entry, volumes: volumesOf(spec) }))
  try {
    const mirroredDisks = slotsOf(order.mirroredVolumes, spec)
    await hypervisor.receive(definition, { id: order.id, attempt, key, mirroredDisks })
    log.info('guest awaited', { instance: name, attempt })
  } catch (error) {
    if (!(error instanceof GuestStartFailed)) throw error
    log.warn('guest cannot be received', { instance: name, attempt, error })
    const transfer = failedReception(order.id, attempt, error.message, nowText(parts))
    changeEntry(ledger, name, (entry) => ({ ...entry, transfer }))
  }
}

const failedReception = (id: string, attempt: number, detail: string, reportedAt: string): Transfer => ({
  id,
  attempt,
  role: 'receive',
  phase: 'failed',
  iteration: 0,
  transferredBytes: 0,
  totalBytes: 0,
  dirtyBytesPerSecond: 0,
  downtimeMilliseconds: 0,
  detail: detail.slice(0, DETAIL_CHARACTERS_MAXIMUM),
  reportedAt,
})

async function send(
  parts: Parts,
  { attempt }: InstanceEffects['send'],
  { metadata: { name }, spec }: InstanceObject,
): Promise<void> {
  if (spec.send?.attempt !== attempt) return
  const { store, hypervisor, log, namespace } = parts
  const { mirroredVolumes, secretName, isCancelled: _isCancelled, ...order } = spec.send
  for (const { volume } of spec.disks) await yieldDisk(parts, volume)
  await hypervisor.send(name, {
    ...order,
    key: await readMoveKey(store, namespace, secretName),
    mirroredDisks: slotsOf(mirroredVolumes, spec),
  })
  log.info('guest is being sent', { instance: name, attempt })
}

/** Gives the guest a disk. The ledger names the volume first, so that nothing else uses the disk after a crash. */
async function plug(parts: Parts, { volume }: InstanceEffects['plug'], instance: InstanceObject): Promise<void> {
  const { hypervisor, volumes, ledger, log } = parts
  const { name } = instance.metadata
  const disk = instance.spec.disks.find((each) => each.volume === volume)
  if (disk?.slot === undefined) return
  const { serial, slot } = disk
  await parts.diskLocks.run(volume, async () => {
    if (!(await isUsable(parts, volume))) throw new Unavailable(`disk ${volume}`, undefined)
    await volumes.stopServing(volume)
    await yieldDisk(parts, volume)
    const isOpen = (await hypervisor.inspect(name))?.disks.some((path) => volumes.nameOf(path) === volume)
    if (isOpen !== true) await volumes.requireClosed(volume)
    await requireNewest(parts, instance)
    await parts.ownership.take(volume)
    noteCurrent(parts, volume)
    changeEntry(ledger, name, (entry) => ({ ...entry, volumes: [...new Set([...(entry.volumes ?? []), volume])] }))
    const isPlugged = await hypervisor.plugDisk(name, { path: await volumes.pathOf(volume), serial, slot })
    if (isPlugged) log.info('disk plugged', { instance: name, volume })
  })
}

async function unplug(
  { hypervisor, volumes, log }: Parts,
  { volume, isForced }: InstanceEffects['unplug'],
  { metadata: { name } }: InstanceObject,
): Promise<void> {
  // The path that the guest has open; by now the volume may be in another place.
  const path = (await hypervisor.inspect(name))?.disks.find((each) => volumes.nameOf(each) === volume)
  if (path === undefined) return
  await hypervisor.unplugDisk(name, path, isForced)
  if (isForced) log.info('disk taken from the guest', { instance: name, volume })
}

async function plugInterface(
  parts: Parts,
  { portName }: InstanceEffects['plugInterface'],
  instance: InstanceObject,
): Promise<void> {
  const { name } = instance.metadata
  const added = interfacesOf(instance.spec).find((each) => portNameOf(name, each) === portName)
  if (added?.slot === undefined) return
  await requireNewest(parts, instance)
  await parts.hypervisor.plugInterface(name, added)
  parts.log.info('interface plugged', { instance: name, port: portName })
}

/** Presses the power button, at most every POWER_BUTTON_SECONDS. */
async function requestStop(
  parts: Parts,
  { id }: InstanceEffects['requestStop'],
  { metadata: { name } }: InstanceObject,
): Promise<void> {
  const { hypervisor, ledger, lastPress, clock, log } = parts
  if (ledger.get(name)?.stop?.id !== id)
    changeEntry(ledger, name, (entry) => ({ ...entry, stop: { id, since: nowText(parts) } }))
  const now = clock.monotonicMilliseconds()
  if (now - (lastPress.get(name) ?? Number.NEGATIVE_INFINITY) < POWER_BUTTON_SECONDS * 1000 - TIMER_SLACK_MILLISECONDS)
    return
  lastPress.set(name, now)
  await hypervisor
    .pressPowerButton(name)
    .catch((error: unknown) => log.info('power button not pressed', { instance: name, error }))
}

/** Tolerance for timers that fire early. */
const TIMER_SLACK_MILLISECONDS = 100

async function end(
  parts: Parts,
  { reason, stopId }: InstanceEffects['end'],
  { metadata: { name } }: InstanceObject,
): Promise<void> {
  const { hypervisor, ledger, usage, lastPress, log } = parts
  // Recorded first: once the guest is deleted, only the ledger has the reason.
  changeEntry(ledger, name, (entry) => ({ ...entry, ended: entry.ended ?? { at: nowText(parts), reason } }))
  await usage.takeReading(name)
  await hypervisor.destroy(name)
  await giveBack(parts, ledger.get(name)?.volumes ?? [])
  lastPress.delete(name)
  log.info('guest ended', { instance: name, reason })
  if (stopId === undefined) return
  changeEntry(ledger, name, (entry) => ({
    ...entry,
    stop: { id: stopId, since: entry.stop?.since ?? nowText(parts), outcome: 'stopped' },
  }))
}

function recordTransfer({ ledger, log }: Parts, name: string, transfer: Transfer): void {
  changeEntry(ledger, name, (entry) => ({ ...entry, transfer }))
  const { role, attempt, phase, detail } = transfer
  log.info('guest transfer ended', { instance: name, role, attempt, phase, detail })
}
