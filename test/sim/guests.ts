/** What guests of managed machines do to whoever asks them, in worlds that have some. */
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import { GuestAgentFailed } from '../../agents/node/guest-agent/channel.ts'
import type { MachineAnswer, MachineDocument } from '../../resources/managed-machine/index.ts'
import type { ClusterNodes } from './cluster-nodes.ts'
import type { DatabaseMachines } from './database-machines.ts'
import type { Scheduler } from './scheduler.ts'

/** Guests of managed machines that lose what they answer, and lie. */
export interface Guests {
  /** The hypervisor of a host with those disks, whose guests do so. */
  shaken(hypervisor: Hypervisor, volumes: ReadonlyMap<string, HeldVolume>): Hypervisor
  /** Whether they still do. */
  isShaken: boolean
  /** Documents that guests took which were not theirs, in words. */
  readonly violations: readonly string[]
  /** Those of databases, in worlds that have some. */
  readonly databases: DatabaseMachines | undefined
  /** Gets what guests received, in worlds with clusters. */
  clusters: ClusterNodes | undefined
}

/** Of one guest. */
const ANSWERS_KEPT_MAXIMUM = 16

export function newGuests(scheduler: Scheduler, databases?: DatabaseMachines): Guests {
  const violations: string[] = []
  const { random } = scheduler
  const answers = new Map<string, readonly Buffer[]>()

  /** What a guest without faults says, which is kept to be said again later. */
  async function honest(
    hypervisor: Hypervisor,
    volumes: ReadonlyMap<string, HeldVolume>,
    name: string,
    request: Buffer,
  ) {
    const answer = await hypervisor.askMachine(name, request)
    guests.clusters?.hear(name, request, answer)
    if (databases === undefined) return answer
    const guest = await hypervisor.inspect(name)
    if (guest === undefined) throw new GuestAgentFailed('it has gone')
    const disks = guest.disks.map((path) => path.slice(path.lastIndexOf('/') + 1))
    const imageOf = (volume: string) => volumes.get(volume)?.source?.version
    const said = databases.answer({ name, startedAt: guest.startedAt, disks, imageOf }, request, answer)
    answers.set(name, [...(answers.get(name) ?? []), said].slice(-ANSWERS_KEPT_MAXIMUM))
    return said
  }

  const guests: Guests = {
    isShaken: true,
    violations,
    databases,
    clusters: undefined,
    shaken: (hypervisor, volumes) => ({
      ...hypervisor,
      async askMachine(name, request) {
        const asked = JSON.parse(request.toString()) as { readonly document?: MachineDocument } // the agent's own
        if (asked.document !== undefined && asked.document.machine !== name)
          violations.push(`guest ${name} is handed the document of ${asked.document.machine}`)
        const dice = guests.isShaken ? random.fraction() : 1
        if (dice < 0.05) {
          scheduler.note('fault guest does not answer')
          throw new GuestAgentFailed('it does not answer')
        }
        const answer = await honest(hypervisor, volumes, name, request)
        if (dice < 0.1) {
          scheduler.note('fault guest loses its answer')
          throw new GuestAgentFailed('its answer is lost')
        }
        if (dice < 0.14) {
          scheduler.note('fault guest answers something else')
          return Buffer.from('{"machine":')
        }
        if (dice < 0.2 && databases === undefined) {
          scheduler.note('fault guest lies')
          return Buffer.from(JSON.stringify({ ...JSON.parse(answer.toString()), machine: 'another', isHealthy: true }))
        }
        if (dice < 0.2) return lie(scheduler, { answer, answers: answers.get(name) ?? [], wanted: asked.document })
        return answer
      },
    }),
  }
  return guests
}

interface Lie {
  readonly answer: Buffer
  /** What it has said before. */
  readonly answers: readonly Buffer[]
  /** What it was given just now. */
  readonly wanted: MachineDocument | undefined
}

/** More than any password's number. */
const FALSE_GENERATION = 1_000
const FALSE_MILLISECONDS = 3_600_000

/** The guest of a database says what it said before, what another one would, or that it runs something else. */
function lie(scheduler: Scheduler, { answer, answers, wanted }: Lie): Buffer {
  const dice = scheduler.random.fraction()
  if (dice < 0.34) {
    scheduler.note('fault guest says what it said before')
    return scheduler.pick(answers) ?? answer
  }
  const said = JSON.parse(answer.toString()) as MachineAnswer // written by the guest without faults
  const { postgresql } = said.report
  if (postgresql === undefined) return answer
  const claimed = { state: 'running', passwordGeneration: FALSE_GENERATION }
  const { generation, fingerprint } = wanted ?? said
  if (dice < 0.67) {
    scheduler.note('fault guest says that it runs another configuration')
    const other = { ...said, generation: generation + 1, fingerprint, isHealthy: true, detail: '' }
    return Buffer.from(
      JSON.stringify({ ...other, report: { ...said.report, postgresql: { ...postgresql, ...claimed } } }),
    )
  }
  scheduler.note('fault guest says what another would')
  const latestAt = new Date(scheduler.now().getTime() + FALSE_MILLISECONDS).toISOString()
  const archive = postgresql.archive && { archive: { ...postgresql.archive, latestAt } }
  const report = { ...said.report, postgresql: { ...postgresql, ...claimed, ...archive } }
  return Buffer.from(
    JSON.stringify({ ...said, machine: 'another', generation, fingerprint, isHealthy: true, detail: '', report }),
  )
}
