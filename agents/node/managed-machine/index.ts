/** The reconciler of managed machines. It delivers to each guest its configuration, through its guest agent and without
 *  a network, and reports what the guest runs. It keeps nothing in memory that a restart of the agent would lose. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { type EffectReport, type Reconciler, watch } from '../../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Instance } from '../../../resources/instance/index.ts'
import {
  MACHINE_REPORT_BYTES_MAXIMUM,
  MachineAnswer,
  MachineDocument,
  ManagedMachine,
  type ManagedMachineSpec,
  type ManagedMachineStatus,
  reportOf,
} from '../../../resources/managed-machine/index.ts'
import type { Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import { GuestAgentFailed } from '../guest-agent/channel.ts'
import { readMachineDocument } from '../secrets.ts'
import {
  HURRY_SECONDS,
  judged,
  type MachineObject,
  type ObservedMachine,
  planMachine,
  restAfter,
  runsAsWanted,
} from './plan.ts'

export interface ManagedMachineOptions {
  readonly hypervisor: Hypervisor
  readonly store: Store
  readonly caches: Caches
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

/** A guest that is frozen or migrating does not answer for a moment. */
const SILENCES_MAXIMUM = 3
/** Minimum interval between reports in which only counters have changed. */
const REPORT_SECONDS = 30
const DETAIL_CHARACTERS_MAXIMUM = 1_000
const MILLISECONDS = 1_000

/** State of the contact with a guest, in this process. */
interface Contact {
  readonly dueAt: number
  readonly silences: number
}

export function managedMachineReconciler(
  options: ManagedMachineOptions,
): Reconciler<ManagedMachineSpec, ManagedMachineStatus, ObservedMachine> {
  const { hypervisor, caches, namespace, clock, log } = options
  const contacts = new Map<string, Contact>()
  const machines = caches.of(ManagedMachine)
  const silencesOf = ({ metadata }: MachineObject): number => contacts.get(metadata.uid ?? '')?.silences ?? 0
  const meet = ({ metadata }: MachineObject, seconds: number, silences: number) =>
    void contacts.set(metadata.uid ?? '', {
      dueAt: clock.monotonicMilliseconds() + seconds * MILLISECONDS,
      silences,
    })

  /** Sends a request. The answer is the guest's claim, which may change at any time. */
  async function ask(machine: MachineObject, request: object): Promise<EffectReport> {
    const beganAt = clock.monotonicMilliseconds()
    // Not due again while the request runs, whatever its result.
    meet(machine, HURRY_SECONDS, silencesOf(machine))
    try {
      const answer = readAnswer(
        await hypervisor.askMachine(machine.metadata.name, Buffer.from(JSON.stringify(request))),
      )
      const report = statusOf(machine, answer, clock.now())
      const took = (clock.monotonicMilliseconds() - beganAt) / MILLISECONDS
      meet(machine, restAfter(took, report.status.isHealthy === true), 0)
      return { isReading: true, status: report.status, conditions: report.conditions ?? [] }
    } catch (error) {
      if (!(error instanceof GuestAgentFailed)) throw error
      const silences = silencesOf(machine) + 1
      meet(machine, HURRY_SECONDS, silences)
      if (machine.status?.isHealthy === true && silences < SILENCES_MAXIMUM) return {}
      log.debug('managed machine does not answer', { machine: machine.metadata.name, error })
      const { status, conditions = [] } = judged(
        false,
        `Its guest does not answer: ${error.message}`.slice(0, DETAIL_CHARACTERS_MAXIMUM),
      )
      return { isReading: true, status, conditions }
    }
  }

  return {
    name: 'managed-machine',
    type: ManagedMachine,
    watches: [watch(Instance, ({ metadata: { name } }) => [{ namespace, name }])],
    wakes: (wake) =>
      hypervisor.onChange((name) => {
        const machine = machines.get({ namespace, name })
        if (machine !== undefined) wake(keyOf(machine))
      }),
    async observe({ metadata: { name, uid = '' } }) {
      const guest = await hypervisor.inspect(name)
      const dueAt = contacts.get(uid)?.dueAt ?? 0
      const left = (dueAt - clock.monotonicMilliseconds()) / MILLISECONDS
      return {
        isRunning: guest?.state === 'running',
        dueInSeconds: contacts.has(uid) ? Math.max(0, Math.ceil(left)) : 0,
      }
    },
    plan: planMachine,
    effects: {
      ask: async (_input, machine) => ask(machine, { do: 'status' }),
      async deliver(_input, machine) {
        const { configuration } = machine.spec
        if (configuration === undefined) return ask(machine, { do: 'status' })
        const document = await documentOf(options, machine)
        return ask(machine, { do: 'apply', document })
      },
    },
  }
}

/** The document of exactly this machine and generation; Unavailable while it does not exist. */
async function documentOf(
  { store, namespace }: ManagedMachineOptions,
  { metadata, spec }: MachineObject,
): Promise<MachineDocument> {
  const { configuration, server } = spec
  const text = await readMachineDocument(store, namespace, configuration?.secretName ?? '')
  const document = MachineDocument.parse(JSON.parse(text))
  if (document.machine !== metadata.name || document.machine !== server.uid)
    throw new Error('the configuration is that of another machine')
  if (document.generation !== configuration?.generation || document.fingerprint !== configuration.fingerprint)
    throw new Unavailable(`generation ${configuration?.generation} of the configuration`, undefined)
  return document
}

/** GuestAgentFailed when the output is not an answer. */
function readAnswer(output: Buffer): MachineAnswer {
  try {
    return MachineAnswer.parse(JSON.parse(output.toString()))
  } catch (cause) {
    throw new GuestAgentFailed('the machine answers something else', { cause })
  }
}

/** The trusted part of the answer: its configuration if it belongs to this machine, and whether it is healthy. The
 *  report of another machine is ignored. A machine without a configuration has no name yet and is accepted. */
function statusOf(machine: MachineObject, answer: MachineAnswer, now: Date) {
  const { metadata, spec, status } = machine
  const { generation, fingerprint } = answer
  const isOwn = answer.machine === metadata.name
  const running = isOwn && fingerprint !== '' ? { generation, fingerprint } : undefined
  const isWanted = runsAsWanted({ spec }, running)
  const isHealthy = isWanted && answer.isHealthy
  const detail = answer.detail !== '' ? answer.detail : isWanted ? '' : 'It does not run what was delivered yet.'
  const report = JSON.stringify(answer.report)
  const isLate = now.getTime() - Date.parse(status?.reportedAt ?? '') < REPORT_SECONDS * MILLISECONDS
  const isForeign = !isOwn && answer.machine !== ''
  const isKept = isForeign || (isLate && withoutCounts(reportOf(status?.report)) === withoutCounts(answer.report))
  return judged(isHealthy, detail.slice(0, DETAIL_CHARACTERS_MAXIMUM), {
    running,
    ...(isKept || report.length > MACHINE_REPORT_BYTES_MAXIMUM ? {} : { report, reportedAt: now.toISOString() }),
  } as Partial<ManagedMachineStatus>) // undefined clears an earlier configuration
}

/** The parts of a report that somebody may wait for. */
const withoutCounts = (report: MachineAnswer['report'] | undefined): string =>
  JSON.stringify([
    report?.services,
    report?.keepalived,
    report?.postgresql?.state,
    report?.postgresql?.passwordGeneration,
    report?.postgresql?.archive?.isOpen,
    report?.postgresql?.archive?.failure,
    report?.postgresql?.archive?.backups.map(({ label, isRestorable }) => [label, isRestorable]),
    report?.haproxy?.frontends.map(([name]) => name),
    report?.haproxy?.servers.map(([backend, name, status]) => [backend, name, status]),
  ])
