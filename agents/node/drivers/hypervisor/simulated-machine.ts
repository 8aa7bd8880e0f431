/** The script of managed machines in a simulated guest. It accepts every document that is addressed to it and not older
 *  than its current one, and runs nothing. */
import { defined } from '../../../../domain/defined.ts'
import { type MachineAnswer, MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { z } from 'zod'
import type { MachineConfiguration, SimulatedGuest } from './simulated-guest.ts'

const Request = z.union([
  z.strictObject({ do: z.literal('status') }),
  z.strictObject({ do: z.literal('apply'), document: MachineDocument }),
])

export function answerAsMachine(
  { record: { configuration } }: SimulatedGuest,
  request: Buffer,
  take: (configuration: MachineConfiguration) => void,
): Buffer {
  const command = Request.parse(JSON.parse(request.toString()))
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
    ...defined({ passwordGeneration: postgresql?.passwordGeneration }),
  }
  take(next)
  return answer(next, '')
}

function answer(configuration: MachineConfiguration | undefined, detail: string): Buffer {
  const passwordGeneration = configuration?.passwordGeneration
  const own: MachineAnswer = {
    machine: configuration?.machine ?? '',
    generation: configuration?.generation ?? 0,
    fingerprint: configuration?.fingerprint ?? '',
    isHealthy: configuration !== undefined && detail === '',
    detail: configuration === undefined ? 'nothing was delivered yet' : detail,
    report: {
      services: {},
      ...(passwordGeneration === undefined ? {} : { postgresql: { state: 'running', passwordGeneration } }),
    },
  }
  return Buffer.from(JSON.stringify(own))
}
