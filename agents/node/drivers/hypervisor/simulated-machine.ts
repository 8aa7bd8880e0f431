/** The script of managed machines in a simulated guest. It accepts every document that is addressed to it and not older
 *  than its current one, and runs nothing. Databases report an archive once their document has one. */
import { defined } from '../../../../domain/defined.ts'
import { type ArchiveReport, type MachineAnswer, MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { z } from 'zod'
import type { MachineConfiguration, SimulatedGuest } from './simulated-guest.ts'

const Request = z.union([
  z.strictObject({ do: z.literal('status') }),
  z.strictObject({ do: z.literal('apply'), document: MachineDocument }),
])

interface MachineRequest {
  readonly request: Buffer
  readonly now: string
  readonly take: (configuration: MachineConfiguration) => void
}

export function answerAsMachine(
  { record: { configuration } }: SimulatedGuest,
  { request, now, take }: MachineRequest,
): Buffer {
  const command = Request.parse(JSON.parse(request.toString()))
  const answer = (is: MachineConfiguration | undefined, detail: string) => answerOf(is, detail, now)
  if (command.do === 'status') return answer(configuration, '')
  const { machine, generation, fingerprint, postgresql } = command.document
  if (configuration !== undefined && configuration.machine !== machine)
    return answer(configuration, `the document is of machine ${machine}`)
  if (configuration !== undefined && generation < configuration.generation)
    return answer(configuration, `generation ${generation} is older than what runs`)
  const next = {
    machine,
    generation,
    fingerprint,
    ...defined({
      passwordGeneration: postgresql?.passwordGeneration,
      archivedAt: postgresql?.archive && (configuration?.archivedAt ?? now),
    }),
  }
  take(next)
  return answer(next, '')
}

function answerOf(configuration: MachineConfiguration | undefined, detail: string, now: string): Buffer {
  const passwordGeneration = configuration?.passwordGeneration
  const own: MachineAnswer = {
    machine: configuration?.machine ?? '',
    generation: configuration?.generation ?? 0,
    fingerprint: configuration?.fingerprint ?? '',
    isHealthy: configuration !== undefined && detail === '',
    detail: configuration === undefined ? 'nothing was delivered yet' : detail,
    report: {
      services: {},
      ...(passwordGeneration === undefined
        ? {}
        : {
            postgresql: {
              state: 'running',
              passwordGeneration,
              ...defined({ archive: configuration && archiveOf(configuration, now) }),
            },
          }),
    },
  }
  return Buffer.from(JSON.stringify(own))
}

/** With one full backup. */
const archiveOf = ({ archivedAt }: MachineConfiguration, now: string): ArchiveReport | undefined =>
  archivedAt === undefined
    ? undefined
    : {
        isOpen: true,
        failure: '',
        observedAt: now,
        earliestAt: archivedAt,
        latestAt: now,
        gaps: [],
        backups: [{ label: 'simulated', startedAt: archivedAt, completedAt: archivedAt, bytes: 0, isRestorable: true }],
      }
